"""Contradictions that a document shows by itself or against the catalogue, each found on its own and all reported."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, islice
from typing import Any

from supernode import catalog
from supernode.catalog import ServerKind
from supernode.errors import Path, Problem
from supernode.spec import (
    cloud_rules,
    collectives,
    cooling,
    fabric_rules,
    gpu_driver,
    scale_up,
    scheduler,
    sizing,
    transport,
    vpn_consistency,
    watch,
)
from supernode.spec.allocation import Allocation
from supernode.spec.environment import Environment, Pool
from supernode.spec.machines import Machines

_PLACEHOLDER = re.compile(r"\{[^{}]*\}")


def environment(env: Environment, broken: Collection[Path] = ()) -> list[Problem]:
    """Return what contradicts what in an environment.

    Args:
        env: the environment; at `broken` it holds stand-ins.
        broken: paths whose values were wrong by themselves: nothing more is said about these.
    """
    checks = (
        _networks,
        _names,
        _kinds,
        _bmc,
        cooling.consistency,
        transport.consistency,
        fabric_rules.consistency,
        gpu_driver.consistency,
        scale_up.consistency,
        scheduler.consistency,
        collectives.consistency,
        cloud_rules.consistency,
        watch.consistency,
        vpn_consistency.problems,
    )
    problems = [problem for check in checks for problem in check(env)]
    doubtful = {str(path[0]) for path in (*broken, *(p.path for p in problems)) if path}
    problems += (*_bios(env), *_minimum(env), *_deadline(env))
    if not doubtful & {"pools", "fabric", "racks"}:
        # Arithmetic over kinds, rates and racks makes sense only where all of them are known.
        problems += (*_room(env), *fabric_rules.arithmetic(env))
    # A network that is wrong says nothing about its gateway either: there the whole network counts as broken.
    silent = [path[:3] if path[:2] == ("site", "networks") else path for path in broken]
    return [p for p in problems if not any(p.path[: len(path)] == path for path in silent)]


def same_name(env: Environment, folder: str | None) -> list[Problem]:
    """Return what is wrong when the environment lies in a folder of another name; None: it lies in none."""
    if folder is None or env.name == folder:
        return []
    hint = (
        f"write `name: {folder}`, here and as `environment:` in supernode.yml; "
        "a copy brings along no delivery/, machines.yml or allocation.yml"
    )
    return [Problem(("name",), f"the environment is called {env.name} and lies in the folder {folder}", hint)]


def _networks(env: Environment) -> Iterator[Problem]:
    rows = env.site.networks.declared()
    for (one, first), (two, second) in combinations(rows.items(), 2):
        if first.cidr.overlaps(second.cidr):
            what = f"network {two} ({second.cidr}) overlaps {one} ({first.cidr})"
            yield Problem(("site", "networks", two, "cidr"), what, "give each network a range of its own")
    for name, network in rows.items():
        if network.gateway and network.gateway not in network.cidr:
            what = f"the gateway {network.gateway} lies outside {network.cidr}"
            yield Problem(("site", "networks", name, "gateway"), what, "a gateway stands in its own network")
        elif network.gateway in {network.cidr.network_address, network.cidr.broadcast_address}:
            what = f"the gateway {network.gateway} is the network's or the broadcast address of {network.cidr}"
            yield Problem(("site", "networks", name, "gateway"), what, None)


def _names(env: Environment) -> Iterator[Problem]:
    yield from _few(_unique("rack", [rack.name for rack in env.racks], lambda i: ("racks", i, "name")))
    yield from _unique("pool", [pool.name for pool in env.pools], lambda i: ("pools", i, "name"))
    racks = dict.fromkeys(rack.name for rack in env.racks)
    taken: dict[str, str] = {}
    users: list[tuple[str, Path, Sequence[str]]] = [("fabric", ("fabric", "racks"), env.fabric.racks)]
    users[:0] = [(f"pool {pool.name}", ("pools", i, "racks"), pool.racks) for i, pool in enumerate(env.pools)]
    for user, path, named in users:
        yield from _few(_named(user, path, named, racks, taken))
    for index, pool in enumerate(env.pools):
        if pool.name == "fabric":
            what = "a pool may not be called fabric: allocation.yml keeps the switches' racks under that name"
            yield Problem(("pools", index, "name"), what, "choose another name")


def _named(
    user: str, path: Path, named: Sequence[str], racks: Collection[str], taken: dict[str, str]
) -> Iterator[Problem]:
    for index, rack in enumerate(named):
        if rack not in racks:
            what = f"{user} names rack {rack}, which does not exist"
            known = list(racks)
            known[_MANY:] = [f"… {known[-1]}"] if len(known) > _MANY else []
            yield Problem((*path, index), what, f"racks: {', '.join(known)}")
        elif rack in taken:
            yield Problem((*path, index), f"{user} names rack {rack}, which {taken[rack]} has", "a rack has one user")
        taken.setdefault(rack, user)


def _few(problems: Iterator[Problem]) -> Iterator[Problem]:
    """Yield the first of many problems that are alike, as two ranges of racks make them, and how many follow."""
    found = list(islice(problems, _MANY))
    rest = sum(1 for _ in problems)
    if rest:
        found[-1] = replace(found[-1], what=f"{found[-1].what}, and {rest} more like it")
    yield from found


_MANY = 12


def _bmc(env: Environment) -> Iterator[Problem]:
    """Check that a new password has a place of its own for each machine, and one that can be written."""
    known: list[tuple[str, Path, str]] = [("password", ("bmc", "password"), env.bmc.password)]
    if factory := env.bmc.factory:
        known.append(("factory.password", ("bmc", "factory", "password"), factory.password))
    for name, path, reference in known:
        strange = [word for word in _PLACEHOLDER.findall(reference) if word != "{slot}"]
        if strange and not reference.startswith("exec:"):  # a command may have braces of its own
            yield Problem(path, f"bmc.{name} holds {strange[0]}, which stands for nothing", "{slot} is all there is")
    if factory is None:
        return
    place: Path = ("bmc", "password")
    hint = "write file:secrets/bmc/{slot} or vault:<mount>/<path>#{slot}"
    if env.bmc.password.startswith("exec:"):
        what = "bmc.password is exec:, which cannot take the new passwords that bmc.factory asks for"
        yield Problem(place, what, hint)
    elif "{slot}" not in env.bmc.password:
        what = "bmc.password holds no {slot}: with bmc.factory each machine gets a password of its own"
        yield Problem(place, what, hint)
    elif env.bmc.password == factory.password:
        what = "bmc.factory.password is where the new password would be kept, too"
        yield Problem(("bmc", "factory", "password"), what, "the factory's passwords have a place of their own")


def _unique(what: str, names: list[str], path: Callable[[int], Path]) -> Iterator[Problem]:
    seen: dict[str, int] = {}
    for index, name in enumerate(names):
        if name in seen:
            yield Problem(path(index), f"{what} {name} is there twice", "names are given once")
        seen.setdefault(name, index)


def _kinds(env: Environment) -> Iterator[Problem]:
    rows: list[tuple[Path, str, Callable[[str], Any]]] = [
        (("pools", i, "kind"), pool.kind, catalog.server) for i, pool in enumerate(env.pools)
    ]
    rows += [
        (("fabric", "leaf"), env.fabric.leaf, catalog.switch),
        (("fabric", "spine"), env.fabric.spine, catalog.switch),
    ]
    for path, kind, find in rows:
        try:
            find(kind)
        except KeyError as error:
            what, _, hint = str(error.args[0]).partition("; ")
            yield Problem(path, what, hint)
    servers = catalog.server_kinds()
    known = [(i, pool, catalog.server(pool.kind)) for i, pool in enumerate(env.pools) if pool.kind in servers]
    for index, pool, server in known:
        if not server.disk.by_id and pool.disk is None and server.cloud is None:
            what = f"a {pool.kind} comes with one system disk or another, and pools[{index}].disk does not name it"
            yield Problem(("pools", index), what, f"add disk: /dev/disk/by-id/... to pool {pool.name}")
    yield from _same_rails([row for row in known if row[2].on_fabric])
    if len(known) == len(env.pools) and not any(server.on_fabric for _, _, server in known):
        kinds = ", ".join(name for name in servers if catalog.server(name).on_fabric)
        what = "no pool has servers with ports for the fabric: a fabric of nobody"
        yield Problem(("pools",), what, f"kinds with rails: {kinds}")


def _same_rails(known: Sequence[tuple[int, Pool, ServerKind]]) -> Iterator[Problem]:
    for index, _, server in known:
        _, pool, first = known[0]
        if len(server.nics) != len(first.nics):
            what = f"{server.name} has {len(server.nics)} rails, {first.name} of pool {pool.name} {len(first.nics)}"
            yield Problem(("pools", index, "kind"), what, "pools of one fabric have the same rails, or none")


def _bios(env: Environment) -> Iterator[Problem]:
    listed = catalog.server_kinds()
    # A service pool's servers take what they have of it (Design.bios): they are other machines.
    kinds = {k.name: k for pool in env.pools if pool.kind in listed and (k := catalog.server(pool.kind)).on_fabric}
    for name, value in env.machines.bios.items():
        for kind in kinds.values():
            known = kind.bios.get(name)
            if kind.bios and known is None:
                what = f"{kind.name} has no BIOS attribute {name}"
                yield Problem(("machines", "bios", name), what, f"its registry: {', '.join(sorted(kind.bios))}")
            elif known is not None and not known.admits(value):
                wanted = ", ".join(known.values) or f"a value of type {known.type}"
                what = f"BIOS attribute {name} of {kind.name} may be {wanted}, not {value}"
                quotes = "put quotes around it: YAML reads On, Off, Yes and No as true or false"
                yield Problem(("machines", "bios", name), what, quotes if isinstance(value, bool) else None)


def _minimum(env: Environment) -> Iterator[Problem]:
    for index, pool in enumerate(env.pools):
        if pool.minimum > pool.count:
            what = f"pool {pool.name} asks for {pool.count} machines and cannot go on with fewer than {pool.minimum}"
            yield Problem(("pools", index, "minimum"), what, f"at most {pool.count}")


def _deadline(env: Environment) -> Iterator[Problem]:
    """Hold the deadline against the stage's budget: a late machine is missed, and a spare takes over, inside it."""
    if env.machines.deadline_s > env.budgets.provision_s:
        have = f"budgets.provision_s is {env.budgets.provision_s:g}"
        what = f"machines.deadline_s is {env.machines.deadline_s:g}, {have}: a late machine would take the whole run"
        yield Problem(("machines", "deadline_s"), what, "a shorter deadline, or a longer budget")


