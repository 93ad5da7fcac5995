"""The design as tables: what a block says, spread over its hosts, switches and cables by arithmetic alone.

All numbers are 0-based indexes unless a comment says otherwise. The same code serves eight GPUs and a million.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from supernode import catalog
from supernode.spec import Allocation, Environment, sizing

HOST = np.dtype(
    [
        ("pool", "u2"),
        ("ordinal", "u4"),  # from 1
        ("su", "u4"),  # from 1; 0 for a service pool, which has neither port nor cable
        ("port", "u4"),
        ("rack", "u4"),
        ("unit", "u1"),  # lowest rack unit, from 1; 0 for a rented host, whose rack is the cloud's zone
        ("address", "u4"),  # offset in the management and the bmc network; of a rented host, in the cloud's subnet
        ("cable", "u4"),  # number of the cable on rail 0
        ("spare", "?"),  # as the allocation has it
        ("stack", "u4"),
    ]
)
SWITCH = np.dtype(
    [
        ("spine", "?"),
        ("su", "u4"),  # from 1; 0 for spines
        ("number", "u4"),  # rail of a leaf; number of a spine, from 1
        ("rack", "u4"),
        ("unit", "u1"),
        ("place", "u4"),
        ("address", "u4"),
        ("stack", "u4"),
    ]
)
LINK = np.dtype(
    [
        ("cable", "u4"),
        ("uplink", "?"),
        ("a", "u4"),  # host, or switch for an uplink
        ("a_port", "u4"),  # rail, or uplink port of the leaf
        ("b", "u4"),  # switch
        ("b_port", "u4"),  # host port of the leaf, or port of the spine
        (
            "b_address",
            "u4",
        ),  # IPv4 of the leaf's end; the host's is one higher; 0 for uplinks, and in InfiniBand
        ("length_m", "f4"),
    ]
)
Table = npt.NDArray[np.void]


@dataclass(frozen=True)
class Columns:
    """The tables and the names their indexes stand for."""

    hosts: Table
    switches: Table
    links: Table
    racks: tuple[str, ...]
    stacks: tuple[str, ...]


def build(env: Environment, allocation: Allocation) -> Columns:
    """Spread an allocation over its tables; links are in the order of their cable numbers."""
    racks = (*(rack.name for rack in env.racks), *([env.cloud.zone] if env.cloud else []))
    stacks = tuple(
        dict.fromkeys([env.name, *(b.stack for b in allocation.switches), *(b.stack for b in allocation.hosts)])
    )
    hosts = _hosts(env, allocation, racks, stacks)
    switches = _switches(env, allocation, racks, stacks)
    links = np.concatenate([_rail_links(env, allocation, hosts, switches), _uplinks(env, allocation, switches)])
    links = links[np.argsort(links["cable"], kind="stable")]
    links["length_m"] = _lengths(env, links, hosts, switches)
    return Columns(hosts, switches, links, racks, stacks)


def _spread(count: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return, for each member of each block, its block and its number inside it."""
    block = np.repeat(np.arange(len(count)), count)
    inside = np.arange(len(block)) - np.repeat(np.cumsum(count) - count, count)
    return block, inside


def _column(blocks: tuple[object, ...], name: str) -> npt.NDArray[np.int64]:
    return np.array([getattr(block, name) for block in blocks], dtype=np.int64)


def _hosts(env: Environment, allocation: Allocation, racks: tuple[str, ...], stacks: tuple[str, ...]) -> Table:
    blocks = allocation.hosts
    block, inside = _spread(_column(blocks, "count"))
    pools = [pool.name for pool in env.pools]
    rails = sizing.rails(env)
    table = np.zeros(len(block), HOST)
    table["pool"] = np.array([pools.index(b.pool) for b in blocks])[block]
    table["stack"] = np.array([stacks.index(b.stack) for b in blocks])[block]
    table["spare"] = np.array([b.role == "spare" for b in blocks])[block]
    table["su"] = _column(blocks, "unit")[block]
    table["ordinal"] = _column(blocks, "first")[block] + inside
    cabled = table["su"] > 0
    table["port"] = np.where(cabled, _column(blocks, "port")[block] + inside, 0)
    table["address"] = _column(blocks, "address")[block] + inside
    table["cable"] = np.where(cabled, _column(blocks, "cable")[block] + inside * rails, 0)
    for index, pool in enumerate(env.pools):
        mine = table["pool"] == index
        place = table["ordinal"][mine].astype(np.int64) - 1
        if pool.cloud:
            table["rack"][mine] = len(env.racks)
            continue
        height = catalog.server(pool.kind).height_u
        table["rack"][mine], table["unit"][mine] = _stand(allocation, pool.name, place, height, racks)
    return table[np.lexsort((table["ordinal"], table["pool"]))]


