"""`supernode kinds` and what `supernode report` says of the checks."""

import json

import pytest
from typer.testing import CliRunner

from supernode import catalog
from supernode.cli import inputs
from supernode.cli.main import app
from supernode.records import Run
from supernode.report import json as run_json
from supernode.verify import checks


def test_every_kind_is_listed_with_its_source():
    done = CliRunner().invoke(app, ["kinds", "--json"])
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    assert [row["kind"] for row in found["servers"]] == list(catalog.server_kinds())
    assert [row["kind"] for row in found["switches"]] == list(catalog.switch_kinds())
    assert [row["kind"] for row in found["cooling"]] == list(catalog.cdu_kinds())
    h100 = next(row for row in found["servers"] if row["kind"] == "dgx-h100")
    assert (h100["gpus"], h100["rails"], h100["rail_mbit_s"]) == (8, 8, 400_000)
    assert all(row["source"] for rows in found.values() for row in rows)


def test_the_table_names_them_all():
    done = CliRunner().invoke(app, ["kinds"])
    assert all(kind in done.stdout for kind in (*catalog.server_kinds(), *catalog.switch_kinds(), *catalog.cdu_kinds()))
    assert "8 x 400 Gbit/s" in done.stdout


@pytest.fixture
def a_run(tmp_path, monkeypatch):
    folder, _ = inputs.find("lab")
    monkeypatch.setattr(type(folder), "runs", tmp_path)
    record = Run("20261130-1", "lab", "d" * 64, "p" * 64, 1796064000.0)
    (tmp_path / record.id).mkdir()
    (tmp_path / record.id / "run.json").write_text(json.dumps(run_json.to_json(record)))
    return record


def test_a_report_says_how_many_checks_are_proven(a_run):
    proven, modelled = checks.proof()
    assert proven + modelled == len(checks.CHECKS)
    done = CliRunner().invoke(app, ["report", "lab"], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.stderr
    assert f"checks: {proven} proven against recorded or live tools, {modelled} modelled" in done.stdout


def test_a_report_in_json_is_the_record_alone(a_run):
    done = CliRunner().invoke(app, ["report", "lab", "--json"])
    assert json.loads(done.stdout) == run_json.to_json(a_run)
