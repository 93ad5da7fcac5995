"""From checked documents to the Design."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from typing import Any

from supernode import catalog
from supernode.design import allocating, columns, optics, power, runs
from supernode.design.model import Design
from supernode.errors import Problem, Refusal
from supernode.spec import Allocation, Environment, Inputs, Machines, SlotState


def build(inputs: Inputs) -> Design:
    """Compute the Design.

    Raises:
        Refusal: what only arithmetic shows (ports, places, addresses that do not suffice, cables that nothing reaches,
            racks that draw more than they are fed),
            an allocation that is out of date, and machines bound to slots that the design does not fill.
    """
    allocation = allocating.extend(inputs.environment, inputs.allocation)
    if inputs.allocation is not None and allocation != inputs.allocation:
        hint = (
            f"run `supernode allocate {inputs.environment.name}`: it adds what is missing and moves nothing that stays"
        )
        changes = "; ".join(allocating.describe(inputs.environment, inputs.allocation, allocation))
        raise Refusal([Problem((), f"allocation.yml is out of date: {changes}", hint, "allocation")])
    design = Design(
        name=inputs.environment.name,
        digest=_digest(inputs.environment, allocation, inputs.machines),
        environment=inputs.environment,
        allocation=allocation,
        allocation_saved=inputs.allocation is not None,
        machines=inputs.machines,
        columns=columns.build(inputs.environment, allocation),
    )
    unreachable = [problem for run in runs.runs(design) for problem in optics.too_long(run)]
    physical = [*unreachable, *power.over_full(design)]
    if physical:
        raise Refusal(physical)
    strangers = [slot for slot in inputs.machines.slots if slot not in design.slots]
    if strangers:
        hint = "take the line out of machines.yml, or give the slot back to the design"
        raise Refusal(
            [Problem(("slots", s), f"slot {s} holds nothing in this design", hint, "machines") for s in strangers]
        )
    return design


def _digest(env: Environment, allocation: Allocation, machines: Machines) -> str:
    """Hash what the design reads: of machines.yml, only which machine it is, and who is spare or quarantined."""
    telling = {SlotState.SPARE, SlotState.QUARANTINED}
    kinds: list[Any] = [catalog.server(pool.kind) for pool in env.pools] + [
        catalog.switch(env.fabric.leaf),
        catalog.switch(env.fabric.spine),
    ]
    kinds += [catalog.cdu(unit.kind) for unit in env.cooling.units] if env.cooling else []
    document = {
        "environment": env.model_dump(mode="json"),
        "allocation": allocation.model_dump(mode="json"),
        "machines": {
            slot: [record.identity.hardware(), str(record.state) if record.state in telling else ""]
            for slot, record in machines.slots.items()
        },
        "kinds": [dataclasses.asdict(kind) for kind in kinds],
    }
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
