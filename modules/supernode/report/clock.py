"""The 45-minute clock of a run, its verdict in words, and how durations and moments are written."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from supernode.records import Run, StageRecord, Verdict
from supernode.report.problems import group

GOAL_S = 2700.0


@dataclass(frozen=True)
class Said:
    """A run's verdict: tone is "ok", "bad" or "open"."""

    words: str
    tone: str


def verdict(run: Run) -> Said:
    """Say how a run ended, by its exit code first: an interrupted run is neither good nor bad."""
    problems = group(run.findings)
    failing = sum(problem.verdict is Verdict.FAIL for problem in problems)
    unknown = sum(problem.verdict is Verdict.UNKNOWN for problem in problems)
    if run.exit_code == 0:
        return Said("Verified" if run.findings else "Finished", "ok")
    if run.exit_code == 130:
        return Said("Interrupted", "open")
    if run.exit_code == 137:
        return Said("Killed", "open")
    if run.exit_code == 3:
        return Said("Could not run", "bad")
    if run.exit_code is None:
        return Said("Unfinished", "open")
    if failing:
        return Said(f"{failing} problem{'s' * (failing != 1)} found", "bad")
    return Said(f"{unknown} not seen" if unknown else "Fewer machines than asked for", "bad")


def budgeted(run: Run) -> list[StageRecord]:
    """Return the stages on the 45-minute clock."""
    return [stage for stage in run.stages if stage.budget_s]


def beside(run: Run) -> list[StageRecord]:
    """Return the stages with a clock of their own: what comes before T0 or after T1."""
    return [stage for stage in run.stages if not stage.budget_s]


def used(run: Run) -> float | None:
    """Return the seconds from T0, the start of the first budgeted stage, to T1, the end of the last; else None."""
    stages = budgeted(run)
    if not stages:
        return None
    ends = [stage.ended for stage in stages if stage.ended is not None]
    last = run.ended if run.ended is not None else stages[-1].started
    return (max(ends) if len(ends) == len(stages) else last) - stages[0].started


def budget(run: Run) -> float:
    """Return the seconds that the budgeted stages may take together; the goal where none has a budget."""
    return sum(stage.budget_s for stage in budgeted(run)) or GOAL_S


def span(seconds: float) -> str:
    """Write a duration as `12:07`, or `1:02:07` from an hour on."""
    whole = round(seconds)
    hours, rest = divmod(abs(whole), 3600)
    text = f"{rest // 60:02d}:{rest % 60:02d}"
    return ("-" if whole < 0 else "") + (f"{hours}:{text}" if hours else text)


def moment(at: float) -> str:
    """Write a moment in UTC, to the second."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")
