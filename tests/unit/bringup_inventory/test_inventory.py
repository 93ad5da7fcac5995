"""The inventory as a pure function of Design and Outputs."""

import dataclasses
import json
import shlex
from pathlib import Path

import pytest

from supernode import design, packaged, spec
from supernode.bringup import inventory
from supernode.errors import CouldNotRun
from supernode.records import DeviceOutput, Outputs

LAB = packaged.root() / "tests" / "lab" / "slim" / "environment.yml"
STATE = Path("/somewhere with a space/.supernode/lab")
KEY = Path("/somewhere with a space/inventories/lab/secrets/ssh_id_ed25519")


def designed(machines=None):
    return design.build(spec.read({"environment": LAB.read_text(), **({"machines": machines} if machines else {})}))


@pytest.fixture(scope="module")
def lab():
    return designed()


def outputs_of(lab, **states):
    """What a good provisioning leaves, but for the hosts named; None leaves one out."""
    devices = {}
    for device in [*lab.hosts, *lab.switches]:
        address = str(device.management.ip)
        kind = "machine" if device in lab.hosts else "switch"
        devices[device.name] = DeviceOutput(
            device.name, kind, device.slot, address, host_keys=(f"ssh-ed25519 AAAA{device.name} made-there",)
        )
    for name, change in states.items():
        name = name.replace("_", "-")
        devices[name] = dataclasses.replace(devices[name], **change) if change else devices.pop(name) and None
    return Outputs(lab.name, lab.digest, {n: d for n, d in devices.items() if d})


def test_every_designed_host_is_in_its_groups(lab):
    built = inventory.build(lab, outputs_of(lab), STATE, KEY)
    assert built.groups["nodes"] == tuple(h.name for h in lab.hosts)
    assert built.groups["spares"] == tuple(h.name for h in lab.hosts if h.state == "spare") != ()
    assert built.groups["pool_gpu"] == built.groups["nodes"]
    assert set(built.groups["rack_r01"]) | set(built.groups["rack_r02"]) == set(built.groups["nodes"])
    assert built.groups["unavailable"] == ()


def test_late_and_failed_hosts_are_in_no_play(lab):
    found = outputs_of(
        lab,
        gpu_002={"state": "late", "phase": "deploy", "reason": "no report after 600 s"},
        gpu_005={"state": "failed", "phase": "bmc", "reason": "connection refused"},
    )
    built = inventory.build(lab, found, STATE, KEY)
    assert built.groups["unavailable"] == ("gpu-002", "gpu-005")
    assert not {"gpu-002", "gpu-005"} & {h for g, m in built.groups.items() if g != "unavailable" for h in m}
    assert built.hostvars["gpu-002"] == {"supernode_unavailable": "late in deploy: no report after 600 s"}


def test_a_quarantined_host_is_left_out_whatever_the_engine_says(lab):
    slot = lab.host("gpu-003").slot
    quarantined = designed(f"schema: 1\nslots:\n  {slot}: {{state: quarantined, reason: bad GPU, run: x}}\n")
    for found in (outputs_of(quarantined), outputs_of(quarantined, gpu_003=None)):
        built = inventory.build(quarantined, found, STATE, KEY)
        assert built.groups["unavailable"] == ("gpu-003",)
        assert "gpu-003" not in built.groups["nodes"]


@pytest.mark.parametrize("name", ["gpu_004", "spine01"])
def test_a_device_without_an_output_is_refused_by_name(lab, name):
    with pytest.raises(CouldNotRun, match=f"designed and not provisioned: {name.replace('_', '-')}"):
        inventory.build(lab, outputs_of(lab, **{name: None}), STATE, KEY)


def test_an_output_without_a_device_is_refused_by_name(lab):
    found = outputs_of(lab)
    stranger = DeviceOutput("gpu-077", "machine", "r01u47", "198.18.0.99")
    with pytest.raises(CouldNotRun, match="provisioned and not designed: gpu-077"):
        inventory.build(lab, dataclasses.replace(found, devices={**found.devices, "gpu-077": stranger}), STATE, KEY)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"design": "3f2a" * 16}, r"provisioned from another design \(3f2a3f2a, now "),
        ({"design": ""}, "stacks were provisioned from different designs"),
        ({"environment": "prod"}, "the outputs are those of prod"),
    ],
)
def test_outputs_of_another_design_are_refused(lab, change, said):
    with pytest.raises(CouldNotRun, match=said) as refused:
        inventory.build(lab, dataclasses.replace(outputs_of(lab), **change), STATE, KEY)
    assert "supernode bringup lab" in refused.value.hint


def test_the_connection_pins_the_host_key(lab):
    variables = inventory.build(lab, outputs_of(lab), STATE, KEY).hostvars["gpu-001"]
    assert variables["ansible_host"] == str(lab.host("gpu-001").management.ip)
    assert variables["ansible_user"] == lab.environment.access.user
    words = shlex.split(variables["ansible_ssh_common_args"])
    assert 'UserKnownHostsFile="/somewhere with a space/.supernode/lab/known_hosts"' in words
    assert "StrictHostKeyChecking=yes" in words
    assert "GlobalKnownHostsFile=/dev/null" in words


def test_known_hosts_has_a_line_for_every_key_of_every_device(lab):
    lines = inventory.known_hosts(outputs_of(lab)).splitlines()
    assert len(lines) == len(lab.hosts) + len(lab.switches)
    assert f"{lab.host('gpu-001').management.ip},gpu-001 ssh-ed25519 AAAAgpu-001" in lines


def test_an_inventory_survives_its_document(lab):
    built = inventory.build(lab, outputs_of(lab), STATE, KEY)
    assert inventory.Inventory.from_json(json.loads(json.dumps(built.to_json()))) == built
    with pytest.raises(ValueError, match="schema 2"):
        inventory.Inventory.from_json({**built.to_json(), "schema": 2})


def test_a_group_s_name_has_only_what_ansible_allows():
    assert inventory.group_name("pool", "gpu-h100.a") == "pool_gpu_h100_a"
