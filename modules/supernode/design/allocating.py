"""Giving numbers once: extend a saved allocation to what the environment asks for now, moving nothing that stays.

Every function takes what is there and appends; what goes is taken from the top of its run. `extend` of an allocation
that fits already returns its equal, which is how a stale one is told.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network
from typing import Literal

from supernode import catalog
from supernode.design import clouding, stacks
from supernode.design.stacks import shifted
from supernode.errors import Path, Problem, Refusal
from supernode.spec import Allocation, Environment, HostBlock, Places, Pool, SwitchBlock, UplinkBlock, sizing
from supernode.spec.environment import Networks
from supernode.spec.vpn import RemoteNetworks, Vpn

FIRST_ADDRESS = 11  # the first ten of a network are left to the site: gateways, time, the server of images
Run = tuple[int, int]  # first, count
Role = Literal["active", "spare"]


def gaps(used: list[Run], start: int) -> Iterator[Run]:
    """Yield the free runs from `start` on; the last one never ends (a count of 2**32)."""
    at = start
    for first, count in sorted(used):
        if first > at:
            yield at, first - at
        at = max(at, first + count)
    yield at, 1 << 32


def first_gap(used: list[Run], start: int, count: int) -> int:
    """Return the first of the lowest `count` free numbers in a row."""
    return next(first for first, free in gaps(used, start) if free >= count)


@dataclass
class Draft:
    """An allocation while it grows.

    A new block has an empty stack until `stacks.assign` cuts the stacks at the end.
    """

    env: Environment
    ports: int
    racks: dict[str, tuple[Places, ...]] = field(default_factory=dict)
    hosts: list[HostBlock] = field(default_factory=list)
    switches: list[SwitchBlock] = field(default_factory=list)
    uplinks: list[UplinkBlock] = field(default_factory=list)
    cables_before: int = 1

    @property
    def rails(self) -> int:
        """The number of rails of every host."""
        return sizing.rails(self.env)

    def next_cable(self) -> int:
        """Return the lowest number above every cable that is, or that was when this began.

        A label that is being pulled must not come back on another cable on the same day.
        """
        ends = (
            [self.cables_before]
            + [b.cable + b.count * self.rails for b in self.hosts if b.unit]
            + [b.cable + b.spines * self.rails for b in self.uplinks]
        )
        return max(ends)

    def addresses(self) -> list[Run]:
        """Return the offsets taken in the management network, and those that the site keeps in it or among the BMCs."""
        taken = [(b.address, b.count) for b in self.bought()] + [(b.address, b.count) for b in self.switches]
        kept = {offset for _, _, network, _ in _networks(self.env) for offset in reserved(self.env, network)}
        return taken + [(offset, 1) for offset in kept]

    def bought(self) -> list[HostBlock]:
        """Return the blocks that stand in racks."""
        return [block for block in self.hosts if block.pool not in self._rented]

    def rented(self) -> list[HostBlock]:
        """Return the blocks that stand in the cloud: their offsets are those of its subnet."""
        return [block for block in self.hosts if block.pool in self._rented]

    @property
    def _rented(self) -> set[str]:
        return {pool.name for pool in self.env.pools if pool.cloud}


def site_addresses(env: Environment) -> Iterator[tuple[Path, IPv4Address]]:
    """Yield the addresses that the site's own machines hold, with where the environment says so; names are left out."""
    for name in ("management", "bmc"):
        gateway = getattr(env.site.networks, name).gateway
        if gateway:
            yield ("site", "networks", name, "gateway"), gateway
    for index, server in enumerate(env.site.time_servers):
        try:
            yield ("site", "time_servers", index), IPv4Address(server)
        except ValueError:
            continue  # a name: it stands where its zone says
    for index, address in enumerate(env.site.name_servers):
        yield ("site", "name_servers", index), address
    yield ("site", "serve", "address"), env.site.serve.address
    for index, unit in enumerate(env.cooling.units if env.cooling else ()):
        yield ("cooling", "units", index, "address"), unit.address
    yield from _gateways(env.vpn) if env.vpn else ()


def _gateways(vpn: Vpn) -> Iterator[tuple[Path, IPv4Address]]:
    """Yield what the gateways of a tunnel hold in the sites' networks."""
    if vpn.gateway.address:
        yield ("vpn", "gateway", "address"), vpn.gateway.address
    for name in ("management", "bmc"):
        gateway = getattr(vpn.remote.networks, name).gateway
        if gateway:
            yield ("vpn", "sites", 0, "networks", name, "gateway"), gateway


def _networks(env: Environment) -> Iterator[tuple[Path, str, IPv4Network, Networks | RemoteNetworks]]:
    """Yield the management and BMC network of every site: where it is written, its name, it, and the site's all."""
    rows: list[tuple[Path, Networks | RemoteNetworks]] = [(("site", "networks"), env.site.networks)]
    rows += [(("vpn", "sites", 0, "networks"), env.vpn.remote.networks)] if env.vpn else []
    for path, networks in rows:
        for name in ("management", "bmc"):
            yield (*path, name, "cidr"), name, getattr(networks, name).cidr, networks


