"""Hosts that did not answer are looked at once more, and the report says what was found."""

import dataclasses
from pathlib import Path

import pytest

from supernode import design as designing
from supernode import spec
from supernode.bringup import second_look, stragglers
from supernode.bringup.provision.events import Row
from supernode.errors import CouldNotRun
from supernode.records import DeviceOutput, Finding, Outputs, Verdict

LAB = Path(__file__).resolve().parents[3] / "tests" / "lab" / "slim" / "environment.yml"


@pytest.fixture(scope="module")
def design():
    return designing.build(spec.read({"environment": LAB.read_text()}))


@pytest.fixture
def outputs(design):
    return Outputs("lab", design.digest, {h.name: DeviceOutput(h.name, "machine", h.slot, "") for h in design.hosts})


def exchanged(outputs, name):
    found = dataclasses.replace(
        outputs.devices[name], state="failed", phase="contact", reason="another machine: B, not A"
    )
    return dataclasses.replace(outputs, devices={**outputs.devices, name: found})


def test_what_the_look_found_takes_the_place_of_what_provisioning_said(design, outputs, monkeypatch):
    asked, events = [], []

    def refresh(folder, design, on_event, *, only):
        asked.extend(only)
        return [Row("lab", "gpu-002", "drift", "failed in contact: another machine: B, not A")]

    monkeypatch.setattr(second_look.provision, "refresh", refresh)
    monkeypatch.setattr(second_look.provision, "outputs", lambda folder: exchanged(outputs, "gpu-002"))
    found = second_look.look(None, design, outputs, {"gpu-002": "did not answer"}, events.append)
    assert asked == ["gpu-002"]
    assert [(e.host, e.phase) for e in events] == [("gpu-002", "look")]
    before = [*stragglers.findings(design, outputs), Finding("configured", "gpu-002", Verdict.FAIL)]
    after = second_look.retold(before, design, found, ["gpu-002"])
    assert len(after) == len(before)
    told = next(f for f in after if (f.check, f.place) == (stragglers.CHECK, "gpu-002"))
    assert told.verdict is Verdict.FAIL
    assert "another machine: B, not A" in told.cause
    assert [f for f in after if f.place != "gpu-002"] == [f for f in before if f.place != "gpu-002"]


def test_a_look_that_cannot_be_had_changes_nothing_and_says_so(design, outputs, monkeypatch):
    def refresh(*arguments, **more):
        raise CouldNotRun("stack lab", "another run holds it")

    monkeypatch.setattr(second_look.provision, "refresh", refresh)
    events = []
    assert second_look.look(None, design, outputs, ["gpu-002"], events.append) is outputs
    assert "another run holds it" in events[0].detail
