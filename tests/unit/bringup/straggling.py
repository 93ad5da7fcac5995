"""A lab of nine that is bound, and what the engine says of it when some machines or switches do not do as told."""

from __future__ import annotations

import hashlib
from pathlib import Path

from supernode import design as designing
from supernode import spec
from supernode.records import DeviceOutput, Outputs
from supernode.spec import Identity, Inputs, Machines, SlotRecord

LAB = (Path(__file__).resolve().parents[3] / "inventories" / "lab" / "environment.yml").read_text()


def lab(text=LAB, **states):
    """The lab's design, every slot bound; `states` by designed name with _ for -."""
    inputs = spec.read({"environment": text})
    bare = designing.build(inputs)
    records = {}
    for number, (slot, name) in enumerate(bare.slots.items()):
        planned = "spare" if bare.is_host(name) and bare.planned_spare(name) else "new"
        state = states.get(name.replace("-", "_"), planned)
        reason = "by hand" if state == "quarantined" else ""
        records[slot] = SlotRecord(state=state, reason=reason, identity=Identity(system_serial=f"S{number:04d}"))
    return designing.build(Inputs(inputs.environment, bare.allocation, Machines(slots=records)))


def applied(design, switch):
    return {f.path: hashlib.sha256(f.content.encode()).hexdigest() for f in design.switch_files(switch)}


def outputs(design, dead=(), deaf=(), before=None):
    """What an `up` of this design leaves: `dead` machines are late, `deaf` switches keep what they had."""
    devices = {}
    for host in design.hosts:
        found = DeviceOutput(host.name, "machine", host.slot, str(host.management.ip), image="i1", power="On")
        if host.state == "quarantined":  # never contacted: what was known of it stays
            found = (before.devices if before else {}).get(host.name, late(found))
        devices[host.name] = late(found) if host.name in dead else found
    for switch in design.switches:
        ready = DeviceOutput(switch.name, "switch", switch.slot, "", applied=applied(design, switch.name))
        failed = DeviceOutput(switch.name, "switch", switch.slot, "", "late", "contact", "no login within 60 s")
        devices[switch.name] = failed if switch.name in deaf else ready
    return Outputs(design.name, design.digest, devices)


def late(found):
    return DeviceOutput(
        found.name, "machine", found.slot, found.address, "late", "deploy", "no report in 60 s", evidence=("POST 0x92",)
    )


def state(design, name):
    return str(design.machines.slots[design.host(name).slot].state)
