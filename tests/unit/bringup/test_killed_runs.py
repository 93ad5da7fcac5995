"""The record of a run that was killed: completed from its events and closed by the next run."""

import dataclasses
import json

from supernode.bringup import killed
from supernode.bringup.record import RunFolder
from supernode.records import Event, Run, State
from supernode.report import clock
from supernode.report import json as run_json
from supernode.workspace import EnvironmentFolder


def run_of(folder, run_id, **changes):
    made = RunFolder(folder, run_id)
    run = dataclasses.replace(Run(run_id, "lab", "d" * 64, "p" * 64, 100.0), **changes)
    made.save(run)
    for at in (101.0, 102.0):
        made.event(Event(at, "configure", "gpu-001", "rails", State.OK, f"at {at}"))
    made.close()
    return made.path


def read(path):
    return run_json.from_json(json.loads((path / "run.json").read_text()))


def test_a_killed_run_is_closed_with_all_its_events_and_a_page(tmp_path):
    folder = EnvironmentFolder("lab", tmp_path, tmp_path)
    dead = run_of(folder, "20261130-1")
    with (dead / "events.jsonl").open("a") as stream:
        stream.write('{"at": 103.0, "stage": "conf')  # the kill came while this line was written
    done = run_of(folder, "20261130-2", ended=110.0, exit_code=0)
    before = (done / "run.json").read_text()
    run_of(folder, "20261130-3")

    assert killed.close(folder, "20261130-3") == ["20261130-1"]

    run = read(dead)
    assert (run.exit_code, run.ended) == (killed.EXIT_CODE, 102.0)
    assert [event.detail for event in run.events[:-1]] == ["at 101.0", "at 102.0"]
    assert run.events[-1].stage == "configure"
    assert "closed by run 20261130-3" in run.events[-1].detail
    assert clock.verdict(run).words == "Killed"
    assert "Killed" in (dead / "report.html").read_text()
    assert (done / "run.json").read_text() == before
    assert read(folder.runs / "20261130-3").ended is None
    assert killed.close(folder, "20261130-3") == []


def test_a_record_of_another_version_is_left_alone(tmp_path):
    folder = EnvironmentFolder("lab", tmp_path, tmp_path)
    path = run_of(folder, "20261130-1") / "run.json"
    path.write_text('{"schema": 99}')
    assert killed.close(folder, "20261130-2") == []
    assert path.read_text() == '{"schema": 99}'
