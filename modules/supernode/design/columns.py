"""The design as tables: what a block says, spread over its hosts, switches and cables by arithmetic alone.

All numbers are 0-based indexes unless a comment says otherwise. The same code serves eight GPUs and a million.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from supernode import catalog
from supernode.design.naming import TIERS
from supernode.spec import Allocation, Environment, clos, sizing

LEAF, SPINE, CORE = range(3)
ALL_RAILS = -1
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
        ("tier", "u1"),  # LEAF, SPINE or CORE
        ("plane", "u1"),  # from 1
        ("pod", "u2"),  # of a spine below cores, from 1; else 0
        ("su", "u4"),  # from 1; 0 for all but leaves
        ("rail", "i2"),  # of a leaf, or of a spine or core that one rail has for itself; else ALL_RAILS
        ("number", "u4"),  # of a leaf in its unit, from 0; of a spine in its pod or a core, from 1
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
        ("tier", "u1"),  # of the upper switch: LEAF between host and leaf, SPINE above a leaf, CORE above a spine
        ("uplink", "?"),  # between switches
        ("plane", "u1"),  # from 1
        ("a", "u4"),  # host, or switch for an uplink
        ("a_port", "u4"),  # rail, or uplink port of the leaf, or port of the spine
        ("b", "u4"),  # switch
        ("b_port", "u4"),  # host port of the leaf, or port of the spine or core
        (
            "b_address",
            "u4",
        ),  # IPv4 of the leaf's end; the host's is one higher; 0 for uplinks, and in InfiniBand
        ("length_m", "f4"),
    ]
)
Table = npt.NDArray[np.void]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Columns:
    """The tables and the names their indexes stand for."""

    hosts: Table
    switches: Table
    links: Table
    racks: tuple[str, ...]
    stacks: tuple[str, ...]

    @property
    def switch_tiers(self) -> Numbers:
        """LEAF, SPINE or CORE of each switch, as numbers that can be counted with."""
        return self.switches["tier"].astype(np.int64)

    @property
    def link_tiers(self) -> Numbers:
        """The tier of each link's upper switch, likewise."""
        return self.links["tier"].astype(np.int64)


def build(env: Environment, allocation: Allocation) -> Columns:
    """Spread an allocation over its tables; links are in the order of their cable numbers."""
    racks = (*(rack.name for rack in env.racks), *([env.cloud.zone] if env.cloud else []))
    stacks = tuple(
        dict.fromkeys([env.name, *(b.stack for b in allocation.switches), *(b.stack for b in allocation.hosts)])
    )
    hosts, further = _hosts(env, allocation, racks, stacks)
    switches = _switches(env, allocation, racks, stacks)
    links = np.concatenate(
        [
            _rail_links(env, allocation, hosts, switches),
            *(_plane_links(env, allocation, hosts, switches, plane + 2, c) for plane, c in enumerate(further)),
            _uplinks(env, allocation, switches),
            _core_links(env, allocation, switches),
        ]
    )
    links = links[np.argsort(links["cable"], kind="stable")]
    links["length_m"] = _lengths(env, links, hosts, switches)
    return Columns(hosts, switches, links, racks, stacks)


def _spread(count: Numbers) -> tuple[Numbers, Numbers]:
    """Return, for each member of each block, its block and its number inside it."""
    block = np.repeat(np.arange(len(count)), count)
    inside = np.arange(len(block)) - np.repeat(np.cumsum(count) - count, count)
    return block, inside


def _column(blocks: tuple[object, ...], name: str) -> Numbers:
    return np.array([getattr(block, name) for block in blocks], dtype=np.int64)


def _hosts(
    env: Environment, allocation: Allocation, racks: tuple[str, ...], stacks: tuple[str, ...]
) -> tuple[Table, list[Numbers]]:
    """Return the hosts, and for each further plane the numbers of their cables on rail 0."""
    blocks, stack_of = allocation.hosts, {name: index for index, name in enumerate(stacks)}
    block, inside = _spread(_column(blocks, "count"))
    pools = [pool.name for pool in env.pools]
    rails = sizing.rails(env)
    table = np.zeros(len(block), HOST)
    table["pool"] = np.array([pools.index(b.pool) for b in blocks])[block]
    table["stack"] = np.array([stack_of[b.stack] for b in blocks])[block]
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
    order = np.lexsort((table["ordinal"], table["pool"]))
    first = np.array([b.planes or (0,) * (env.fabric.planes - 1) for b in blocks], dtype=np.int64)
    further = [(first[block, plane] + inside * rails)[order] for plane in range(env.fabric.planes - 1)]
    return table[order], further


