"""Giving numbers once: extend a saved allocation to what the environment asks for now, moving nothing that stays.

Every function takes what is there and appends; what goes is taken from the top of its run. `extend` of an allocation
that fits already returns its equal, which is how a stale one is told.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network
from typing import Literal

from supernode import catalog
from supernode.design import clouding, siting, stacks, tiers
from supernode.design.draft import FIRST_ADDRESS, Draft, Numbers, Run
from supernode.design.stacks import shifted
from supernode.errors import Path, Problem, Refusal
from supernode.spec import Allocation, Environment, HostBlock, Places, Pool, sizing
from supernode.spec.environment import Networks
from supernode.spec.vpn import RemoteNetworks

Role = Literal["active", "spare"]


def extend(env: Environment, saved: Allocation | None) -> Allocation:
    """Return the allocation for an environment, with every number that `saved` gave to what stays.

    Raises:
        Refusal: something does not fit.
    """
    draft = _start(env, saved)
    problems: list[Problem] = []
    for index, pool in enumerate(env.pools):
        _hosts(draft, pool)
        if pool.cloud:
            continue
        problems += _racks(draft, pool.name, pool.racks, ("pools", index, "racks"), _needed(draft, pool))
    _planes(draft)
    tiers.switches(draft)
    problems += _racks(
        draft, "fabric", env.fabric.racks, ("fabric", "racks"), max(b.place + b.count for b in draft.switches)
    )
    problems += tiers.cabling(draft)
    problems += _fits(draft) + _taken(draft)
    problems += stacks.assign(draft.env, draft.hosts, draft.switches)
    problems += clouding.fits(env, draft.rented())
    if problems:
        raise Refusal(problems)
    return Allocation.model_validate(
        {
            "schema": 1,
            "name": env.name,
            "ports": draft.ports,
            "racks": draft.racks,
            "hosts": tuple(draft.hosts),
            "switches": tuple(draft.switches),
            "uplinks": tuple(draft.uplinks),
            "core_links": tuple(draft.core_links),
        }
    )


def _start(env: Environment, saved: Allocation | None) -> Draft:
    if saved is None:
        return Draft(env, sizing.host_ports(env))
    pools = {pool.name: sizing.on_fabric(pool) for pool in env.pools}
    stand = {pool.name for pool in env.pools if not pool.cloud} | {"fabric"}
    racks = {name: rows for name, rows in saved.racks.items() if name in stand}
    links = (list(saved.uplinks), list(saved.core_links))
    draft = Draft(env, saved.ports, racks, list(saved.hosts), list(saved.switches), *links)
    tiers.refuse_another_family(draft)
    # A pool that joins the fabric or leaves it gets other machines, so its numbers are given anew; so does one that
    # goes from racks to the cloud or comes back.
    rented = {pool.name for pool in env.pools if pool.cloud}
    kept = [block for block in saved.hosts if (block.pool in rented) != (block.pool in saved.racks)]
    draft.hosts = [block for block in kept if pools.get(block.pool) == bool(block.unit)]
    return draft


def _needed(draft: Draft, pool: Pool) -> int:
    return max(b.first + b.count - 1 for b in draft.hosts if b.pool == pool.name)


def _racks(draft: Draft, name: str, wanted: tuple[str, ...], path: Path, needed: int) -> list[Problem]:
    """Keep the order in which racks were numbered, append new ones, drop those that hold nothing from the end."""
    places = _places(draft.env, name)
    rows, named = list(draft.racks.get(name, ())), set(wanted)
    have = sum(row.places for row in rows)
    while rows and rows[-1].rack not in named and have - rows[-1].places >= needed:
        have -= rows.pop().places
    lost = [row.rack for row in rows if row.rack not in named or row.rack not in places]
    held = {row.rack for row in rows}
    rows += [Places(rack=rack, places=places[rack]) for rack in wanted if rack not in held and places[rack]]
    draft.racks[name] = tuple(rows)
    problems = [
        Problem(
            path,
            f"rack {rack} holds devices of {name}, and is no longer named",
            f"name {rack} again, or shrink {name} first",
        )
        for rack in lost
    ]
    small = [row for row in rows if row.rack in places and places[row.rack] < row.places]
    problems += [
        Problem(
            path,
            f"rack {row.rack} has {row.places} places for {name} in allocation.yml, and no longer the room",
            "restore the rack",
        )
        for row in small
    ]
    have = sum(row.places for row in rows)
    if have < needed:
        problems.append(
            Problem(path, f"{needed} places are needed for {name}, its racks have {have}", "name more racks")
        )
    return problems


def _places(env: Environment, name: str) -> dict[str, int]:
    """Return how many devices of a pool, or switches, each rack takes."""
    if name == "fabric":
        leaf, spine = catalog.switch(env.fabric.leaf), catalog.switch(env.fabric.spine)
        return {rack.name: sizing.switch_places(rack, leaf, spine) for rack in env.racks}
    kind = catalog.server(next(pool.kind for pool in env.pools if pool.name == name))
    return {rack.name: sizing.server_places(rack, kind) for rack in env.racks}


def _hosts(draft: Draft, pool: Pool) -> None:
    _retire_and_promote(draft, pool)
    for role, wanted in _wanted(pool):
        missing = wanted - _count(draft, pool, role)
        if missing < 0:
            _trim(draft, _blocks(draft, pool, role), -missing)
    room = _Room(draft, pool)
    for role, wanted in _wanted(pool):
        missing = wanted - _count(draft, pool, role)
        while missing > 0:
            block = room.next_hosts(role, missing)
            draft.hosts.append(block)
            missing -= block.count


def _wanted(pool: Pool) -> tuple[tuple[Role, int], ...]:
    return ("active", pool.count), ("spare", pool.spares)


def _blocks(draft: Draft, pool: Pool, role: Role) -> list[HostBlock]:
    return [b for b in draft.hosts if b.pool == pool.name and b.role == role]


def _count(draft: Draft, pool: Pool, role: Role) -> int:
    return sum(b.count for b in _blocks(draft, pool, role))


def _retire_and_promote(draft: Draft, pool: Pool) -> None:
    """Let hosts change their role where one has too many and the other too few: they keep all their numbers."""
    surplus = {role: _count(draft, pool, role) - wanted for role, wanted in _wanted(pool)}
    role: Role = "active" if surplus["active"] > 0 else "spare"
    other: Role = "spare" if role == "active" else "active"
    moving = min(surplus[role], -surplus[other])
    for block in sorted(_blocks(draft, pool, role), key=lambda b: -b.first):
        if moving <= 0:
            return
        part = min(moving, block.count)
        moving -= part
        kept = block.count - part
        changed = block.model_copy(update={**shifted(block, kept, draft.rails), "count": part, "role": other})
        at = draft.hosts.index(block)
        draft.hosts[at : at + 1] = [*([block.model_copy(update={"count": kept})] if kept else []), changed]


def _trim(draft: Draft, blocks: list[HostBlock], surplus: int) -> None:
    """Take hosts away from the highest ordinals down."""
    for block in sorted(blocks, key=lambda b: -b.first):
        at = draft.hosts.index(block)
        taken = min(surplus, block.count)
        surplus -= taken
        left = block.count - taken
        draft.hosts[at : at + 1] = [block.model_copy(update={"count": left})] if left else []
        if not surplus:
            return


class _Room:
    """The numbers that new hosts of a pool can have."""

    def __init__(self, draft: Draft, pool: Pool) -> None:
        self.draft, self.pool = draft, pool
        self.cabled = sizing.on_fabric(pool)
        self.ordinals = Numbers((b.first, b.count) for b in draft.hosts if b.pool == pool.name)
        self.addresses = Numbers([(b.address, b.count) for b in draft.rented()] if pool.cloud else draft.addresses())
        self.limit = min(draft.env.fabric.unit or draft.hosts_per_unit, draft.hosts_per_unit)
        self.unit, self.used = 1, dict[int, Numbers]()
        by_unit: dict[int, list[Run]] = {}
        for b in draft.hosts:
            by_unit.setdefault(b.unit, []).append((b.port, b.count))
        self.used = {unit: Numbers(runs) for unit, runs in by_unit.items()}

    def next_hosts(self, role: Role, missing: int) -> HostBlock:
        """Return a block of as many of the missing hosts as lie side by side in one unit."""
        first, free = next(self.ordinals.free(1))
        unit, port, room = self._ports() if self.cabled else (0, 0, missing)
        count = min(missing, free, room)
        if self.cabled:
            self.used.setdefault(unit, Numbers()).take(0, count)
        return HostBlock(
            pool=self.pool.name,
            role=role,
            unit=unit,
            first=self.ordinals.take(first, count),
            count=count,
            port=port,
            address=self.addresses.take(FIRST_ADDRESS, count),
            cable=self.draft.cables(count * self.draft.rails) if self.cabled else 0,
            stack="",
        )

    def _ports(self) -> tuple[int, int, int]:
        """Return the first unit with a free host port, that port, and how many follow it."""
        while True:
            port, free = next(self.used.get(self.unit, Numbers()).free(0))
            if port < self.limit:
                return self.unit, port, min(free, self.limit - port)
            self.unit += 1


def _planes(draft: Draft) -> None:
    """Give every host its cables in each further plane, and take away those of planes that are no more."""
    further = draft.env.fabric.planes - 1
    for at, block in enumerate(draft.hosts):
        cables = block.planes[: further if block.unit else 0]
        while block.unit and len(cables) < further:
            cables = (*cables, draft.cables(block.count * draft.rails))
        if cables != block.planes:
            draft.hosts[at] = block.model_copy(update={"planes": cables})


def _fits(draft: Draft) -> list[Problem]:
    """Return networks that are too small, with what they would have to hold."""
    networks = draft.env.site.networks
    routed = not draft.env.fabric.infiniband
    switches = max(b.address + b.count for b in draft.switches)
    units = max(b.unit for b in draft.hosts)
    at: Path = ("site", "networks")
    rows: list[tuple[Path, IPv4Network, int]] = []
    for path, name, network, site in siting.networks(draft.env):
        last = max((b.address + b.count for b in _standing(draft, site)), default=0)
        here = site is networks and name == "management"
        rows.append((path, network, (max(last, switches) if here else last) + 1))
    if routed:
        loopbacks = max(b.place + b.count for b in draft.switches) + 1
        rails = units * draft.leaves * sizing.stride(draft.ports) << (draft.env.fabric.planes - 1).bit_length()
        rows.append(((*at, "loopbacks", "cidr"), networks.routed("loopbacks"), loopbacks))
        rows.append(((*at, "rails", "cidr"), networks.routed("rails"), rails))
    problems = []
    for path, network, needed in rows:
        if network.num_addresses < needed:
            prefix = 32 - (needed - 1).bit_length()
            what = f"{network} has {network.num_addresses} addresses, {needed} are needed"
            problems.append(Problem(path, what, f"a /{prefix} holds them"))
    unit = draft.env.fabric.unit
    if unit and unit > draft.hosts_per_unit:
        what = f"fabric.unit is {unit}, allocation.yml gave every leaf {draft.ports} host ports"
        problems.append(Problem(("fabric", "unit"), what, "keep the unit: growing it would move addresses"))
    return problems


def _standing(draft: Draft, site: Networks | RemoteNetworks) -> Iterator[HostBlock]:
    """Yield the blocks of the pools that stand in a site's networks."""
    pools = {pool.name for pool in draft.env.pools if draft.env.networks_of(pool) is site}
    return (block for block in draft.bought() if block.pool in pools)


