"""The engine's events, as recorded, become the events of a run and the rows of a preview."""

import json
from pathlib import Path

import pytest
from pulumi.automation import EngineEvent

from supernode.bringup.provision import events
from supernode.records import Event, State

RECORDED = Path(__file__).parent / "recorded"


def recorded(name):
    return [EngineEvent.from_json(json.loads(line)) for line in (RECORDED / f"{name}.jsonl").read_text().splitlines()]


def told(name):
    return [event for event in (events.to_event(e, 7.0) for e in recorded(name)) if event is not None]


def test_a_machine_that_is_late_is_followed_from_start_to_end():
    steps = [(e.phase, e.state, e.detail) for e in told("up1") if e.host == "gpu-002"]
    assert steps == [
        ("create", State.STARTED, ""),
        ("bios", State.PROGRESS, "wrote 2 attributes"),
        ("deploy", State.PROGRESS, "waiting for the report"),
        ("warning", State.PROGRESS, "late: deploy: no report after 600 s"),
        ("deploy", State.LATE, "no report after 600 s"),
    ]


def test_a_machine_that_becomes_ready_is_changed_and_times_are_the_callers():
    steps = [e for e in told("up1") if e.host == "gpu-001"]
    assert steps[-1] == Event(7.0, "provision", "gpu-001", "create", State.CHANGED, "")


def test_components_and_the_stack_itself_are_no_hosts():
    hosts = {e.host for name in ("up1", "up2") for e in told(name)}
    assert hosts == {None, "gpu-001", "gpu-002", "gpu-003", "su01-leaf0", "su01-leaf1"}


def test_a_failed_update_says_what_changes_what_went_wrong_and_that_it_failed():
    steps = [(e.phase, e.state, e.detail) for e in told("up2") if e.host == "gpu-001"]
    assert steps == [
        ("update", State.STARTED, "bios"),
        ("engine", State.FAILED, "Exception calling application: BMC says no"),
        ("update", State.FAILED, "update failed"),
    ]
    errors = [e for e in map(events.error_of, recorded("up2")) if e]
    assert "gpu-001: Exception calling application: BMC says no" in errors


def test_a_deleted_machine_is_a_change():
    assert [(e.phase, e.state) for e in told("up2") if e.host == "gpu-003"] == [
        ("delete", State.STARTED),
        ("delete", State.CHANGED),
    ]


def test_the_summary_counts():
    assert [e.detail for e in told("up2") if e.phase == "summary"] == ["1 delete, 3 same, 3 update"]


def test_debug_lines_are_dropped():
    assert any(e.diagnostic_event and e.diagnostic_event.severity == "debug" for e in recorded("up1"))
    assert not any("registering" in e.detail for e in told("up1"))


def test_a_preview_with_refresh_gives_drift_and_what_would_be_done():
    rows = [row for row in (events.to_row(e, "lab") for e in recorded("preview")) if row]
    assert events.Row("lab", "gpu-001", "drift", "power: On -> Off") in rows
    assert events.Row("lab", "gpu-001", "update", "power: Off -> On") in rows
    assert events.Row("lab", "gpu-003", "create", "") in rows
    assert events.Row("lab", "su01-leaf0", "update", "files") in rows
    assert [r.resource for r in rows if r.op == "drift"] == ["gpu-001"]


def test_a_refresh_gives_its_drift_alone():
    rows = [row for row in (events.to_drift(e, "lab") for e in recorded("refresh")) if row]
    assert rows == [events.Row("lab", "gpu-001", "drift", "power: On -> Off")]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("bios.Sriov", "on"),
        ('bios["a.b"]', "dotted"),
        ("files[1].content", "two"),
        ("files[9].content", None),
        ("bios.nothing.below", None),
        ("bios", {"Sriov": "on", "a.b": "dotted"}),
    ],
)
def test_a_property_path_is_followed(path, value):
    document = {"bios": {"Sriov": "on", "a.b": "dotted"}, "files": [{"content": "one"}, {"content": "two"}]}
    assert events.at_path(document, path) == value
