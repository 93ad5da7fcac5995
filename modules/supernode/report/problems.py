"""Findings that share a cause are one problem: its head, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from supernode.records import Finding, Verdict

WORST = (Verdict.FAIL, Verdict.UNKNOWN, Verdict.ADVICE, Verdict.PASS)
NO_LINK = "no link"
"""What a cabling finding says of a cable that was seen not to carry (docs/contracts.md, section 6)."""


@dataclass(frozen=True)
class Problem:
    """One cause.

    Attributes:
        head: the finding that shows it best: the first of those with the worst verdict.
        follows: the other findings that it explains.
    """

    cause: str
    verdict: Verdict
    head: Finding
    follows: tuple[Finding, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings of this cause."""
        return (self.head, *self.follows)


def group(findings: Iterable[Finding]) -> list[Problem]:
    """Group what did not pass by cause, the worst first, else in the order given; what has no cause stands alone."""
    by_cause: dict[str, list[Finding]] = {}
    for row in findings:
        if row.verdict is not Verdict.PASS:
            by_cause.setdefault(row.cause or f"{row.place}: {row.found}", []).append(row)
    return sorted((_problem(cause, rows) for cause, rows in by_cause.items()), key=lambda p: WORST.index(p.verdict))


def _problem(cause: str, rows: list[Finding]) -> Problem:
    verdict = worst(rows)
    head = next(row for row in rows if row.verdict is verdict)
    return Problem(cause, verdict, head, tuple(row for row in rows if row is not head))


def standing(findings: Iterable[Finding]) -> dict[str, str]:
    """Return how each device stands: a head's verdict, "touched" if only consequences name it, else "pass"."""
    rows = list(findings)
    names = {row.place.partition(":")[0] for row in rows}
    found = {name: "pass" for name in names}
    problems = group(rows)
    found.update({row.place.partition(":")[0]: "touched" for problem in problems for row in problem.follows})
    for problem in reversed(problems):
        found[problem.head.place.partition(":")[0]] = problem.verdict.value
    return found


def worst(rows: Iterable[Finding]) -> Verdict:
    """Return the worst verdict of some findings; PASS when there are none."""
    return min((row.verdict for row in rows), key=WORST.index, default=Verdict.PASS)


def cable_states(findings: Iterable[Finding]) -> dict[str, str]:
    """Return the state of each cable that any finding speaks of.

    "missing", "swapped" (joined to something else than designed), "slow", "fault" (a port or MTU), "unknown" or "ok",
    the first that applies.
    """
    told: dict[str, set[str]] = {}
    for row in findings:
        for cable, state in _tells(row):
            told.setdefault(cable, set()).add(state)
    return {cable: next(state for state in CABLE_STATES if state in states) for cable, states in told.items()}


CABLE_STATES = ("missing", "swapped", "slow", "fault", "unknown", "ok")


def _tells(row: Finding) -> list[tuple[str, str]]:
    if row.check == "cabling" and row.verdict is Verdict.FAIL:
        return [(row.place, "missing" if row.found == NO_LINK else "swapped")]
    if row.check in ("cabling", "rate"):
        state = {Verdict.PASS: "ok", Verdict.FAIL: "slow", Verdict.UNKNOWN: "unknown", Verdict.ADVICE: "ok"}[
            row.verdict
        ]
        return [(row.place, state)]
    if row.check in ("rails", "ports", "mtu") and row.verdict is Verdict.FAIL and len(row.cables) == 1:
        return [(row.cables[0], "fault")]
    return []
