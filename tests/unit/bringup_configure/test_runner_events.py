"""Ansible's events, recorded from a real run with a host that was not there and a task that failed, as ours."""

import json
from pathlib import Path

import pytest

from supernode.bringup import configure, runner_events
from supernode.records import State

RECORDED = json.loads((Path(__file__).parent / "events.json").read_text())["events"]


def of(kind):
    return next(raw for raw in RECORDED if raw["event"] == kind)


def only(raw):
    (event,) = runner_events.read(raw)
    return event


def test_the_whole_recording_in_order():
    found = [(e.host, e.phase, e.state) for raw in RECORDED for e in runner_events.read(raw)]
    assert found == [
        (None, "play", State.STARTED),
        ("h1", "base_system", State.PROGRESS),
        ("h1", "base_system", State.OK),
        ("h2", "base_system", State.OK),
        ("h2", "base_system", State.FAILED),
        ("h1", "base_system", State.SKIPPED),
        ("h3", "base_system", State.FAILED),
        ("h1", "configure", State.OK),
        ("h2", "configure", State.FAILED),
        ("h3", "configure", State.FAILED),
    ]


def test_a_failure_says_the_task_and_the_modules_own_words():
    event = only(of("runner_on_failed"))
    assert event.detail == "Fetch the index and install the others: No package matching 'no-such-package' is available"


def test_an_unreachable_host_says_ssh_s_last_words():
    assert only(of("runner_on_unreachable")).detail == (
        "unreachable: ssh: connect to host 198.19.240.99 port 22: No route to host"
    )


def test_the_time_is_the_event_s_own():
    assert only(of("playbook_on_play_start")).at == pytest.approx(1796064649.305476)


def test_a_changed_result_is_a_change():
    raw = of("runner_on_ok")
    data = {**raw["event_data"], "res": {**raw["event_data"]["res"], "changed": True}}
    assert only({**raw, "event_data": data}).state is State.CHANGED


def test_a_tolerated_failure_is_none():
    raw = of("runner_on_failed")
    assert list(runner_events.read({**raw, "event_data": {**raw["event_data"], "ignore_errors": True}})) == []


def test_a_hidden_result_stays_hidden():
    raw = of("runner_on_failed")
    result = {"msg": "the password is hunter2", "_ansible_no_log": True}
    event = only({**raw, "event_data": {**raw["event_data"], "res": result}})
    assert event.state is State.FAILED
    assert "hunter2" not in event.detail


@pytest.mark.parametrize("raw", [{}, {"event": "verbose"}, {"event": "runner_on_ok"}, {"event": "playbook_on_stats"}])
def test_what_is_not_understood_is_passed_over(raw):
    assert all(event.state is not State.FAILED for event in runner_events.read(raw))


def test_stats_are_rows_by_host():
    stats = configure.stats_of(of("playbook_on_stats")["event_data"])
    assert {host: row.good for host, row in stats.items()} == {"h1": True, "h2": False, "h3": False}
    assert (stats["h1"].ok, stats["h2"].unreachable, stats["h3"].failed) == (11, 1, 1)
