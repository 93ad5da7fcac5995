"""The 45-minute clock: what each stage may take and what it took.

T0 is the moment the first budgeted stage starts (management controllers enrolled, images made), T1 the moment the last
one ends. What comes before T0 is measured on a clock of its own.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from supernode.records import StageRecord
from supernode.units import Seconds


class Clock:
    """Keeps one record for each stage, in the order in which they ran.

    Args:
        budgets: seconds allowed to each stage; a stage without one is timed and has no deadline.
        now: seconds since the epoch; tests pass their own.
    """

    def __init__(self, budgets: Mapping[str, Seconds], now: Callable[[], float] = time.time) -> None:
        self._budgets, self._now = budgets, now
        self.records: list[StageRecord] = []

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage; its outcome is "ok", "failed" (it raised), "interrupted" or "over budget"."""
        record = StageRecord(name, self._budgets.get(name, Seconds(0)), self._now())
        self.records.append(record)
        outcome = "failed"
        try:
            yield
            outcome = "ok"
        except KeyboardInterrupt:
            outcome = "interrupted"
            raise
        finally:
            ended = self._now()
            if outcome == "ok" and record.budget_s and ended - record.started > record.budget_s:
                outcome = "over budget"
            self.records[-1] = dataclasses.replace(record, ended=ended, outcome=outcome)

    @property
    def t0(self) -> float | None:
        """When the first budgeted stage started."""
        return next((r.started for r in self.records if r.budget_s), None)

    @property
    def t1(self) -> float | None:
        """When the last budgeted stage ended."""
        return next((r.ended for r in reversed(self.records) if r.budget_s), None)
