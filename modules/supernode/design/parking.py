"""Taking a machine out of service and giving it back: who stands where does not change, only what its slot may do.

A quarantined slot's switch ports are shut and its machine is never contacted. A drained one stays connected and may be
worked on. A released slot starts anew: as a spare where its pool has all the machines that it asks for, else as new.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from supernode.design.model import Design
from supernode.errors import Problem, Refusal
from supernode.spec import Machines, SlotRecord, SlotState

PARKED = (SlotState.QUARANTINED, SlotState.DRAINED)


def slots_of(design: Design, names: Iterable[str]) -> tuple[str, ...]:
    """Return the slots of hosts that a person named by slot or by designed name, each once, in the order given.

    Raises:
        Refusal: for each name that is neither, is a switch's, or has no machine bound to it.
    """
    by_name = {device: slot for slot, device in design.slots.items()}
    found: dict[str, None] = {}
    problems = []
    for name in names:
        slot = by_name.get(name, name)
        wrong = _wrong(design, slot, name)
        if wrong is not None:
            problems.append(wrong)
        found[slot] = None
    if problems:
        raise Refusal(problems)
    return tuple(found)


def _wrong(design: Design, slot: str, name: str) -> Problem | None:
    device = design.slots.get(slot)
    if device is None:
        near = difflib.get_close_matches(name, [*design.slots, *design.slots.values()], n=1)
        return Problem(
            (), f"there is no slot or host {name!r}", f"did you mean {near[0]}?" if near else None, "machines"
        )
    if not design.is_host(device):
        return Problem((), f"{name} is a switch: only hosts are taken out of service here", None, "machines")
    if slot not in design.machines.slots:
        hint = f"`supernode assign {design.name}` binds what was delivered"
        return Problem((), f"no machine is bound to {name}", hint, "machines")
    return None


def park(machines: Machines, reasons: Mapping[str, str], state: SlotState, run: str = "") -> Machines:
    """Return the machines with these slots quarantined or drained.

    Args:
        machines: as they stand.
        reasons: why, by slot.
        state: QUARANTINED or DRAINED.
        run: the id of the run that says so; empty for a person.
    """
    slots = _forgotten(machines, reasons)
    for slot, reason in reasons.items():
        slots[slot] = slots[slot].model_copy(update={"state": state, "reason": reason, "run": run, "replaces": ""})
    return machines.model_copy(update={"slots": slots})


def release(design: Design, slots: Iterable[str]) -> Machines:
    """Return the machines with these quarantined or drained slots given back, in the order given.

    Raises:
        Refusal: for each slot that is neither.
    """
    wanted = tuple(slots)
    records = design.machines.slots
    problems = [
        Problem((), f"{slot} is {records[slot].state}, neither quarantined nor drained", None, "machines")
        for slot in wanted
        if records[slot].state not in PARKED
    ]
    if problems:
        raise Refusal(problems)
    asked = {pool.name: pool.count for pool in design.environment.pools}
    active = {pool: 0 for pool in asked}
    for host in design.hosts:
        active[host.pool] += host.state == "active" and host.slot not in wanted
    found = _forgotten(design.machines, wanted)
    for slot in wanted:
        pool = design.host(design.slots[slot]).pool
        state = SlotState.NEW if active[pool] < asked[pool] else SlotState.SPARE
        active[pool] += state is SlotState.NEW
        found[slot] = found[slot].model_copy(update={"state": state, "reason": "", "run": "", "replaces": ""})
    return design.machines.model_copy(update={"slots": found})


def _forgotten(machines: Machines, slots: Iterable[str]) -> dict[str, SlotRecord]:
    """Return the records; whoever replaced one of these slots did so in another story."""
    gone = set(slots)
    return {
        slot: record.model_copy(update={"replaces": ""}) if record.replaces in gone else record
        for slot, record in machines.slots.items()
    }


def successors(machines: Machines) -> dict[str, str]:
    """Return, for each quarantined slot in whose place a spare serves, that spare's slot."""
    slots = machines.slots
    return {
        record.replaces: slot
        for slot, record in slots.items()
        if record.state is not SlotState.QUARANTINED
        and record.replaces in slots
        and slots[record.replaces].state is SlotState.QUARANTINED
    }
