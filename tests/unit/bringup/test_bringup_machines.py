"""What a run says about machines: who goes into service, who does not, and why."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from supernode import design as designing
from supernode import spec
from supernode.bringup import machines
from supernode.records import DeviceOutput, Finding, Outputs, Verdict

LAB = Path(__file__).resolve().parents[3] / "tests" / "lab" / "slim" / "environment.yml"


@pytest.fixture(scope="module")
def inputs():
    return spec.read({"environment": LAB.read_text()})


@pytest.fixture(scope="module")
def design(inputs):
    return designing.build(inputs)


def outputs(design, **changed):
    devices = {h.name: DeviceOutput(h.name, "machine", h.slot, str(h.management.ip)) for h in design.hosts}
    return Outputs("lab", design.digest, {**devices, **changed})


def test_clean_run_puts_the_designed_hosts_into_service_and_keeps_the_spare(inputs, design):
    after = machines.after(inputs.machines, design, outputs(design), [], "r1")
    states = [after.slots[h.slot].state for h in design.hosts]
    assert states == ["in_service"] * 8 + ["spare"]
    assert machines.in_service(after) == 8


def test_second_clean_run_changes_nothing(inputs, design):
    once = machines.after(inputs.machines, design, outputs(design), [], "r1")
    assert machines.after(once, design, outputs(design), [], "r2") == once


def test_failing_cable_holds_back_the_host_at_its_end(inputs, design):
    cable = next(link for link in design.links_of("gpu-003") if link.rail == 4)
    finding = Finding("cabling", cable.cable, Verdict.FAIL, cause="exchanged", cables=(cable.cable,))
    after = machines.after(inputs.machines, design, outputs(design), [finding], "r1")
    record = after.slots[design.host("gpu-003").slot]
    assert (record.state, record.reason) == ("new", "exchanged")
    assert machines.in_service(after) == 7


def test_a_cooling_unit_that_leaks_holds_back_who_stands_in_its_racks(inputs):
    cooled = LAB.read_text().replace("pools:\n", "pools:\n  - {name: head, kind: lab-head, count: 1, racks: [r09]}\n")
    cooled = cooled.replace("racks:\n", "racks:\n  - {name: r09, units: 48}\n", 1) + (
        "cooling: {agent: head, units: [{name: cdu1, kind: lab-cdu-modbus, address: 198.18.2.201, racks: [r02]}]}\n"
    )
    design = designing.build(spec.read({"environment": cooled}))
    leak = Finding("cooling", "cdu1", Verdict.FAIL, cause="cdu1: leak detected by manifold (critical)")
    after = machines.after(inputs.machines, design, outputs(design), [leak], "r1")
    held = {host.name for host in design.hosts if after.slots[host.slot].reason == leak.cause}
    assert held == {host.name for host in design.hosts if host.rack == "r02"} == {"gpu-007", "gpu-008", "gpu-009"}
    assert after.slots[design.host("gpu-007").slot].state == "new"
    assert after.slots[design.host("gpu-001").slot].state == "in_service"


def test_late_machine_says_where_it_stopped(inputs, design):
    host = design.host("gpu-002")
    late = DeviceOutput(host.name, "machine", host.slot, "", state="late", phase="deploy", reason="no report in 600 s")
    after = machines.after(inputs.machines, design, outputs(design, **{host.name: late}), [], "r1")
    assert after.slots[host.slot].reason == "late in deploy: no report in 600 s"


def test_a_finding_does_not_take_a_machine_out_of_service(inputs, design):
    once = machines.after(inputs.machines, design, outputs(design), [], "r1")
    finding = Finding("time", "gpu-001", Verdict.FAIL, wanted="under 100 ms", found="3 s")
    record = machines.after(once, design, outputs(design), [finding], "r2").slots[design.host("gpu-001").slot]
    assert record.state == "in_service"
    assert "3 s" in record.reason


def test_advice_holds_nobody_back(inputs, design):
    advice = Finding("rate", "gpu-001:rail0", Verdict.ADVICE, wanted="400", found="380")
    assert machines.in_service(machines.after(inputs.machines, design, outputs(design), [advice], "r1")) == 8


@pytest.mark.parametrize("verdict", [Verdict.FAIL, Verdict.UNKNOWN])
def test_what_was_not_seen_is_not_healthy(inputs, design, verdict):
    finding = Finding("time", "gpu-005", verdict, wanted="under 100 ms")
    after = machines.after(inputs.machines, design, outputs(design), [finding], "r1")
    assert after.slots[design.host("gpu-005").slot].state == "new"
    assert machines.in_service(after) == 7


def test_a_host_on_which_the_playbooks_failed_does_not_go_into_service(inputs, design):
    counted = {h.name: SimpleNamespace(good=h.name != "gpu-001") for h in design.hosts if h.name != "gpu-002"}
    lacking = machines.unconfigured(design, outputs(design), counted)
    assert sorted(lacking) == ["gpu-001", "gpu-002"]
    after = machines.after(inputs.machines, design, outputs(design), [], "r1", lacking)
    assert machines.in_service(after) == 6
    assert "playbooks" in after.slots[design.host("gpu-001").slot].reason


def test_a_late_machine_is_not_called_unconfigured(design):
    host = design.host("gpu-002")
    late = DeviceOutput(host.name, "machine", host.slot, "", state="late", phase="deploy", reason="no report")
    counted = {h.name: SimpleNamespace(good=True) for h in design.hosts if h.name != "gpu-002"}
    assert machines.unconfigured(design, outputs(design, **{host.name: late}), counted) == {}


def test_what_somebody_wrote_during_the_run_is_left_alone(inputs, design):
    before = inputs.machines
    after = machines.after(before, design, outputs(design), [], "r1")
    slot = design.host("gpu-003").slot
    theirs = spec.SlotRecord(state="quarantined", reason="smoke")
    now = before.model_copy(update={"slots": {**before.slots, slot: theirs}})
    merged, left = machines.merge(before, after, now)
    assert left == (slot,)
    assert merged.slots[slot] == theirs
    assert machines.in_service(merged) == 7


def test_the_host_key_that_was_pinned_is_recorded_whatever_the_machine_s_state(inputs, design):
    key, newer = "ssh-ed25519 AAAAone", "ssh-ed25519 AAAAtwo"
    host = design.host("gpu-001")

    def run(before, *keys, state="ready"):
        said = DeviceOutput(host.name, "machine", host.slot, "", state=state, host_keys=keys)
        return machines.after(before, design, outputs(design, **{host.name: said}), [], "r").slots[host.slot]

    first = run(inputs.machines, f"{key} root@gpu-001")
    assert first.identity.ssh_host_key == key
    known = inputs.machines.model_copy(update={"slots": {host.slot: first.model_copy(update={"state": "drained"})}})
    assert run(known).identity.ssh_host_key == key
    assert run(known, newer, state="failed").identity.ssh_host_key == key  # known bad: not proven by a login
    assert run(known, newer, key).identity.ssh_host_key == key
    assert run(known, newer).identity.ssh_host_key == newer  # an installation of ours brought it
    assert run(known, newer).state == "drained"