def reserved(env: Environment, network: IPv4Network) -> set[int]:
    """Return the offsets inside a network that the site's own machines hold."""
    return {int(a) - int(network.network_address) for _, a in site_addresses(env) if a in network}


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
    _leaves(draft)
    _spines(draft)
    problems += _racks(
        draft, "fabric", env.fabric.racks, ("fabric", "racks"), max(b.place + b.count for b in draft.switches)
    )
    problems += _uplinks(draft)
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
        }
    )


def _start(env: Environment, saved: Allocation | None) -> Draft:
    if saved is None:
        return Draft(env, sizing.host_ports(env))
    pools = {pool.name: sizing.on_fabric(pool) for pool in env.pools}
    stand = {pool.name for pool in env.pools if not pool.cloud} | {"fabric"}
    racks = {name: rows for name, rows in saved.racks.items() if name in stand}
    draft = Draft(env, saved.ports, racks, list(saved.hosts), list(saved.switches), list(saved.uplinks))
    draft.cables_before = draft.next_cable()
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
    known = {rack.name: rack for rack in draft.env.racks}
    rows = list(draft.racks.get(name, ()))
    while rows and rows[-1].rack not in wanted and sum(r.places for r in rows[:-1]) >= needed:
        rows.pop()
    lost = [row.rack for row in rows if row.rack not in wanted or row.rack not in known]
    fresh = [rack for rack in wanted if rack not in {row.rack for row in rows}]
    for rack in fresh:
        count = _places(draft.env, name, rack)
        rows += [Places(rack=rack, places=count)] if count else []
    draft.racks[name] = tuple(rows)
    problems = [
        Problem(
            path,
            f"rack {rack} holds devices of {name}, and is no longer named",
            f"name {rack} again, or shrink {name} first",
        )
        for rack in lost
    ]
    small = [row for row in rows if row.rack in known and _places(draft.env, name, row.rack) < row.places]
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


def _places(env: Environment, name: str, rack_name: str) -> int:
    rack = next(rack for rack in env.racks if rack.name == rack_name)
    if name == "fabric":
        return sizing.switch_places(rack, catalog.switch(env.fabric.leaf), catalog.switch(env.fabric.spine))
    kind = next(pool.kind for pool in env.pools if pool.name == name)
    return sizing.server_places(rack, catalog.server(kind))


def _hosts(draft: Draft, pool: Pool) -> None:
    _retire_and_promote(draft, pool)
    for role, wanted in _wanted(pool):
        missing = wanted - _count(draft, pool, role)
        if missing < 0:
            _trim(draft, _blocks(draft, pool, role), -missing)
    for role, wanted in _wanted(pool):
        missing = wanted - _count(draft, pool, role)
        while missing > 0:
            block = _next_hosts(draft, pool, role, missing)
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


def _next_hosts(draft: Draft, pool: Pool, role: Role, missing: int) -> HostBlock:
    first, free = next(gaps([(b.first, b.count) for b in draft.hosts if b.pool == pool.name], 1))
    cabled = sizing.on_fabric(pool)
    unit, port, room = _free_ports(draft) if cabled else (0, 0, missing)
    count = min(missing, free, room)
    taken = [(b.address, b.count) for b in draft.rented()] if pool.cloud else draft.addresses()
    return HostBlock(
        pool=pool.name,
        role=role,
        unit=unit,
        first=first,
        count=count,
        port=port,
        address=first_gap(taken, FIRST_ADDRESS, count),
        cable=draft.next_cable() if cabled else 0,
        stack="",
    )


def _free_ports(draft: Draft) -> tuple[int, int, int]:
    """Return the first unit with a free host port, that port, and how many follow it."""
    limit = min(draft.env.fabric.unit or draft.ports, draft.ports)
    unit = 1
    while True:
        used = [(b.port, b.count) for b in draft.hosts if b.unit == unit]
        port, free = next(gaps(used, 0))
        if port < limit:
            return unit, port, min(free, limit - port)
        unit += 1


def _leaves(draft: Draft) -> None:
    units = sorted({b.unit for b in draft.hosts} - {0})
    draft.switches = [b for b in draft.switches if b.tier == "spine" or b.unit in units]
    for unit in units:
        have = sum(b.count for b in draft.switches if b.tier == "leaf" and b.unit == unit)
        if not have:
            draft.switches.append(_switches(draft, "leaf", unit, 0, draft.rails))


def _spines(draft: Draft) -> None:
    wanted = draft.env.fabric.spines
    kept: list[SwitchBlock] = []
    for block in draft.switches:
        left = min(block.count, wanted - block.first + 1) if block.tier == "spine" else block.count
        kept += [block.model_copy(update={"count": left})] if left > 0 else []
    draft.switches = kept
    have = sum(b.count for b in kept if b.tier == "spine")
    if have < wanted:
        draft.switches.append(_switches(draft, "spine", 0, have + 1, wanted - have))


def _switches(draft: Draft, tier: str, unit: int, first: int, count: int) -> SwitchBlock:
    return SwitchBlock(
        tier="leaf" if tier == "leaf" else "spine",
        unit=unit,
        first=first,
        count=count,
        place=first_gap([(b.place, b.count) for b in draft.switches], 0, count),
        address=first_gap(draft.addresses(), FIRST_ADDRESS, count),
        stack="",
    )


