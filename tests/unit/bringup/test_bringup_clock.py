"""The 45-minute clock."""

import pytest

from supernode.bringup.clock import Clock
from supernode.units import Seconds


def clock(*times):
    ticks = iter(times)
    return Clock({"provision": Seconds(100), "verify": Seconds(10)}, now=lambda: next(ticks))


def test_t0_starts_with_the_first_budgeted_stage():
    timing = clock(0, 500, 500, 560, 560, 565)
    for name in ("prepare", "provision", "verify"):
        with timing.stage(name):
            pass
    assert (timing.t0, timing.t1) == (500, 565)
    assert [r.outcome for r in timing.records] == ["ok", "ok", "ok"]


def test_a_stage_over_its_budget_says_so():
    timing = clock(0, 101)
    with timing.stage("provision"):
        pass
    assert timing.records[0].outcome == "over budget"


def test_a_stage_that_raises_is_recorded_as_failed():
    timing = clock(0, 1)
    with pytest.raises(RuntimeError), timing.stage("provision"):
        raise RuntimeError
    assert (timing.records[0].outcome, timing.records[0].ended) == ("failed", 1)
