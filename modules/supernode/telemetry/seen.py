"""What is known of one unit, and for how long it may be believed. Pure: times are handed in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, get_args

from supernode.clients.cdu import Freshness, Reading

PERIODS = 3  # a value that is older than so many of its unit's periods is dropped
UnitState = Literal["starting", "fresh", "frozen", "silent"]
STATES: tuple[UnitState, ...] = get_args(UnitState)


@dataclass
class Seen:
    """One unit as it was seen.

    An answer is a success only when the device's own mark (sequence or reading time) changed since the one before: a
    unit can answer for ever and show the past.

    Attributes:
        interval_s: how often it is read.
        started: when reading began, by the monotonic clock that all times here are of, except `success_at`.
        reading: the last answer.
        success_at: seconds since the epoch, when an answer was last found to be measured anew.
        errors: polls that gave nothing new, by reason.
        overruns: periods in which no poll began because the one before had not ended.
        duration_s: how long the last poll took.
    """

    interval_s: float
    started: float
    reading: Reading | None = None
    success_at: float | None = None
    errors: Counter[str] = field(default_factory=Counter)
    polls: int = 0
    overruns: int = 0
    duration_s: float = 0.0
    _answered: float | None = None
    _mark: str | None = None
    _freshness: Freshness = field(default_factory=Freshness)

    def answered(self, reading: Reading, now: float, wall: float) -> None:
        """Take an answer."""
        self.polls += 1
        before = self._mark
        self.reading, self._answered, self._mark = reading, now, reading.mark
        self._freshness.note(reading.mark, now)
        if not reading.mark:
            self.errors["no mark"] += 1
        elif before is not None and reading.mark != before:
            self.success_at = wall
        elif before is not None and not self.fresh(now):
            self.errors["frozen"] += 1
        if reading.implausible:
            self.errors["implausible"] += 1

    def failed(self, reason: str) -> None:
        """Take a poll that gave no answer."""
        self.polls += 1
        self.errors[reason] += 1

    def age(self, now: float) -> float | None:
        """Return how old the values are at most; None while nobody saw them change."""
        return self._freshness.age(now)

    def fresh(self, now: float) -> bool:
        """Tell whether the values may still be shown."""
        age = self.age(now)
        return age is not None and age <= PERIODS * self.interval_s

    def state(self, now: float) -> UnitState:
        """Say in one word what may be thought of the unit."""
        limit = PERIODS * self.interval_s
        if self.fresh(now):
            return "fresh"
        if now - self.started <= limit:
            return "starting"
        return "frozen" if self._answered is not None and now - self._answered <= limit else "silent"

    def values(self, now: float) -> Iterator[tuple[str, float]]:
        """Yield what may be shown, by signal; nothing where it is too old."""
        if self.reading is not None and self.fresh(now):
            yield from self.reading.values.items()
