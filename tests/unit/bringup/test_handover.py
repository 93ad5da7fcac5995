"""Which nodes a run opens and closes, and what the controller is told; over a real SSH server, in Slurm's own words."""

import functools
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from supernode import design, spec
from supernode.bringup import handover
from supernode.clients import slurm, ssh
from supernode.design import parking
from supernode.errors import CouldNotRun
from supernode.records import DeviceOutput, Finding, Outputs, State, Verdict

sys.path.insert(0, str(Path(__file__).parents[1] / "clients"))
import ssh_server

ROOT = Path(__file__).resolve().parents[3]
SAMPLES = ROOT / "tests/unit/verify/samples"
SECTIONS = """
gpu_driver: {version: "1.0", packages: [nvidia-driver=1.0], source: {url: "https://mirror.example/", key: key.asc}}
scheduler: {kind: slurm, controller: head}
"""
HEAD = "pools:\n  - {name: head, kind: lab-head, count: 1, racks: [r09]}\n"
COOLING = """
cooling:
  agent: head
  units:
    - {name: cdu1, kind: lab-cdu-modbus, address: 198.18.2.201, racks: [r01, r02]}
    - {name: cdu2, kind: lab-cdu-modbus, address: 198.18.2.202, racks: [r03, r09]}
"""
RACK = "racks:\n  - {name: r09, units: 48}\n"
SLOTS = {f"gpu-{n:03d}": f"r{1 + (n > 6):02d}u{8 * ((n - 1) % 6) + 1:02d}" for n in range(1, 10)}


def built(more="", **states):
    text = (ROOT / "tests/lab/slim/environment.yml").read_text() + SECTIONS + more
    text = text.replace("pools:\n", HEAD).replace("racks:\n", RACK, 1)
    lines = [
        f"  {slot}: {{state: {states.get(name.replace('-', '_'), 'in_service')}, reason: ''}}"
        for name, slot in SLOTS.items()
        if name != "gpu-009"
    ]
    machines = "\n".join(["schema: 1", "slots:", *lines, "  r02u17: {state: spare}", "  r09u01: {state: in_service}"])
    return design.build(spec.read({"environment": text, "machines": machines}))


def fails(place, cause="", verdict=Verdict.FAIL, cables=()):
    return Finding("rate", place, verdict, cause=cause, cables=cables)


def wished(found, findings=()):
    return handover.wishes(found, found.machines, findings)


def node(name, sample):
    line = (SAMPLES / f"slurm-22.05.8-{sample}.txt").read_text()
    return slurm.parse(line.replace("gpu-001", name))


def test_who_is_in_service_and_well_takes_jobs_and_a_spare_does_not():
    rows, site = wished(built())
    assert rows["gpu-001"] == handover.Wish(open=True)
    assert rows["gpu-009"] == handover.Wish(reason="supernode: a spare")
    assert "head-001" not in rows
    assert site == ""


def test_a_finding_closes_the_nodes_that_it_stands_against_with_its_cause():
    found = built()
    cable = found.links_of("gpu-003")[2].cable
    rows, _ = wished(
        found, [fails(cable, f"cable {cable} carries 5 Mbit/s", cables=(cable,)), fails("gpu-003", "late")]
    )
    assert rows["gpu-003"].reason == f"supernode: cable {cable} carries 5 Mbit/s"
    assert all(rows[f"gpu-{n:03d}"].open for n in (1, 2, 4, 5, 6, 7, 8))


def test_what_was_not_seen_neither_opens_nor_closes():
    """The controller answered nobody while the checks ran: every node stays as it is."""
    unseen = [fails(f"gpu-{n:03d}", verdict=Verdict.UNKNOWN) for n in range(1, 9)]
    rows, _ = wished(built(), unseen)
    assert {rows[f"gpu-{n:03d}"] for n in range(1, 9)} == {handover.Wish()}


def test_findings_against_most_of_them_are_the_sites_and_close_none():
    rows, site = wished(built(), [fails(f"gpu-{n:03d}", "no time") for n in range(1, 8)])
    assert rows["gpu-001"] == handover.Wish()
    assert rows["gpu-008"].open
    assert "7 of 8 nodes in service" in site


def wet(unit, verdict=Verdict.FAIL):
    return Finding("cooling", unit, verdict, cause=f"{unit}: leak detected by manifold (critical)")


def test_a_unit_that_leaks_closes_the_racks_that_it_cools_however_many_they_are():
    rows, site = wished(built(COOLING), [wet("cdu1"), fails("gpu-002", "late")])
    assert rows["gpu-001"].reason == "supernode: cdu1: leak detected by manifold (critical)"
    assert rows["gpu-008"] == rows["gpu-001"]
    assert rows["gpu-002"].reason == "supernode: late"
    assert site == ""
    assert all(wished(built(COOLING), [wet("cdu2")])[0][name].open for name in ("gpu-001", "gpu-008"))


def test_units_that_nobody_saw_and_units_that_all_fail_close_none():
    rows, site = wished(built(COOLING), [wet("cdu1", Verdict.UNKNOWN)])
    assert (rows["gpu-001"], site) == (handover.Wish(), "")
    rows, site = wished(built(COOLING), [wet("cdu1"), wet("cdu2"), fails("gpu-002", "late")])
    assert (rows["gpu-001"], rows["gpu-002"].reason) == (handover.Wish(), "supernode: late")
    assert "2 of 2 cooling units" in site


@pytest.mark.parametrize(
    ("state", "reason"),
    [("new", "not yet verified"), ("quarantined", "quarantined"), ("drained", "drained")],
)
def test_who_is_not_in_service_is_closed_by_its_record(state, reason):
    rows, _ = wished(built(gpu_002=state))
    assert rows["gpu-002"] == handover.Wish(reason=f"supernode: {reason}")


