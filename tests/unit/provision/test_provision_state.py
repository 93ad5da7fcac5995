import copy
import json
from pathlib import Path

import pytest

from supernode.bringup.provision import state
from supernode.errors import CouldNotRun
from supernode.records import Outputs

EXPORT = json.loads((Path(__file__).parent / "recorded" / "export.json").read_text())


def test_machines_and_switches_come_back_and_components_do_not():
    outputs = state.read("lab", {"lab": EXPORT})
    assert {name: d.kind for name, d in outputs.devices.items()} == {
        "gpu-001": "machine",
        "gpu-002": "machine",
        "su01-leaf0": "switch",
        "su01-leaf1": "switch",
    }
    late = outputs.devices["gpu-002"]
    assert (late.state, late.phase, late.reason) == ("late", "deploy", "no report after 600 s")
    assert (late.slot, late.address, late.serial, late.uuid) == ("r01u02", "198.18.0.12", "S", "U")
    assert outputs.devices["gpu-001"].host_keys == ("ssh-ed25519 ECHO",)
    assert outputs.devices["su01-leaf0"].host_keys == ("ssh-ed25519 K",)
    assert outputs.design == "abc"
    assert Outputs.from_json(json.loads(json.dumps(outputs.to_json()))) == outputs


def edited(change):
    export = copy.deepcopy(EXPORT)
    change(export)
    return export


def test_stacks_of_different_designs_are_no_design():
    def other(export):
        export["deployment"]["resources"][0]["outputs"]["design"] = "other"

    assert state.read("lab", {"lab": EXPORT, "lab-su2": edited(other)}).design == ""


def test_what_a_replacement_has_yet_to_delete_is_not_the_machine():
    def doubled(export):
        machine = next(r for r in export["deployment"]["resources"] if r["urn"].endswith("gpu-001"))
        old = {**machine, "delete": True, "outputs": {**machine["outputs"], "serial": "OLD"}}
        export["deployment"]["resources"].append(old)

    assert state.read("lab", {"lab": edited(doubled)}).devices["gpu-001"].serial == "S"


def test_a_machine_without_a_status_is_not_taken_for_ready():
    def bare(export):
        machine = next(r for r in export["deployment"]["resources"] if r["urn"].endswith("gpu-001"))
        machine["outputs"] = {}

    assert state.read("lab", {"lab": edited(bare)}).devices["gpu-001"].state == "failed"


def test_an_export_of_another_version_is_refused():
    with pytest.raises(CouldNotRun, match="version 4"):
        state.read("lab", {"lab": {**EXPORT, "version": 4}})


def test_an_empty_stack_has_nothing():
    assert state.read("lab", {"lab": {"version": 3, "deployment": {}}}) == Outputs("lab", "", {})
