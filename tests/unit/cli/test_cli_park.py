"""Parking by hand: the document first, then the scheduler, which may be told by the next run."""

import shutil

import pytest
import yaml
from typer.testing import CliRunner

from supernode import packaged, workspace
from supernode.bringup import handover
from supernode.cli.main import app
from supernode.errors import CouldNotRun
from supernode.records import Outputs, State


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "lab"
    place.mkdir()
    shutil.copy(packaged.root() / "inventories/lab/environment.yml", place)
    slots = "schema: 1\nslots:\n  r01u01: {state: in_service}\n"
    (place / "machines.yml").write_text(slots)
    found = workspace.find(str(place))
    workspace.write_atomically(workspace.outputs_file(found), '{"schema": 1}')
    return found


def drained(folder):
    done = CliRunner().invoke(app, ["drain", str(folder.folder), "gpu-001", "--reason", "smoke"])
    record = yaml.safe_load((folder.folder / "machines.yml").read_text())["slots"]["r01u01"]
    return done, (record["state"], record["reason"])


@pytest.fixture
def provisioned(monkeypatch):
    monkeypatch.setattr(workspace, "read_outputs", lambda _folder: Outputs("lab", "", {}))


def test_the_scheduler_is_told_of_the_slot_as_it_was_written(folder, provisioned, monkeypatch):
    asked = []

    def close(_folder, _design, _outputs, machines, slots):
        asked.append({slot: machines.slots[slot].reason for slot in slots})
        return {"gpu-001": (State.CHANGED, "supernode: smoke")}

    monkeypatch.setattr(handover, "close", close)
    done, record = drained(folder)
    assert (done.exit_code, record) == (0, ("drained", "smoke"))
    assert asked == [{"r01u01": "smoke"}]
    assert "scheduler: gpu-001: changed: supernode: smoke" in done.stderr


def test_a_scheduler_that_does_not_answer_keeps_nobody_in_service(folder, provisioned, monkeypatch):
    def close(*_told):
        raise CouldNotRun("head-001", "does not answer")

    monkeypatch.setattr(handover, "close", close)
    done, record = drained(folder)
    assert (done.exit_code, record) == (0, ("drained", "smoke"))
    assert "the next run tells it" in " ".join(done.stderr.split())


def test_before_the_first_run_there_is_nobody_to_tell(folder):
    workspace.outputs_file(folder).unlink()
    done, record = drained(folder)
    assert (done.exit_code, record, done.stderr) == (0, ("drained", "smoke"), "")