def _taken(draft: Draft) -> list[Problem]:
    """Return addresses of the site that a host, its controller or a switch was given before the site claimed them."""
    switches = [(b.address, b.count, f"the {b.tier} switches") for b in draft.switches]
    problems = []
    for path, address in siting.site_addresses(draft.env):
        for _, name, network, site in siting.networks(draft.env):
            blocks = [(b.address, b.count, f"{b.pool}-{b.first:03d} and its block") for b in _standing(draft, site)]
            blocks += switches if name == "management" and site is draft.env.site.networks else []
            offset = int(address) - int(network.network_address)
            for first, count, who in blocks:
                if address in network and first <= offset < first + count:
                    what = f"{address} was given to {who} in allocation.yml"
                    problems.append(Problem(path, what, f"choose one of the first {FIRST_ADDRESS - 1} of {network}"))
    return problems


def describe(env: Environment, old: Allocation, new: Allocation) -> list[str]:
    """Say in a few words what differs between two allocations of an environment."""
    said = []
    for pool in sorted({b.pool for b in (*old.hosts, *new.hosts)}):
        for role in ("active", "spare"):
            had, has = (sum(b.count for b in a.hosts if (b.pool, b.role) == (pool, role)) for a in (old, new))
            said += [f"pool {pool} has {had} {role} hosts, {has} are wanted"] if had != has else []
    for tier in ("leaf", "spine", "core"):
        had, has = (sum(b.count for b in a.switches if b.tier == tier) for a in (old, new))
        said += [f"{had} {tier} switches, {has} are wanted"] if had != has else []
    leaves = sizing.leaves(env)
    had, has = (sum(b.spines for b in a.uplinks) * leaves for a in (old, new))
    said += [f"{had} uplinks, {has} are wanted"] if had != has else []
    said += ["the racks of a pool or of the fabric changed"] if old.racks != new.racks else []
    return said or ["its numbers are not those that `supernode allocate` gave"]
