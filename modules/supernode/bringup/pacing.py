"""Which machines in service the playbooks may change in this run: at most the share of them that one run may change.

Whoever is in service is only looked at first; most need nothing. The others wait for further runs, and the run says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from supernode.design import Design
from supernode.plan.share import at_once
from supernode.records import Event, Finding, State, Verdict
from supernode.spec import SlotState

CHECK = "configured"


class Looked(Protocol):
    """What a check run counted for one host."""

    @property
    def changed(self) -> int:
        """How many tasks would change something."""

    @property
    def unreachable(self) -> int:
        """Whether it could not be asked."""

    @property
    def good(self) -> bool:
        """Whether it was asked to the end."""


@dataclass(frozen=True)
class Turn:
    """Who is changed in this run.

    Attributes:
        now: may be changed, of all that were asked.
        held: would change and has to wait.
        would: how many of those in service would change.
        most: how many of them one run may change.
        serving: how many are in service.
    """

    now: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    would: int = 0
    most: int = 0
    serving: int = 0

    def why(self) -> str:
        """Say why some are held back, in one sentence."""
        return f"{self.would} of {self.serving} machines in service would change, one run changes at most {self.most}"


def serving(design: Design, names: Sequence[str]) -> tuple[str, ...]:
    """Return those of the hosts that are in service; one that machines.yml does not know counts as such."""
    records = design.machines.slots
    slots = {name: records.get(design.host(name).slot) for name in names}
    return tuple(name for name, record in slots.items() if record is None or record.state is SlotState.IN_SERVICE)


def to_ask(design: Design, names: Sequence[str]) -> tuple[str, ...]:
    """Return whom to ask before anything is changed: who is in service, and with them the spares that stand ready.

    Where nobody is in service nobody is asked: all are configured at once.
    """
    asked = serving(design, names)
    return tuple(name for name in names if name in asked or design.host(name).state == "spare") if asked else ()


def turn(design: Design, asked: Sequence[str], looked: Mapping[str, Looked]) -> Turn:
    """Choose whom to change, in the order of the design; who is not in service needs no turn.

    Of whom nobody can foretell what would change comes after the others: it may be so for ever, and they would wait.

    Args:
        design: knows the share and who is in service.
        asked: the hosts that were asked what would change.
        looked: what the check run counted for them. Who does not answer cannot be changed; who answered and was not
            asked to the end might change.
    """
    in_service = serving(design, asked)
    would = [name for name in asked if _would(looked.get(name))]
    waiting = sorted((name for name in would if name in in_service), key=lambda name: not _foretold(looked.get(name)))
    total = max(len(in_service), sum(r.state is SlotState.IN_SERVICE for r in design.machines.slots.values()))
    most = at_once(design.environment.machines.change_at_once, total)
    held = tuple(waiting[most:])
    return Turn(tuple(name for name in would if name not in held), held, len(waiting), most, total)


def _would(row: Looked | None) -> bool:
    return row is None or bool(row.changed) or not (row.good or row.unreachable)


def _foretold(row: Looked | None) -> bool:
    return row is not None and row.good


def as_look(event: Event) -> Event:
    """Tell of a check run what it is: nothing was changed, and what failed may not fail when it is done."""
    words = {State.CHANGED: "would change", State.FAILED: "cannot be foretold"}
    if event.state not in words:
        return event
    return Event(
        event.at, event.stage, event.host, event.phase, State.PROGRESS, f"{words[event.state]}: {event.detail}"
    )


def findings(design: Design, names: Sequence[str], bad: Mapping[str, str], turn: Turn) -> list[Finding]:
    """Return how each host came out of the playbooks.

    Args:
        design: for the hint.
        names: all hosts that were to be configured.
        bad: why the playbooks did not run to their end, by host.
        turn: who was held back.
    """
    again = f"`supernode bringup {design.name}` again changes the next of them"
    rows = []
    for name in names:
        if name in turn.held:
            rows.append(Finding(CHECK, name, Verdict.FAIL, "as designed", "held back", turn.why(), hint=again))
        elif name in bad:
            rows.append(Finding(CHECK, name, Verdict.FAIL, "as designed", bad[name], f"{name}: {bad[name]}"))
        else:
            rows.append(Finding(CHECK, name, Verdict.PASS, "as designed", "as designed"))
    return rows
