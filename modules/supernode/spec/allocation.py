"""allocation.yml: the first number, count and stack of each block, given once.

A line stands for a run of hosts, switches or uplinks; what lies inside the run is arithmetic (`design.columns`). No
number here is computed from how many others there are: that is why growth moves nothing.
"""

from __future__ import annotations

from typing import Annotated, Literal

import yaml
from pydantic import Field

from supernode.spec.parts import Document

Number = Annotated[int, Field(ge=0)]
Count = Annotated[int, Field(ge=1)]


class Places(Document):
    """How many devices a rack takes, in the order in which places were first numbered."""

    rack: str
    places: Count


class HostBlock(Document):
    """A run of hosts of one pool in one scalable unit.

    Attributes:
        unit: from 1; 0 for a service pool, which has no cable: `port` and `cable` are 0, too.
        first: ordinal of the first one, from 1; also its place in the pool's racks.
        port: 0-based host port of the first one on each of the unit's leaves.
        address: offset of the first one in both the management and the bmc network; of a rented pool, in its subnet.
        cable: number of the first one's cable on rail 0; a host takes as many as it has rails.
        planes: the same in each further plane.
    """

    pool: str
    role: Literal["active", "spare"]
    unit: Number
    first: Count
    count: Count
    port: Number
    address: Count
    cable: Number
    stack: str
    planes: tuple[Count, ...] = ()


class SwitchBlock(Document):
    """A run of switches of one tier.

    Attributes:
        unit: the scalable unit of leaves; 0 for the others.
        first: rail of the first leaf, from 0; number of the first spine or core, from 1.
        place: 0-based place of the first one in the fabric's racks; also gives its loopback and its ASN.
        address: offset of the first one in the management network.
        plane: from 1.
        pod: of spines below cores, from 1; else 0.
        rail: of spines and cores that one rail has for itself.
    """

    tier: Literal["leaf", "spine", "core"]
    unit: Number
    first: Number
    count: Count
    place: Number
    address: Count
    stack: str
    plane: Count = 1
    pod: Number = 0
    rail: Number | None = None


class UplinkBlock(Document):
    """One cable from each leaf of a unit to each of a run of spines; to those of its own rail, where rails have some.

    Attributes:
        lane: number, from 1, among the parallel cables of a leaf and a spine.
        spine: number of the first spine; `spines` of them.
        leaf_port: 0-based uplink port of the first on each leaf; a leaf takes one for each spine.
        spine_port: 0-based port of the first on each spine; a spine takes one for each leaf.
        cable: number of the first; spine by spine, then leaf by leaf, so that fewer spines renumber nothing.
        plane: from 1.
        pod: of the spines, as in their block.
    """

    unit: Count
    lane: Count
    spine: Count
    spines: Count
    leaf_port: Number
    spine_port: Number
    cable: Count
    plane: Count = 1
    pod: Number = 0


class CoreBlock(Document):
    """One cable from each spine of a pod to each of a run of the cores of its group, for every rail that has its own.

    Attributes:
        lane: number, from 1, among the parallel cables of a spine and a core.
        spines: of the pod; as many groups there are, and core n of group g is core (n - 1) * spines + g.
        core: n of the first core of each group, from 1; `cores` of them.
        spine_port: 0-based port, among those that lead up, of the first on each spine; a spine takes one for each core.
        core_port: 0-based port on each core.
        cable: number of the first; core by core, then rail by rail, then spine by spine.
    """

    pod: Count
    lane: Count
    spines: Count
    core: Count
    cores: Count
    spine_port: Number
    core_port: Number
    cable: Count
    plane: Count = 1


class Allocation(Document):
    """The whole of allocation.yml.

    Attributes:
        ports: host ports of every leaf, and with them the addresses that a leaf's prefix holds.
        racks: by pool, and under "fabric" for the switches (no pool may be called that).
    """

    version: Annotated[Literal[1], Field(alias="schema")]
    name: str
    ports: Count
    racks: dict[str, tuple[Places, ...]]
    hosts: tuple[HostBlock, ...]
    switches: tuple[SwitchBlock, ...]
    uplinks: tuple[UplinkBlock, ...]
    core_links: tuple[CoreBlock, ...] = ()


_HEAD = "# Written by `supernode allocate {name}`: numbers given once. Commit it; do not edit it.\n"


def allocation_text(allocation: Allocation) -> str:
    """Write allocation.yml, one line for each block."""
    document = allocation.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    lines = [
        _HEAD.format(name=allocation.name).rstrip(),
        f"schema: {document['schema']}",
        f"name: {_flow(document['name'])}",
    ]
    lines += [f"ports: {document['ports']}", "racks:"]
    for name, places in document["racks"].items():
        lines += [f"  {name}:", *(f"    - {_flow(row)}" for row in places)]
    for key in [key for key in ("hosts", "switches", "uplinks", "core_links") if key in document]:
        lines += [f"{key}:" if document[key] else f"{key}: []", *(f"  - {_flow(row)}" for row in document[key])]
    return "\n".join(lines) + "\n"


def _flow(value: object) -> str:
    return yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10_000).removesuffix("\n...\n").strip()
