"""The links of a fabric as its cabling sees them: which cage each end goes into, and how far it is between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from supernode import catalog
from supernode.catalog import ServerKind, SwitchKind
from supernode.catalog.model import Transport
from supernode.errors import Path
from supernode.units import MbitPerS

if TYPE_CHECKING:
    from supernode.design.model import Design

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Plug:
    """The cages of a kind of device.

    Attributes:
        cage: as `optics` kinds name it; empty where no source says it.
        capacity: what all ports of one cage carry.
    """

    kind: str
    cage: str
    capacity: MbitPerS


@dataclass(frozen=True, eq=False)
class Run:
    """Links that are alike: of one tier, one rate and the same kinds at their ends.

    Attributes:
        tier: e.g. "host-leaf".
        path: where the environment asks for them.
        a_cage, b_cage: of each link, a number that no other cage of that side has; few numbers are left out.
        a_rack, b_rack: of each link, indexes of racks.
        length_m: of each link.
        cable: of each link its number.
        name: what a link is called, by its index.
    """

    tier: str
    path: Path
    rate: MbitPerS
    link: Transport
    a: Plug
    b: Plug
    a_cage: Numbers
    b_cage: Numbers
    a_rack: Numbers
    b_rack: Numbers
    length_m: npt.NDArray[np.float64]
    cable: Numbers
    name: Callable[[int], str]

    def __len__(self) -> int:
        return len(self.length_m)


def server_plug(kind: ServerKind) -> Plug:
    """Return the cages of a server's rails."""
    return Plug(kind.name, kind.cage, MbitPerS(kind.nics[0].rate * kind.cage_ports))


def switch_plug(kind: SwitchKind) -> Plug:
    """Return the cages of a switch."""
    return Plug(kind.name, kind.cage, MbitPerS(kind.rate * kind.cage_ports))


def nic_cages(kind: ServerKind) -> Numbers:
    """Return the cage of each rail, from 0: by what is written beside it, else neighbours share one."""
    labels = [nic.label.rpartition("P")[0] for nic in kind.nics]
    if kind.cage_ports > 1 and all(labels):
        names = list(dict.fromkeys(labels))
        return np.array([names.index(label) for label in labels])
    return np.arange(len(kind.nics)) // kind.cage_ports


def switch_kinds(design: Design) -> tuple[str, str, str]:
    """Return the kind of each tier's switches; the highest ones are spines too."""
    fabric = design.environment.fabric
    return fabric.leaf, fabric.spine, fabric.spine


def runs(design: Design) -> Iterator[Run]:
    """Yield the runs of a design: its rails by the kind of their hosts, then what joins each tier to the next."""
    links, tiers = design.columns.links, design.columns.link_tiers
    names = [pool.kind for pool in design.environment.pools]
    kinds = list(dict.fromkeys(names))
    rail = np.flatnonzero(tiers == 0)
    of_rail = np.array([kinds.index(name) for name in names])[design.columns.hosts["pool"][links["a"][rail]]]
    for number, kind in enumerate(kinds):
        mine = rail[of_rail == number]
        if len(mine):
            yield _rails(design, mine, catalog.server(kind))
    for tier in (1, 2):
        mine = np.flatnonzero(tiers == tier)
        if len(mine):
            yield _uplinks(design, mine, tier)


def _rails(design: Design, rows: Numbers, server: ServerKind) -> Run:
    env, links, hosts, switches = (
        design.environment,
        design.columns.links,
        design.columns.hosts,
        design.columns.switches,
    )
    leaf, rate = catalog.switch(env.fabric.leaf), MbitPerS(env.fabric.rates.rail)
    link = links[rows]
    socket = link["b_port"].astype(np.int64) // leaf.split_for(rate)
    return Run(
        tier="host-leaf",
        path=("fabric", "rates", "rail"),
        rate=rate,
        link=leaf.link,
        a=server_plug(server),
        b=switch_plug(leaf),
        a_cage=link["a"].astype(np.int64) * len(server.nics) + nic_cages(server)[link["a_port"]],
        b_cage=link["b"].astype(np.int64) * leaf.ports + socket // leaf.cage_ports,
        a_rack=hosts["rack"][link["a"]].astype(np.int64),
        b_rack=switches["rack"][link["b"]].astype(np.int64),
        length_m=link["length_m"].astype(np.float64),
        cable=link["cable"].astype(np.int64),
        name=lambda index: _name(design, int(rows[index])),
    )


def _uplinks(design: Design, rows: Numbers, tier: int) -> Run:
    links, switches, rate = design.columns.links, design.columns.switches, design.environment.fabric.rates.uplink
    lower, upper = (catalog.switch(switch_kinds(design)[one]) for one in (tier - 1, tier))
    link = links[rows]
    # A leaf's uplinks come behind the sockets of its hosts; a spine counts all its ports through.
    down = -(-design.allocation.ports // design.host_splits) if tier == 1 else 0
    low = down + link["a_port"].astype(np.int64) // lower.split_for(MbitPerS(rate))
    high = link["b_port"].astype(np.int64) // upper.split_for(MbitPerS(rate))
    return Run(
        tier=("leaf-spine", "spine-core")[tier - 1],
        path=("fabric", "rates", "uplink"),
        rate=MbitPerS(rate),
        link=lower.link,
        a=switch_plug(lower),
        b=switch_plug(upper),
        a_cage=link["a"].astype(np.int64) * lower.ports + low // lower.cage_ports,
        b_cage=link["b"].astype(np.int64) * upper.ports + high // upper.cage_ports,
        a_rack=switches["rack"][link["a"]].astype(np.int64),
        b_rack=switches["rack"][link["b"]].astype(np.int64),
        length_m=link["length_m"].astype(np.float64),
        cable=link["cable"].astype(np.int64),
        name=lambda index: _name(design, int(rows[index])),
    )


def _name(design: Design, index: int) -> str:
    link = design.links[index]
    return f"{link.cable} ({link.a_device} {link.a_port} to {link.b_device} {link.b_port})"