def test_a_reason_is_one_line_that_is_still_read():
    long = handover.reason("cable C00001\nis " + "long " * 60)
    assert len(long) <= handover.REASON_MOST
    assert long.startswith("supernode: cable C00001 is long")
    assert long.endswith("...")


OPEN, CLOSED = handover.Wish(open=True), handover.Wish(reason="supernode: cable C00007 carries 5 Mbit/s")


@pytest.mark.parametrize(
    ("sample", "wish", "words"),
    [
        ("not-verified", OPEN, "state=resume"),
        ("drained", OPEN, "state=resume"),
        ("idle", OPEN, ""),
        ("drained-by-hand", OPEN, ""),
        ("drained-by-hand", CLOSED, ""),
        ("idle", CLOSED, "state=drain reason='supernode: cable C00007 carries 5 Mbit/s'"),
        ("drained", CLOSED, ""),
        ("not-verified", CLOSED, "state=drain reason='supernode: cable C00007 carries 5 Mbit/s'"),
        ("drained", handover.Wish(), ""),
        ("fewer-gpus", OPEN, "state=resume"),
    ],
)
def test_only_what_differs_is_said_and_a_persons_word_stands(sample, wish, words):
    assert handover.change(node("gpu-001", sample), wish)[0] == words


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A controller that shows recorded nodes, and answers an update as scontrol does."""
    key_text, key = ssh_server.new_key()
    samples = {f"gpu-{n:03d}": "not-verified" for n in range(1, 10)} | {"gpu-004": "drained-by-hand"}
    del samples["gpu-008"]
    updates = []

    def handler(command, stdin):
        if command.endswith("show nodes"):
            texts = ((SAMPLES / f"slurm-22.05.8-{s}.txt").read_text().replace("gpu-001", n) for n, s in samples.items())
            return 0, "".join(texts), ""
        answers = ""
        for name, words in re.findall(r"scontrol update nodename=(\S+) (.*) 2>&1", stdin.decode()):
            updates.append((name, words))
            bad = name == "gpu-005"
            answers += f"{name} {1 if bad else 0} {'slurm_update error: Invalid node state specified' if bad else ''}\n"
        return 0, answers, ""

    folder = SimpleNamespace(ssh_key_file=tmp_path / "key")
    folder.ssh_key_file.write_text(key_text)
    with ssh_server.serving(ssh_server.new_key()[1], key, handler) as server:
        monkeypatch.setattr(ssh, "connect", functools.partial(ssh.connect, port=server.port))
        keys = (ssh_server.line(server.host_key),)
        head = DeviceOutput("head-001", "machine", "r09u01", "127.0.0.1", host_keys=keys)
        yield SimpleNamespace(folder=folder, updates=updates, outputs=Outputs("lab", "", {"head-001": head}))


def settled(site, found, findings=(), outputs=None):
    events = []
    rows = handover.settle(site.folder, found, outputs or site.outputs, found.machines, findings, events.append)
    return rows, {event.host: (event.state, event.detail) for event in events}


def test_the_controller_is_told_of_each_node_and_says_which_it_refuses(site):
    rows, events = settled(site, built(), [fails("gpu-002", "gpu-002: 7 of 8 accelerators")])
    told = dict(site.updates)
    assert told["gpu-001"] == "state=resume"
    assert told["gpu-002"] == "state=drain reason='supernode: gpu-002: 7 of 8 accelerators'"
    assert told["gpu-009"] == "state=drain reason='supernode: a spare'"
    assert "gpu-004" not in told
    assert events["gpu-001"] == (State.CHANGED, "takes jobs")
    assert events["gpu-004"] == (State.SKIPPED, "left alone: root closed it: DIMM looks odd, jane")
    assert events["gpu-005"][0] is State.FAILED
    causes = {row.place: row.cause for row in rows}
    assert set(causes) == {"gpu-005", "gpu-008"}
    assert "Invalid node state" in causes["gpu-005"]
    assert "knows no such node" in causes["gpu-008"]


def test_a_controller_that_does_not_answer_is_a_finding_and_ends_nothing(site):
    gone = Outputs("lab", "", {"head-001": DeviceOutput("head-001", "machine", "r09u01", "127.0.0.1", state="late")})
    rows, events = settled(site, built(), outputs=gone)
    assert [(row.check, row.place, row.verdict) for row in rows] == [("scheduler", "head-001", Verdict.FAIL)]
    assert set(events) == {"head-001"}
    assert site.updates == []


def test_who_is_parked_is_closed_at_once_and_nobody_else_is_touched(site):
    found = built()
    slots = [SLOTS["gpu-001"], SLOTS["gpu-004"], "r09u01"]
    after = parking.park(found.machines, dict.fromkeys(slots, "burnt smell"), spec.SlotState.DRAINED)
    told = handover.close(site.folder, found, site.outputs, after, slots)
    assert dict(site.updates) == {"gpu-001": "state=drain reason='supernode: burnt smell'"}
    assert told["gpu-001"] == (State.CHANGED, "supernode: burnt smell")
    assert told["gpu-004"][0] is State.SKIPPED  # a person closed it
    assert set(told) == {"gpu-001", "gpu-004"}
    with pytest.raises(CouldNotRun, match="head-001"):
        handover.close(site.folder, found, Outputs("lab", "", {}), after, slots)


def test_without_a_scheduler_nothing_is_said(site):
    text = (ROOT / "tests/lab/slim/environment.yml").read_text()
    assert settled(site, design.build(spec.read({"environment": text}))) == ([], {})
