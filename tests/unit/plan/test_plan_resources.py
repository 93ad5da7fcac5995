"""What a stack is given: from the lab's own documents, as plain JSON of the provider's schema."""

import json
import re
from dataclasses import dataclass, field

import pytest
import yaml

from supernode import design as designing
from supernode import packaged, spec
from supernode.errors import CouldNotRun
from supernode.plan import resources
from supernode.provider import schema
from supernode.provider.check import machine
from supernode.workspace import EnvironmentFolder

ENVIRONMENT = (packaged.root() / "tests" / "lab" / "slim" / "environment.yml").read_text()


@dataclass(frozen=True)
class Facts:
    isos: dict[str, str]
    image: str = "1" * 64
    ca: str = "secrets/serve-ca.pem"
    design: str = field(default="")


def build(states=None, edit=lambda text: text):
    """Build the lab's Design with a machine bound to every slot."""
    bare = designing.build(spec.read({"environment": edit(ENVIRONMENT)}))
    slots = {
        device.slot: {
            "state": (states or {}).get(device.name, "new"),
            "identity": {"system_serial": f"S{n}", "bmc_mac": f"02:00:00:00:00:{n:02x}"},
        }
        for n, device in enumerate([*bare.hosts, *bare.switches], start=1)
        if (states or {}).get(device.name) != "absent"
    }
    machines = yaml.safe_dump({"schema": 1, "slots": slots})
    return designing.build(spec.read({"environment": edit(ENVIRONMENT), "machines": machines}))


def facts_of(design):
    return Facts({host.name: f"{n:064x}" for n, host in enumerate(design.hosts, start=1)})


def stack(design, name="lab"):
    return resources.stack(design, name, facts_of(design), "file:key")


def test_every_machine_and_switch_of_the_stack_is_there_under_its_designed_name():
    design = build()
    found = stack(design)
    assert set(found.machines) == {host.name for host in design.hosts}
    assert set(found.switches) == {switch.name for switch in design.switches}
    assert json.loads(json.dumps([found.machines, found.switches]))


def test_inputs_are_those_of_the_providers_schema():
    found = stack(build())
    assert set(found.machines["gpu-001"]) == set(schema.MACHINE_INPUTS)
    assert set(found.switches["spine01"]) == set(schema.SWITCH_INPUTS)


def test_a_machine_is_told_where_its_controller_medium_and_report_are():
    design = build()
    made = stack(design).machines["gpu-003"]
    host = design.host("gpu-003")
    assert made["slot"] == host.slot
    assert made["address"] == str(host.management.ip)
    assert made["bmc"]["address"] == str(host.bmc)
    assert made["media"]["url"] == f"https://198.18.31.253:8443/boot/gpu-003/{made['media']['digest']}.iso"
    assert made["enrolment"] == "https://198.18.31.253:8443/enrolled/gpu-003"
    assert made["identity"] == {"system_serial": "S3", "bmc_mac": "02:00:00:00:00:03"}
    assert made["bios"] == {"SriovEnable": "Enabled", "WorkloadProfile": "HPC"}
    assert made["deadlineS"] == 600


def test_a_machine_of_a_cooled_rack_is_held_to_its_unit():
    block = """cooling:
  units: [{name: cdu1, kind: lab-cdu-modbus, address: 198.18.2.201, racks: [r01]}]
  interlock: {max_age_s: 20, override: {r01u09: by hand}}
"""
    found = stack(build(edit=lambda text: text + block)).machines
    by_slot = {row["slot"]: row["interlock"] for row in found.values()}
    assert by_slot["r01u01"]["unit"] == "cdu1"
    assert by_slot["r01u01"]["maxAgeS"] == 20
    assert "override" not in by_slot["r01u01"]
    assert by_slot["r01u09"]["override"] == "by hand"
    assert {slot for slot, row in by_slot.items() if not row} == {s for s in by_slot if not s.startswith("r01")}
    assert all(machine(row) == [] for row in found.values())