def _stand(
    allocation: Allocation, name: str, place: npt.NDArray[np.int64], height: int, racks: tuple[str, ...]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the rack and the lowest unit of each place."""
    rows = allocation.racks[name]
    ends = np.cumsum([row.places for row in rows])
    which = np.searchsorted(ends, place, side="right")
    inside = place - (ends - np.array([row.places for row in rows]))[which]
    return np.array([racks.index(row.rack) for row in rows])[which], inside * height + 1


def _switches(env: Environment, allocation: Allocation, racks: tuple[str, ...], stacks: tuple[str, ...]) -> Table:
    blocks = allocation.switches
    block, inside = _spread(_column(blocks, "count"))
    table = np.zeros(len(block), SWITCH)
    table["spine"] = np.array([b.tier == "spine" for b in blocks])[block]
    table["stack"] = np.array([stacks.index(b.stack) for b in blocks])[block]
    table["su"] = _column(blocks, "unit")[block]
    table["number"] = _column(blocks, "first")[block] + inside
    table["place"] = place = _column(blocks, "place")[block] + inside
    table["address"] = _column(blocks, "address")[block] + inside
    height = max(catalog.switch(env.fabric.leaf).height_u, catalog.switch(env.fabric.spine).height_u)
    table["rack"], table["unit"] = _stand(allocation, "fabric", place, height, racks)
    return table[np.lexsort((table["number"], table["su"], table["spine"]))]


def _rail_links(env: Environment, allocation: Allocation, hosts: Table, switches: Table) -> Table:
    """Lead rail r of every host to leaf r of its unit, on the host's port: the rule of the rail-optimised family."""
    rails = sizing.rails(env)
    cabled = np.flatnonzero(hosts["su"])
    host = np.repeat(cabled, rails)
    rail = np.tile(np.arange(rails), len(cabled))
    table = np.zeros(len(host), LINK)
    su, port = hosts["su"][host].astype(np.int64), hosts["port"][host].astype(np.int64)
    table["cable"] = hosts["cable"][host] + rail
    table["a"], table["a_port"] = host, rail
    table["b"], table["b_port"] = _leaf_index(switches, su, rail, rails), port
    if not env.fabric.infiniband:
        table["b_address"] = leaf_prefix(env, allocation.ports, su, rail) + 2 * port
    return table


def leaf_prefix(
    env: Environment, ports: int, su: npt.NDArray[np.int64], rail: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return the first address of each leaf's prefix, as a number; a prefix holds `sizing.stride(ports)` addresses."""
    base = int(env.site.networks.routed("rails").network_address)
    return base + ((su - 1) * sizing.rails(env) + rail) * sizing.stride(ports)


def _leaf_index(
    switches: Table, su: npt.NDArray[np.int64], rail: npt.NDArray[np.int64], rails: int
) -> npt.NDArray[np.int64]:
    """Leaves lie first, by unit and rail, with no rail left out."""
    units = np.unique(switches["su"][~switches["spine"]])
    return np.searchsorted(units, su) * rails + rail


def _uplinks(env: Environment, allocation: Allocation, switches: Table) -> Table:
    blocks = allocation.uplinks
    rails = sizing.rails(env)
    block, inside = _spread(_column(blocks, "spines") * rails)
    spine, rail = inside // rails, inside % rails
    first_spine = int(np.count_nonzero(~switches["spine"]))
    table = np.zeros(len(block), LINK)
    table["uplink"] = True
    table["cable"] = _column(blocks, "cable")[block] + inside
    table["a"] = _leaf_index(switches, _column(blocks, "unit")[block], rail, rails)
    table["a_port"] = _column(blocks, "leaf_port")[block] + spine
    table["b"] = first_spine + _column(blocks, "spine")[block] - 1 + spine
    table["b_port"] = _column(blocks, "spine_port")[block] + rail
    return table


STOCK_M = np.array([0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 7, 10, 15, 20, 30, 40, 50, 70, 100, 150, 200, 300, 500])
UNIT_M, RACK_M, ROW_M, TRAY_M, SLACK_M = 0.04445, 0.6, 2.4, 0.5, 0.4


def _lengths(env: Environment, links: Table, hosts: Table, switches: Table) -> npt.NDArray[np.float64]:
    """Round each way up to a length that is sold.

    Inside a rack a cable runs straight; to another it climbs to the tray above the racks, runs along it and comes down
    again. EIA-310 gives the unit; racks are 600 mm wide; rows stand one cold aisle and one rack apart (2.4 m).
    """
    row = np.array([rack.row for rack in env.racks])
    position = _positions(env)
    height = np.array([rack.units for rack in env.racks])
    up = links["uplink"]
    last_host, a = max(len(hosts) - 1, 0), links["a"]
    a_rack = np.where(up, switches["rack"][np.where(up, a, 0)], hosts["rack"][np.minimum(a, last_host)]).astype(
        np.int64
    )
    a_unit = np.where(up, switches["unit"][np.where(up, a, 0)], hosts["unit"][np.minimum(a, last_host)]).astype(
        np.float64
    )
    b_rack, b_unit = switches["rack"][links["b"]].astype(np.int64), switches["unit"][links["b"]].astype(np.float64)
    along = np.abs(position[a_rack] - position[b_rack]) * RACK_M + np.abs(row[a_rack] - row[b_rack]) * ROW_M
    climb = (height[a_rack] - a_unit + height[b_rack] - b_unit) * UNIT_M + 2 * TRAY_M
    way = np.where(a_rack == b_rack, np.abs(a_unit - b_unit) * UNIT_M, climb + along) + SLACK_M
    sold: npt.NDArray[np.float64] = STOCK_M[np.minimum(np.searchsorted(STOCK_M, way), len(STOCK_M) - 1)]
    return sold


def _positions(env: Environment) -> npt.NDArray[np.int64]:
    """Return each rack's place in its row: declared, else one after another in the order of the file."""
    seen: Counter[int] = Counter()
    found = []
    for rack in env.racks:
        seen[rack.row] += 1
        found.append(seen[rack.row] if rack.position is None else rack.position)
    return np.array(found)
