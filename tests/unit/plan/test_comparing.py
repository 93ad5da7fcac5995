"""What a run would change, from the design, the last record and the engine's word."""

import json
from pathlib import Path

import pytest

from supernode import design, plan, spec
from supernode.design import allocating
from supernode.errors import Refusal
from supernode.records import DeviceOutput, Outputs
from supernode.spec import Identity, Inputs, Machines, SlotRecord, SlotState

LAB = (Path(__file__).resolve().parents[3] / "tests/lab/slim/environment.yml").read_text()


def lab(text=LAB, saved=None, **states):
    """The lab with a machine bound to every slot; `states` by designed host name with _ for -."""
    inputs = spec.read({"environment": text})
    allocation = allocating.extend(inputs.environment, saved)
    slots = design.build(Inputs(inputs.environment, allocation, Machines())).slots
    records = {
        slot: SlotRecord(
            state=states.get(name.replace("-", "_"), SlotState.NEW), identity=Identity(system_serial=f"S{slot}")
        )
        for slot, name in slots.items()
    }
    return design.build(Inputs(inputs.environment, allocation, Machines(slots=records)))


def applied(found, **changes):
    """The engine's word after a run that went well."""
    devices = {
        h.name: DeviceOutput(h.name, "machine", h.slot, str(h.management.ip), image="i1", power="On")
        for h in found.hosts
    }
    devices |= {s.name: DeviceOutput(s.name, "switch", s.slot, str(s.management.ip)) for s in found.switches}
    return Outputs(found.name, found.digest, {**devices, **changes})


def left(found):
    """The record of a run, as it comes back from disk."""
    return json.loads(json.dumps(plan.snapshot(found)))


def steps(found):
    return {step.device: step.kind for step in found.steps}


def test_the_first_plan_creates_all():
    found = plan.compare(lab(), None, None)
    assert set(steps(found).values()) == {"create"}
    assert len(found.steps) == 19
    assert {diff.change for diff in found.file_diffs} == {"new"}
    assert found.recabling == ()


def test_after_a_run_nothing_is_left():
    found = lab()
    again = plan.compare(found, left(found), applied(found), image="i1")
    assert again.empty
    assert again.reinstalls == ()


def test_the_hash_follows_the_plan():
    found = lab()
    one = plan.compare(found, left(found), applied(found))
    assert one.hash == plan.compare(lab(), left(found), applied(found)).hash
    assert one.hash != plan.compare(found, None, None).hash


def test_a_changed_wish_shows_as_a_diff_of_every_file_it_reaches():
    old = lab()
    found = plan.compare(lab(LAB.replace("mtu: 9000", "mtu: 4200")), left(old), applied(old))
    devices = {diff.device for diff in found.file_diffs}
    assert len(devices) == 19
    diff = next(d for d in found.file_diffs if d.device == "gpu-001" and d.path.endswith("50-rail0.network"))
    assert "-MTUBytes=9000\n+MTUBytes=4200\n" in diff.diff
    assert steps(found)["su01-leaf0"] == "update"
    assert "gpu-001" not in steps(found)  # its files are the roles' work: the machine itself does not change


def test_a_new_image_writes_the_disks_of_those_not_in_service():
    old = lab(gpu_001=SlotState.IN_SERVICE)
    found = plan.compare(old, left(old), applied(old), image="i2")
    assert steps(found)["gpu-001"] == "refuse"
    assert steps(found)["gpu-002"] == "reinstall"
    assert "r01u01" not in found.reinstalls
    assert len(found.reinstalls) == 8


def test_a_confirmed_slot_is_installed_anew():
    old = lab(gpu_001=SlotState.IN_SERVICE)
    found = plan.compare(old, left(old), applied(old), ("r01u01",), "i2")
    assert steps(found)["gpu-001"] == "reinstall"
    assert "r01u01" in found.reinstalls


def test_no_more_machines_in_service_change_in_one_run_than_allowed():
    states = {f"gpu_{n:03d}": SlotState.IN_SERVICE for n in range(1, 9)}
    old = lab(**states)
    slots = tuple(host.slot for host in old.hosts[:3])
    with pytest.raises(Refusal, match="3 of 8 machines in service would change in one run, at most 2 may"):
        plan.compare(old, left(old), applied(old), slots, "i2")
    assert len(plan.compare(old, left(old), applied(old), slots[:2], "i2").reinstalls) == 3  # with the spare