def _room(env: Environment) -> Iterator[Problem]:
    for index, pool in enumerate(env.pools):
        needed, have = pool.count + pool.spares, _places(env, pool)
        if needed > have and not pool.cloud:
            what = f"pool {pool.name} has {needed} machines with its spares, its racks have places for {have}"
            yield Problem(("pools", index, "count"), what, "name more racks, or fewer machines")


def _places(env: Environment, pool: Pool) -> int:
    kind = catalog.server(pool.kind)
    named = set(pool.racks)
    return 0 if pool.cloud else sum(sizing.server_places(rack, kind) for rack in env.racks if rack.name in named)


def machines(found: Machines) -> list[Problem]:
    """Return identities that two slots claim: a machine stands in one place."""
    first: dict[tuple[str, str], str] = {}
    problems = []
    for slot, record in found.slots.items():
        for key, value in record.identity.known().items():
            claim = (_family(key), value.lower())
            if claim in first and first[claim] != slot:
                what = f"slots {first[claim]} and {slot} both claim {key} {value}"
                problems.append(
                    Problem(("slots", slot, "identity", key), what, "a machine stands in one slot", "machines")
                )
            first.setdefault(claim, slot)
    return problems


def _family(key: str) -> str:
    """All MAC addresses share one space; a serial is unique among its kind only."""
    return "mac" if key.endswith("_mac") else key


def allocation(env: Environment, saved: Allocation) -> list[Problem]:
    """Return what is wrong with an allocation by itself: another environment's, or numbers given twice by hand."""
    problems = []
    if saved.name != env.name:
        what = f"this allocation is of {saved.name}, the environment is {env.name}"
        problems.append(
            Problem(
                ("name",), what, "a name is for good: a new environment starts without allocation.yml", "allocation"
            )
        )
    twice = Counter(f"{b.pool}-{n:03d}" for b in saved.hosts for n in range(b.first, b.first + b.count))
    rented = {pool.name for pool in env.pools if pool.cloud}
    addresses = Counter((b.pool in rented, a) for b in saved.hosts for a in range(b.address, b.address + b.count))
    addresses.update((False, a) for b in saved.switches for a in range(b.address, b.address + b.count))
    again = [name for name, count in twice.items() if count > 1]
    shared = [number for (_, number), count in addresses.items() if count > 1]
    if again or shared:
        what = f"numbers are given twice: {', '.join([*again[:3], *(f'address {n}' for n in shared[:3])])}"
        problems.append(Problem(("hosts",), what, "restore the file from git", "allocation"))
    return problems
