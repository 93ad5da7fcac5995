"""Machines taken out of service by hand, and given back: nobody moves, and a complete pool gets a spare."""

import json

import pytest
from typer.testing import CliRunner

from supernode import design as designing
from supernode import spec
from supernode.cli import main
from supernode.design import parking
from supernode.errors import Refusal
from supernode.records import DeviceOutput, Outputs
from supernode.spec import SlotRecord, SlotState

from .sites import LAB, lab


def bound(**states):
    """The lab with every host bound; the states by designed name with _ for -."""
    bare = lab()
    records = {
        host.slot: SlotRecord(state=states.get(host.name.replace("-", "_"), "spare" if n == 8 else "in_service"))
        for n, host in enumerate(bare.hosts)
    }
    return with_machines(bare, spec.Machines(slots=records))


def with_machines(design, machines):
    return designing.build(spec.Inputs(design.environment, design.allocation, machines))


def slot(design, name):
    return design.host(name).slot


def state(machines, design, name):
    return str(machines.slots[slot(design, name)].state)


def test_slots_are_named_by_slot_or_by_host():
    design = bound()
    assert parking.slots_of(design, ["gpu-002", slot(design, "gpu-001"), "gpu-002"]) == (
        slot(design, "gpu-002"),
        slot(design, "gpu-001"),
    )


def test_all_that_is_no_host_is_said_at_once():
    design = lab(machines=f"schema: 1\nslots:\n  {bound().host('gpu-001').slot}: {{state: new}}\n")
    with pytest.raises(Refusal) as caught:
        parking.slots_of(design, ["gpu-00", "su01-leaf0", "gpu-002", "gpu-001"])
    what = [problem.what for problem in caught.value.problems]
    assert ["no slot or host 'gpu-00'" in what[0], "a switch" in what[1], "no machine is bound" in what[2]] == [
        True
    ] * 3
    assert caught.value.problems[0].hint.startswith("did you mean gpu-00")


def test_who_is_parked_replaces_nobody_and_was_replaced_by_nobody():
    design = bound(gpu_009="in_service")
    one, spare = slot(design, "gpu-001"), slot(design, "gpu-009")
    slots = design.machines.slots
    linked = design.machines.model_copy(
        update={"slots": {**slots, spare: slots[spare].model_copy(update={"replaces": one})}}
    )
    assert parking.successors(parking.park(linked, {one: "again"}, SlotState.QUARANTINED)) == {}
    gone = parking.park(linked, {spare: "smoke"}, SlotState.QUARANTINED, "r1").slots[spare]
    assert (gone.state, gone.reason, gone.run, gone.replaces) == ("quarantined", "smoke", "r1", "")


def test_released_into_a_gap_is_new_and_into_a_complete_pool_a_spare():
    design = bound(gpu_001="quarantined", gpu_002="quarantined", gpu_009="in_service")
    both = [slot(design, "gpu-001"), slot(design, "gpu-002")]
    after = parking.release(design, both)
    assert [state(after, design, name) for name in ("gpu-001", "gpu-002")] == ["new", "spare"]
    found = with_machines(design, after)
    assert sum(host.state == "active" for host in found.hosts) == 8
    assert found.host("gpu-001").management == design.host("gpu-001").management


def test_a_drained_machine_that_is_released_is_counted_once():
    design = bound(gpu_003="drained")
    after = parking.release(design, [slot(design, "gpu-003")])
    assert state(after, design, "gpu-003") == "new"


def test_who_is_not_parked_is_not_released():
    design = bound(gpu_003="drained")
    with pytest.raises(Refusal, match="is in_service, neither quarantined nor drained"):
        parking.release(design, [slot(design, "gpu-003"), slot(design, "gpu-004")])


@pytest.fixture
def site(tmp_path, monkeypatch):
    folder = tmp_path / "inventories" / "lab"
    folder.mkdir(parents=True)
    (folder / "environment.yml").write_text(LAB)
    (folder / "machines.yml").write_text(spec.machines_text(bound().machines))
    monkeypatch.setenv("SUPERNODE_ROOT", str(tmp_path))
    return folder / "machines.yml"


def test_the_verbs_write_machines_yml(site):
    def call(*words):
        return CliRunner().invoke(main.app, list(words))

    assert call("quarantine", "lab", "gpu-003", "--reason", "burnt smell").exit_code == 0
    assert call("drain", "lab", "gpu-004", "--reason", "firmware").exit_code == 0
    text = site.read_text()
    assert "{state: quarantined, reason: burnt smell}" in text
    assert "{state: drained, reason: firmware}" in text
    said = call("release", "lab", "gpu-003", "gpu-004")
    assert "gpu-003: quarantined -> new" in said.stdout
    assert "burnt smell" not in site.read_text()
    assert call("release", "lab", "gpu-003").exit_code == 2
    assert call("quarantine", "lab", "gpu-999", "--reason", "x").exit_code == 2


def test_show_names_who_replaced_whom_and_how_the_machine_last_came_up(site, tmp_path):
    design = bound(gpu_001="quarantined", gpu_009="in_service")
    one, spare = slot(design, "gpu-001"), slot(design, "gpu-009")
    slots = {**design.machines.slots, spare: design.machines.slots[spare].model_copy(update={"replaces": one})}
    site.write_text(spec.machines_text(spec.Machines(slots=slots)))
    late = DeviceOutput("gpu-001", "machine", one, "", "late", "deploy", "no report", evidence=("POST code: 0x92",))
    state = tmp_path / ".supernode" / "lab"
    state.mkdir(parents=True)
    (state / "outputs.json").write_text(json.dumps(Outputs("lab", design.digest, {"gpu-001": late}).to_json()))

    def shown(*words):
        return CliRunner().invoke(main.app, ["show", "lab", *words]).stdout

    found = json.loads(shown("gpu-001", "--json"))
    assert (found["replaced_by"], found["last"]["evidence"]) == ("gpu-009", ["POST code: 0x92"])
    assert all(text in shown("gpu-001") for text in ("gpu-009", "late in deploy: no report", "POST code: 0x92"))
    assert f"takes over for {one}" in shown("gpu-009")
    assert json.loads(shown("gpu-002", "--json"))["last"] is None