def test_a_quarantined_host_is_fenced_at_its_switches():
    old = lab()
    found = plan.compare(lab(gpu_003=SlotState.QUARANTINED), left(old), applied(old))
    assert steps(found)["gpu-003"] == "fence"
    shut = [diff for diff in found.file_diffs if diff.path == "/etc/frr/frr.conf"]
    assert {diff.device for diff in shut} == {f"su01-leaf{rail}" for rail in range(8)}
    assert all("+ shutdown\n" in diff.diff for diff in shut)


def test_a_late_machine_goes_on_where_it_stopped():
    old = lab()
    late = DeviceOutput("gpu-004", "machine", "r01u25", "", state="late", phase="deploy", reason="no report")
    found = plan.compare(old, left(old), applied(old, **{"gpu-004": late}))
    assert [(s.device, s.kind, s.phases[:2]) for s in found.steps] == [("gpu-004", "update", ("contact", "deploy"))]


def test_a_slot_without_a_machine_is_refused():
    found = plan.compare(design.build(spec.read({"environment": LAB})), None, None)
    assert steps(found)["gpu-001"] == "refuse"
    assert "supernode assign lab" in found.steps[0].reason


def test_what_leaves_the_design_is_said():
    old = lab()
    smaller = lab(LAB.replace("count: 8", "count: 7"), old.allocation)
    found = plan.compare(smaller, left(old), applied(old))
    assert steps(found)["gpu-008"] == "delete"
    assert [m.action for m in found.recabling] == ["pull"] * 8


def test_cables_that_move_are_pulled_before_they_are_plugged():
    tight = LAB.replace("spines: 2", "spines: 1")
    old = lab(tight)
    new = lab(LAB, old.allocation)
    found = plan.compare(new, left(old), applied(old))
    actions = [move.action for move in found.recabling]
    assert actions == sorted(actions, key=["pull", "plug"].index)
    pulled = {move.cable for move in found.recabling if move.action == "pull"}
    plugged = {(move.a, move.b) for move in found.recabling if move.action == "plug"}
    assert len(pulled) == 0 or pulled.isdisjoint({link.cable for link in new.links})
    assert {b[0] for _, b in plugged} == {"spine02"}


def test_a_pod_more_says_which_cables_of_the_upper_tiers_move():
    """One spine a pod with eight cables to each of the eight leaves of one unit, so that each unit is a pod."""
    three = LAB.replace("spines: 2", "spines: 1\n  tiers: 3\n  unit: 4").replace("uplink: 50 M", "uplink: 5 M")
    old = lab(three.replace("count: 8", "count: 4").replace("spares: 1", "spares: 0"))
    new = lab(three, old.allocation)
    found = plan.compare(new, left(old), applied(old))
    kinds = {link.cable: link.kind for link in new.links}
    assert {kinds[move.cable] for move in found.recabling if move.action == "plug"} == {"rail", "uplink", "core"}
    before = {link.cable: (link.a_device, link.a_port, link.b_device, link.b_port) for link in old.links}
    after = {link.cable: (link.a_device, link.a_port, link.b_device, link.b_port) for link in new.links}
    assert {m.cable for m in found.recabling if m.action == "pull"} == {c for c in before if after.get(c) != before[c]}


def test_a_record_of_digests_still_tells_what_changes(monkeypatch):
    from supernode.plan import recording

    monkeypatch.setattr(recording, "FULL_TEXT_LIMIT", 3)
    old = lab()
    assert plan.compare(old, left(old), applied(old)).file_diffs == ()
    found = plan.compare(lab(LAB.replace("mtu: 9000", "mtu: 4200")), left(old), applied(old))
    assert {diff.change for diff in found.file_diffs} == {"changed"}
    assert {diff.diff for diff in found.file_diffs} == {""}


def test_a_record_of_another_version_is_no_record():
    old = lab()
    assert plan.compare(old, {**left(old), "schema": 0}, applied(old)).file_diffs != ()


def test_a_slot_to_install_anew_that_is_no_machines_is_refused():
    found = lab()
    switch = found.switches[0].slot
    with pytest.raises(Refusal) as caught:
        plan.compare(found, None, None, ("r01u01", "gpu-003", "r01u0", switch))
    assert [problem.what.split(":")[0] for problem in caught.value.problems] == [
        "--reinstall gpu-003",
        "--reinstall r01u0",
        f"--reinstall {switch}",
    ]
    assert caught.value.problems[0].hint == f"did you mean {found.host('gpu-003').slot}?"