def _stand(
    allocation: Allocation, name: str, place: Numbers, height: int, racks: tuple[str, ...]
) -> tuple[Numbers, Numbers]:
    """Return the rack and the lowest unit of each place."""
    rows = allocation.racks[name]
    ends = np.cumsum([row.places for row in rows])
    which = np.searchsorted(ends, place, side="right")
    inside = place - (ends - np.array([row.places for row in rows]))[which]
    rack_of = {name: index for index, name in enumerate(racks)}
    return np.array([rack_of[row.rack] for row in rows])[which], inside * height + 1


def _switches(env: Environment, allocation: Allocation, racks: tuple[str, ...], stacks: tuple[str, ...]) -> Table:
    blocks, stack_of = allocation.switches, {name: index for index, name in enumerate(stacks)}
    block, inside = _spread(_column(blocks, "count"))
    table = np.zeros(len(block), SWITCH)
    table["tier"] = tier = np.array([TIERS.index(b.tier) for b in blocks])[block]
    table["stack"] = np.array([stack_of[b.stack] for b in blocks])[block]
    for name in ("plane", "pod"):
        table[name] = _column(blocks, name)[block]
    table["su"] = _column(blocks, "unit")[block]
    table["number"] = number = _column(blocks, "first")[block] + inside
    alone = np.array([ALL_RAILS if b.rail is None else b.rail for b in blocks])[block]
    table["rail"] = np.where((tier == LEAF) & (not env.fabric.by_host), number, alone)
    table["place"] = place = _column(blocks, "place")[block] + inside
    table["address"] = _column(blocks, "address")[block] + inside
    height = max(catalog.switch(env.fabric.leaf).height_u, catalog.switch(env.fabric.spine).height_u)
    table["rack"], table["unit"] = _stand(allocation, "fabric", place, height, racks)
    above = np.where(tier == LEAF, 0, table["rail"])
    return table[np.lexsort((table["number"], table["su"], above, table["pod"], table["plane"], tier))]


def _rail_links(env: Environment, allocation: Allocation, hosts: Table, switches: Table) -> Table:
    """Lead every host's rails to the leaves of its unit in the first plane."""
    return _plane_links(env, allocation, hosts, switches, 1, hosts["cable"].astype(np.int64))


def _plane_links(
    env: Environment, allocation: Allocation, hosts: Table, switches: Table, plane: int, cables: Numbers
) -> Table:
    """Lead rail r of every host to leaf r of its unit, on the host's port; or all its rails to the only one."""
    rails, each = sizing.rails(env), sizing.per_leaf(env)
    cabled = np.flatnonzero(hosts["su"])
    host = np.repeat(cabled, rails)
    rail = np.tile(np.arange(rails), len(cabled))
    table = np.zeros(len(host), LINK)
    su, port = hosts["su"][host].astype(np.int64), hosts["port"][host].astype(np.int64)
    leaf, port = (rail, port) if each == 1 else (rail * 0, port * each + rail)
    table["plane"] = plane
    table["cable"] = cables[host] + rail
    table["a"], table["a_port"] = host, rail
    table["b"], table["b_port"] = _leaf_index(switches, su, leaf, sizing.leaves(env)), port
    table["b"] += _first(switches, LEAF, plane)
    if not env.fabric.infiniband:
        table["b_address"] = leaf_prefix(env, allocation.ports, su, leaf) + plane_offset(env, plane) + 2 * port
    return table


def leaf_prefix(env: Environment, ports: int, su: Numbers, leaf: Numbers) -> Numbers:
    """Return the first address of each leaf's prefix in the first plane, as a number.

    A prefix holds `sizing.stride(ports)` addresses.
    """
    base = int(env.site.networks.routed("rails").network_address)
    return base + ((su - 1) * sizing.leaves(env) + leaf) * sizing.stride(ports)


def plane_offset(env: Environment, plane: int) -> int:
    """Return where in the rails' network the addresses of a plane begin.

    The second plane begins at its half, the third at its quarter, the fourth at three quarters: one more plane moves
    none of the others.
    """
    size, offset, rest = env.site.networks.routed("rails").num_addresses, 0, plane - 1
    while rest:
        size //= 2
        offset, rest = offset + size * (rest % 2), rest // 2
    return offset


