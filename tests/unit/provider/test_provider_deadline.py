"""A run's time bounds every machine's deadline; a bare `pulumi up` has the machine's own."""

import pytest

from supernode.provider import timing


@pytest.mark.parametrize(
    ("until", "wanted"),
    [("", 900), ("5000", 900), ("4500", 500), ("4030", timing.AT_LEAST_S), ("3000", timing.AT_LEAST_S), ("soon", 900)],
)
def test_the_deadline_ends_with_the_run_and_leaves_time_for_a_look(monkeypatch, until, wanted):
    monkeypatch.setenv(timing.UNTIL, until)
    monkeypatch.setattr(timing.time, "time", lambda: 4000.0)
    assert timing.within_the_run(900) == wanted


def test_a_shorter_deadline_stays(monkeypatch):
    monkeypatch.setenv(timing.UNTIL, "1")
    assert timing.within_the_run(20) == 20
