"""machines.yml of a proposal: identities as found, states as far as they show. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from supernode.bringup.survey.fabric import rail_ports, switch_kind
from supernode.bringup.survey.observed import SwitchSeen
from supernode.bringup.survey.pairing import Machine, identity
from supernode.design import Design, Host, assigning
from supernode.spec import Identity, Machines, SlotRecord, SlotState

_BY_A_PERSON = {SlotState.SPARE, SlotState.DRAINED, SlotState.QUARANTINED}


def machines_of(
    design: Design, found: tuple[Machine, ...], switches: Mapping[str, SwitchSeen], known: Machines
) -> tuple[Machines, tuple[str, ...]]:
    """Return the machines of a design's slots, and what of them could not be observed.

    Args:
        design: of the proposal, without machines.
        found: servers; one stands where its chassis says.
        switches: by name; one stands where the design places its name.
        known: the environment's own machines.yml, for what does not show.
    """
    slots: dict[str, SlotRecord] = {}
    notes: list[str] = []
    by_slot = {machine.slot: machine for machine in found if machine.slot}
    unplaced = {machine.name: machine for machine in found if machine.name and not machine.slot}
    for host in design.hosts:
        machine, old = by_slot.get(host.slot) or unplaced.get(host.name), known.slots.get(host.slot)
        if machine is not None:
            if not machine.slot:
                notes.append(f"{host.slot}: that {host.name} stands there is taken from its name")
            slots[host.slot] = _server(design, host, machine, old, notes)
        elif old is not None:
            slots[host.slot] = old
            notes.append(f"{host.slot}: nothing was seen there; the record is as it was")
    for row in design.switches:
        switch, old = switches.get(row.name), known.slots.get(row.slot)
        if switch is not None:
            slots[row.slot] = _switch(row.slot, switch, old, notes)
        elif old is not None:
            slots[row.slot] = old
            notes.append(f"{row.slot}: {row.name} was not seen; the record is as it was")
    return Machines.model_validate({"schema": 1, "slots": slots}), tuple(notes)


def _server(design: Design, host: Host, machine: Machine, old: SlotRecord | None, notes: list[str]) -> SlotRecord:
    told = Identity(**{key: value for key, value in identity(machine).items() if key in Identity.model_fields})
    if old is not None and _same(old.identity, told):
        if old.state in _BY_A_PERSON or not serves(machine):
            notes.append(f"{host.slot}: state {old.state} is taken from the environment's machines.yml")
            return old.model_copy(update={"identity": _merged(old.identity, told, host.slot, notes)})
        merged = _merged(old.identity, told, host.slot, notes)
        if old.state is SlotState.IN_SERVICE:
            return old.model_copy(update={"identity": merged})
        return SlotRecord(state=SlotState.IN_SERVICE, identity=merged)  # it may be in use: nobody touches it then
    if design.planned_spare(host.name):
        notes.append(f"{host.slot}: spare by the proposed count alone")
        return SlotRecord(state=SlotState.SPARE, identity=told)
    return SlotRecord(state=SlotState.IN_SERVICE if serves(machine) else SlotState.NEW, identity=told)


def loose(machine: Machine) -> SlotRecord:
    """Return the record of a machine that no design has a place for yet."""
    told = {key: value for key, value in identity(machine).items() if key in Identity.model_fields}
    return SlotRecord(state=SlotState.IN_SERVICE if serves(machine) else SlotState.NEW, identity=Identity(**told))


def serves(machine: Machine) -> bool:
    """Tell whether a machine runs and has rails that are up and have their address: then it may be in use."""
    host = machine.host
    if host is None or host.why:
        return False
    ports = [(host.ports or {}).get(name) for name in rail_ports(host, machine.kind).values()]
    return bool(ports) and all(port is not None and port.up and port.addresses for port in ports)


def _same(old: Identity, new: Identity) -> bool:
    """Tell whether two identities are one machine: what both know of its labels agrees, and they share some."""
    one, other = old.known(), new.known()
    shared = [key for key in ("system_serial", "uuid", "board_serial", "chassis_serial") if key in one and key in other]
    return bool(shared) and all(one[key].lower() == other[key].lower() for key in shared)


def _merged(old: Identity, new: Identity, slot: str, notes: list[str]) -> Identity:
    lacking = sorted(set(old.known()) - set(new.known()))
    if lacking:
        notes.append(f"{slot}: {', '.join(lacking)} not observed: taken from the environment's machines.yml")
    return Identity(**(old.known() | new.known()))


def _switch(slot: str, switch: SwitchSeen, old: SlotRecord | None, notes: list[str]) -> SlotRecord:
    port = switch.management_port()
    found = {
        "ssh_host_key": switch.host_key,
        "management_mac": port.mac if port is not None else "",
        "system_serial": switch.serial if switch_kind(switch) else "",
    }
    told = Identity(**{k: v for k, v in found.items() if v and not assigning.value_problems(k, v)})
    if old is None or old.identity.ssh_host_key != told.ssh_host_key:
        return SlotRecord(identity=told)
    return old.model_copy(update={"identity": _merged(old.identity, told, slot, notes)})