def with_factory(text):
    block = """bmc:
  username: admin
  password: file:secrets/bmc/{slot}
  factory: {username: root, password: "file:old/{slot}"}
  ca: delivery/bmc-ca.pem
"""
    return re.sub(r"^bmc:\n(  .*\n)+", block, text, flags=re.MULTILINE)


def test_each_machine_has_its_own_passwords_and_they_stay_references():
    found = stack(build(edit=with_factory)).machines
    assert found["gpu-001"]["bmc"] == {
        "address": "198.18.2.11",
        "username": "admin",
        "password": "file:secrets/bmc/r01u01",
        "factory": {"username": "root", "password": "file:old/r01u01"},
        "media": "virtual-media",
        "ca": "delivery/bmc-ca.pem",
    }
    passwords = {made["bmc"]["password"] for made in found.values()}
    assert len(passwords) == len(found)


def test_a_pin_is_handed_on_and_is_no_identity():
    identity = {"system_serial": "S1", "bmc_fingerprint": "ab" * 32}
    machines = yaml.safe_dump({"schema": 1, "slots": {"r01u01": {"identity": identity}}})
    without = ENVIRONMENT.replace("  ca: delivery/bmc-ca.pem\n", "")
    design = designing.build(spec.read({"environment": without, "machines": machines}))
    made = stack(design).machines
    assert made["gpu-001"]["bmc"]["pin"] == "ab" * 32
    assert made["gpu-001"]["identity"] == {"system_serial": "S1"}
    assert "ca" not in made["gpu-001"]["bmc"]
    assert "pin" not in made["gpu-002"]["bmc"]


def test_a_switch_gets_its_rendered_files():
    made = stack(build()).switches["su01-leaf0"]
    assert "/etc/frr/frr.conf" in {file["path"] for file in made["files"]}
    assert all(set(file) == {"path", "content", "mode"} for file in made["files"])


@pytest.mark.parametrize(
    ("state", "in_service"),
    [
        ("new", False),
        ("spare", False),
        ("drained", False),
        ("quarantined", False),
        ("in_service", True),
        ("absent", True),
    ],
)
def test_a_slot_nobody_knows_counts_as_in_service(state, in_service):
    assert stack(build({"gpu-001": state})).machines["gpu-001"]["inService"] is in_service


def test_without_quarantine_only_spares_wait_and_for_the_whole_fabric():
    design = build({"gpu-009": "spare"})
    assert stack(design).after == {"gpu-009": tuple(sorted(switch.name for switch in design.switches))}


def test_a_quarantined_slot_makes_every_machine_wait_for_the_switches_that_fence_it():
    design = build({"gpu-002": "quarantined"})
    after = stack(design).after
    leaves = tuple(f"su01-leaf{rail}" for rail in range(8))
    assert "gpu-002" not in after
    assert {name: waits for name, waits in after.items() if name != "gpu-009"} == dict.fromkeys(
        [h.name for h in design.hosts if h.name not in {"gpu-002", "gpu-009"}], leaves
    )


def test_stacks_share_everything_once():
    design = build(edit=lambda text: text + "\nstacks: {limit: 9}\n")
    shares = [stack(design, name) for name in design.stacks()]
    assert len(shares) >= 3
    names = [name for share in shares for name in (*share.machines, *share.switches)]
    assert sorted(names) == sorted([*(h.name for h in design.hosts), *(s.name for s in design.switches)])
    assert all(share.size <= 9 for share in shares)


def test_a_stack_that_the_design_does_not_have_is_an_error():
    with pytest.raises(CouldNotRun, match="stack lab-su7: environment lab is cut into lab"):
        stack(build(), "lab-su7")


def test_a_machine_without_a_medium_says_what_to_run():
    design = build()
    with pytest.raises(CouldNotRun, match="no deploy medium") as error:
        resources.stack(design, "lab", Facts({}), "file:key")
    assert "supernode image lab" in error.value.hint


def test_the_key_is_referred_to_from_the_environments_folder(tmp_path):
    folder = EnvironmentFolder("lab", tmp_path / "inventories" / "lab", tmp_path)
    assert folder.ssh_key == "file:secrets/ssh_id_ed25519"
    assert not (tmp_path / ".supernode").exists()