def _leaf_index(switches: Table, su: Numbers, leaf: Numbers, leaves: int) -> Numbers:
    """Leaves of a plane lie by unit and rail, with no rail left out, and the first plane's lie first."""
    units = np.unique(switches["su"][switches["tier"] == LEAF])
    return np.searchsorted(units, su) * leaves + leaf


def _first(switches: Table, tier: int, plane: int) -> int:
    """Return the index of the first switch of a tier in a plane."""
    before = (switches["tier"] < tier) | ((switches["tier"] == tier) & (switches["plane"] < plane))
    return int(np.count_nonzero(before))


def _firsts(switches: Table, tier: int, planes: Numbers) -> Numbers:
    firsts = {plane: _first(switches, tier, plane) for plane in np.unique(planes)}
    return np.array([firsts[plane] for plane in planes], dtype=np.int64)


def _spine_index(env: Environment, switches: Table, planes: Numbers, pods: Numbers) -> tuple[Numbers, int]:
    """Return the index of the first spine of each pod, and how many spines there are for each line of a pod."""
    spines = switches[switches["tier"] == SPINE]
    lines = sizing.lines(env)
    of_pod = int(np.count_nonzero((spines["plane"] == 1) & (spines["pod"] == spines["pod"].min())))
    return _firsts(switches, SPINE, planes) + np.maximum(pods - 1, 0) * of_pod, of_pod // lines


def _uplinks(env: Environment, allocation: Allocation, switches: Table) -> Table:
    blocks = allocation.uplinks
    leaves, lines = sizing.leaves(env), sizing.lines(env)
    block, inside = _spread(_column(blocks, "spines") * leaves)
    spine, leaf = inside // leaves, inside % leaves
    first, each = _spine_index(env, switches, _column(blocks, "plane"), _column(blocks, "pod"))
    table = np.zeros(len(block), LINK)
    table["uplink"], table["tier"] = True, SPINE
    table["plane"] = _column(blocks, "plane")[block]
    table["cable"] = _column(blocks, "cable")[block] + inside
    table["a"] = _leaf_index(switches, _column(blocks, "unit")[block], leaf, leaves)
    table["a"] += _firsts(switches, LEAF, _column(blocks, "plane"))[block].astype(np.uint32)
    table["a_port"] = _column(blocks, "leaf_port")[block] + spine
    own, beside = (leaf, 0) if lines > 1 else (0, leaf)
    table["b"] = first[block] + own * each + _column(blocks, "spine")[block] - 1 + spine
    table["b_port"] = _column(blocks, "spine_port")[block] + beside
    return table


def _core_links(env: Environment, allocation: Allocation, switches: Table) -> Table:
    """Lead spine g of every pod to the cores of group g, from the upper half of its ports."""
    blocks = allocation.core_links
    if not blocks:
        return np.zeros(0, LINK)
    lines, spines = sizing.lines(env), blocks[0].spines
    block, inside = _spread(_column(blocks, "cores") * lines * spines)
    core, line, spine = inside // (lines * spines), inside // spines % lines, inside % spines
    first, _ = _spine_index(env, switches, _column(blocks, "plane"), _column(blocks, "pod"))
    of_line = int(np.count_nonzero((switches["tier"] == CORE) & (switches["plane"] == 1))) // lines
    table = np.zeros(len(block), LINK)
    table["uplink"], table["tier"] = True, CORE
    table["plane"] = _column(blocks, "plane")[block]
    table["cable"] = _column(blocks, "cable")[block] + inside
    table["a"] = first[block] + line * spines + spine
    table["a_port"] = clos.half(env) + _column(blocks, "spine_port")[block] + core
    group = (_column(blocks, "core")[block] - 1 + core) * spines + spine
    table["b"] = _firsts(switches, CORE, _column(blocks, "plane"))[block] + line * of_line + group
    table["b_port"] = _column(blocks, "core_port")[block]
    return table


STOCK_M = np.array([0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 7, 10, 15, 20, 30, 40, 50, 70, 100, 150, 200, 300, 500])
MADE_M = 100.0  # what is longer than all that is in stock is made in steps of this
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
    return np.where(way > STOCK_M[-1], np.ceil(way / MADE_M) * MADE_M, sold)


def _positions(env: Environment) -> Numbers:
    """Return each rack's place in its row: declared, else one after another in the order of the file."""
    seen: Counter[int] = Counter()
    found = []
    for rack in env.racks:
        seen[rack.row] += 1
        found.append(seen[rack.row] if rack.position is None else rack.position)
    return np.array(found)