def _uplinks(draft: Draft) -> list[Problem]:
    """Give every unit its lanes to every spine; more spines or fewer hosts may take lanes away again."""
    env = draft.env
    units = {b.unit for b in draft.switches if b.tier == "leaf"}
    lanes = {unit: sizing.lanes(env, env.fabric.unit or _hosts_of(draft, unit)) for unit in units}
    kept = []
    for block in draft.uplinks:
        spines = min(block.spines, env.fabric.spines - block.spine + 1)
        if block.unit in units and block.lane <= lanes[block.unit] and spines > 0:
            kept.append(block.model_copy(update={"spines": spines}))
    draft.uplinks = kept
    for unit in sorted(units):
        for lane in range(1, lanes[unit] + 1):
            covered = [(b.spine, b.spines) for b in draft.uplinks if b.unit == unit and b.lane == lane]
            for first, free in list(gaps(covered, 1)):
                count = min(free, env.fabric.spines - first + 1)
                if count > 0:
                    draft.uplinks.append(_uplink(draft, unit, lane, first, count))
    return _uplinks_fit(draft)


def _hosts_of(draft: Draft, unit: int) -> int:
    return sum(b.count for b in draft.hosts if b.unit == unit)


def _uplink(draft: Draft, unit: int, lane: int, spine: int, spines: int) -> UplinkBlock:
    leaf_used = [(b.leaf_port, b.spines) for b in draft.uplinks if b.unit == unit]
    overlapping = [b for b in draft.uplinks if b.spine < spine + spines and spine < b.spine + b.spines]
    return UplinkBlock(
        unit=unit,
        lane=lane,
        spine=spine,
        spines=spines,
        leaf_port=first_gap(leaf_used, 0, spines),
        spine_port=first_gap([(b.spine_port, draft.rails) for b in overlapping], 0, draft.rails),
        cable=draft.next_cable(),
    )


def _uplinks_fit(draft: Draft) -> list[Problem]:
    env = draft.env
    on_leaf = max((b.leaf_port + b.spines for b in draft.uplinks), default=0)
    on_spine = max((b.spine_port + draft.rails for b in draft.uplinks), default=0)
    problems = []
    if on_leaf > sizing.uplink_ports(env, draft.ports):
        have = sizing.uplink_ports(env, draft.ports)
        what = f"a {env.fabric.leaf} has {have} uplink ports beside {draft.ports} host ports, {on_leaf} are needed"
        problems.append(Problem(("fabric", "leaf"), what, "allow more oversubscription, or faster uplinks"))
    if on_spine > sizing.spine_ports(env):
        what = f"a {env.fabric.spine} has {sizing.spine_ports(env)} ports, {on_spine} are needed on each"
        problems.append(Problem(("fabric", "spine"), what, "more spines take fewer cables each"))
    return problems


def _fits(draft: Draft) -> list[Problem]:
    """Return networks that are too small, with what they would have to hold."""
    networks = draft.env.site.networks
    routed = not draft.env.fabric.infiniband
    switches = max(b.address + b.count for b in draft.switches)
    units = max(b.unit for b in draft.hosts)
    at: Path = ("site", "networks")
    rows: list[tuple[Path, IPv4Network, int]] = []
    for path, name, network, site in _networks(draft.env):
        last = max((b.address + b.count for b in _standing(draft, site)), default=0)
        here = site is networks and name == "management"
        rows.append((path, network, (max(last, switches) if here else last) + 1))
    if routed:
        loopbacks = max(b.place + b.count for b in draft.switches) + 1
        rails = units * draft.rails * sizing.stride(draft.ports)
        rows.append(((*at, "loopbacks", "cidr"), networks.routed("loopbacks"), loopbacks))
        rows.append(((*at, "rails", "cidr"), networks.routed("rails"), rails))
    problems = []
    for path, network, needed in rows:
        if network.num_addresses < needed:
            prefix = 32 - (needed - 1).bit_length()
            what = f"{network} has {network.num_addresses} addresses, {needed} are needed"
            problems.append(Problem(path, what, f"a /{prefix} holds them"))
    ports = draft.env.fabric.unit
    if ports and ports > draft.ports:
        what = f"fabric.unit is {ports}, allocation.yml gave every leaf {draft.ports} host ports"
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
    for path, address in site_addresses(draft.env):
        for _, name, network, site in _networks(draft.env):
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
    for tier in ("leaf", "spine"):
        had, has = (sum(b.count for b in a.switches if b.tier == tier) for a in (old, new))
        said += [f"{had} {tier} switches, {has} are wanted"] if had != has else []
    rails = sizing.rails(env)
    had, has = (sum(b.spines for b in a.uplinks) * rails for a in (old, new))
    said += [f"{had} uplinks, {has} are wanted"] if had != has else []
    said += ["the racks of a pool or of the fabric changed"] if old.racks != new.racks else []
    return said or ["its numbers are not those that `supernode allocate` gave"]
