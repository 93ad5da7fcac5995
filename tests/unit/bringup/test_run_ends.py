"""How a run ends when machines fail: 0 where the spares make up for all of them, else 1, and no stage for nobody."""

import json
from types import SimpleNamespace

import pytest
from straggling import LAB, World

from supernode import workspace
from supernode.bringup import run
from supernode.bringup.configure import Configured, Stats
from supernode.bringup.pacing import Turn
from supernode.bringup.run import Bringup, Options
from supernode.errors import CouldNotRun, WrongInput
from supernode.records import Finding, Verdict


@pytest.fixture
def bring_up(tmp_path, monkeypatch):
    """Bring up a world of fakes; returns the record and which stages ran."""
    ran = []

    def configure(_folder, design, outputs, _on_event, _run_dir):
        ran.append("configure")
        ready = [h.name for h in design.hosts if h.state != "quarantined" and outputs.devices[h.name].state == "ready"]
        return Configured((), {name: Stats(ok=1) for name in ready}, True, "", Turn())

    def verify(_folder, design, _outputs, _on_event, run_dir):
        ran.append("verify")
        return [Finding("reach", h.name, Verdict.PASS) for h in design.hosts if h.state != "quarantined"]

    def bring_up(only=None, **how):
        site = World(tmp_path, monkeypatch, **how)
        if only is not None:
            workspace.write_atomically(
                workspace.outputs_file(site.folder), json.dumps(site.look(site.design()).to_json())
            )
        monkeypatch.setattr(run, "placing", SimpleNamespace(place=lambda *_told: None))
        monkeypatch.setattr(run, "configure", SimpleNamespace(run=configure))
        monkeypatch.setattr(run, "verify", verify)
        monkeypatch.setattr(run, "prepare", SimpleNamespace(prepare=site.prepare))
        bringup = Bringup(site.folder, Options(only), site.events.append)
        record = bringup.run()
        return site, record, ran, bringup.report_path.read_text()

    return bring_up


def provisioned(record):
    return {f.place: f.verdict for f in record.findings if f.check == "provisioned" and f.verdict is not Verdict.PASS}


def test_a_spare_that_makes_up_for_the_failed_one_ends_well(bring_up):
    site, record, ran, page = bring_up(dead=["gpu-002"])
    assert (record.exit_code, ran) == (0, ["configure", "verify"])
    assert provisioned(record) == {"gpu-002": Verdict.ADVICE}
    assert site.states()["gpu-009"][0] == "in_service"
    assert site.states()["gpu-009"][1] == site.design().host("gpu-002").slot
    assert record.design == site.design().digest
    assert "POST 0x92" in page
    assert "gpu-009 (r02u17) took over" in page


def test_one_more_than_there_are_spares_ends_with_findings(bring_up):
    site, record, _, _ = bring_up(dead=["gpu-002", "gpu-005"])
    assert record.exit_code == 1
    assert provisioned(record) == {"gpu-002": Verdict.ADVICE, "gpu-005": Verdict.FAIL}
    assert sum(state == "in_service" for state, _ in site.states().values()) == 7


def test_below_the_minimum_nobody_is_configured(bring_up):
    text = LAB.replace("spares: 1", "spares: 1\n    minimum: 8")
    site, record, ran, page = bring_up(text=text, dead=["gpu-002", "gpu-005"])
    assert (record.exit_code, ran) == (1, [])
    assert "cannot go on with fewer than 8" in page
    assert site.states()["gpu-009"][0] == "new"  # what was made good stays


def test_a_machine_in_service_that_fails_is_named_and_stays(bring_up):
    site, record, ran, _ = bring_up(dead=["gpu-002"], gpu_002="in_service")
    assert (record.exit_code, ran) == (1, ["configure", "verify"])
    assert provisioned(record) == {"gpu-002": Verdict.FAIL}
    assert site.states()["gpu-002"] == ("in_service", "")
    assert site.states()["gpu-009"] == ("spare", "")


def test_a_site_that_fails_quarantines_nobody_and_says_so_once(bring_up):
    site, record, _, page = bring_up(dead=[f"gpu-00{n}" for n in range(1, 7)])
    assert record.exit_code == 1
    assert not [name for name, (state, _) in site.states().items() if state == "quarantined"]
    assert page.count("it is the site") >= 1
    assert len({f.cause for f in record.findings if f.verdict is Verdict.FAIL}) == 1


def test_checks_alone_put_nobody_into_service_whom_no_run_configured(bring_up):
    """Known bad: the playbooks had failed on a machine, and a run that only verified put it into service."""
    site, record, ran, _ = bring_up(only="verify", dead=(), **{f"gpu_00{n}": "in_service" for n in range(1, 8)})
    assert (record.exit_code, ran) == (1, ["verify"])
    assert (site.states()["gpu-007"][0], site.states()["gpu-008"][0]) == ("in_service", "new")
    slot = site.design().host("gpu-008").slot
    assert site.documents().machines.slots[slot].reason == "was not configured by this run"


def test_checks_alone_of_a_cluster_in_service_end_well(bring_up):
    _, record, _, _ = bring_up(only="verify", dead=(), **{f"gpu_00{n}": "in_service" for n in range(1, 9)})
    assert record.exit_code == 0


def broken_off(bring_up, monkeypatch, tmp_path, place):
    """Let a document be spoilt at a place of the run; returns the error and the run's record."""
    said = []

    def spoil(*_):
        said.append(place)
        raise WrongInput("machines.yml", "is no YAML", "mend it")

    monkeypatch.setattr(run.Bringup, place, spoil)
    with pytest.raises(CouldNotRun) as caught:
        bring_up(dead=())
    assert said
    (record,) = (tmp_path / "runs" / "lab").glob("*/run.json")
    return caught.value, json.loads(record.read_text())


def test_a_document_that_is_spoilt_during_a_run_does_not_say_that_nothing_was_touched(bring_up, monkeypatch, tmp_path):
    error, record = broken_off(bring_up, monkeypatch, tmp_path, "_record_machines")
    assert (error.exit_code, record["exit_code"], error.hint) == (3, 3, "mend it")
    assert "is no YAML" in error.what


def test_wrong_input_before_anything_is_touched_stays_wrong_input(bring_up, monkeypatch, tmp_path):
    error, record = broken_off(bring_up, monkeypatch, tmp_path, "_provision")
    assert (error.exit_code, record["exit_code"]) == (2, 2)
