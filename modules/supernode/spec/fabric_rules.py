"""What a fabric's family asks of the rest of an environment, and the arithmetic of its ports and places."""

from __future__ import annotations

from collections.abc import Iterator

from supernode import catalog
from supernode.errors import Problem
from supernode.spec import clos, sizing
from supernode.spec.environment import Environment
from supernode.units import MbitPerS, format_rate


def consistency(env: Environment) -> Iterator[Problem]:
    """Yield what of a fabric does not go with its family."""
    fabric = env.fabric
    if fabric.family == "leaf-spine" and fabric.tiers == 3:
        hint = "family fat-tree has three"
        yield Problem(("fabric", "tiers"), "family leaf-spine has two tiers", hint)
    if fabric.family == "fat-tree" and fabric.oversubscription != 1:
        what = f"fabric.oversubscription is {fabric.oversubscription:g}, a fat tree carries as much above as below"
        yield Problem(("fabric", "oversubscription"), what, "family leaf-spine takes an oversubscription")
    if fabric.planes > 1:
        yield from _planes(env)


def _planes(env: Environment) -> Iterator[Problem]:
    planes, path = env.fabric.planes, ("fabric", "planes")
    if env.fabric.infiniband:
        what = f"fabric.planes is {planes}, a subnet manager sees one InfiniBand fabric"
        yield Problem(path, what, "transport: roce-v2, or leave planes out")
    known = catalog.server_kinds()
    for kind in dict.fromkeys(pool.kind for pool in env.pools if pool.kind in known and sizing.on_fabric(pool)):
        splits = catalog.server(kind).nic_splits
        if planes not in splits:
            what = f"fabric.planes is {planes}, a NIC of {kind} divides into {' or '.join(map(str, splits))}"
            yield Problem(path, what, "another number of planes, or another kind")


def arithmetic(env: Environment) -> list[Problem]:
    """Return rates, ports and places that do not suffice; kinds and racks must be known."""
    return list(_rates(env)) or [*_ports(env), *_switch_room(env)]


def _rates(env: Environment) -> Iterator[Problem]:
    rates = env.fabric.rates
    leaf, spine = catalog.switch(env.fabric.leaf), catalog.switch(env.fabric.spine)
    pools = (catalog.server(pool.kind) for pool in env.pools if sizing.on_fabric(pool))
    slowest = min(pools, key=lambda kind: kind.nics[0].rate)
    limits = (
        ("rail", rates.rail, slowest.name, MbitPerS(slowest.nics[0].rate / env.fabric.planes)),
        ("rail", rates.rail, leaf.name, leaf.rate),
        ("uplink", rates.uplink, leaf.name, leaf.rate),
        ("uplink", rates.uplink, spine.name, spine.rate),
    )
    said: set[str] = set()
    for name, rate, kind, most in limits:
        if rate > most and name not in said:
            said.add(name)
            what = f"fabric.rates.{name} is {format_rate(MbitPerS(rate))}, a port of {kind} carries {format_rate(most)}"
            yield Problem(("fabric", "rates", name), what, f"at most {format_rate(most)}, or another kind")


def _ports(env: Environment) -> Iterator[Problem]:
    """Count ports of a leaf with all its hosts, and of a spine with all its leaves."""
    fabric = env.fabric
    ports = sizing.host_ports(env)
    have = sizing.uplink_ports(env, ports)
    if not ports or have < 0:
        what = f"a {fabric.leaf} has no room for {ports or 'even one'} host ports and their uplinks"
        yield Problem(("fabric", "unit" if fabric.unit else "leaf"), what, "a smaller unit, or a leaf with more ports")
        return
    spines, lanes = _lanes(env, ports)
    if spines * lanes > have:
        down, up = ports * fabric.rates.rail, have * fabric.rates.uplink
        what = (
            f"{spines} x {lanes} uplinks are needed for oversubscription {fabric.oversubscription:g}, "
            f"a {fabric.leaf} has {have} beside {ports} host ports (at best {down / up if up else float('inf'):.2f})"
        )
        yield Problem(("fabric", "oversubscription"), what, "allow more, or take faster uplinks or a smaller unit")
    yield from _above(env, _units(env, ports), lanes, clos.shape(env, ports, _units(env, ports)))


def _units(env: Environment, ports: int) -> int:
    return -(-sizing.fabric_hosts(env) // (ports // sizing.per_leaf(env)))


def _lanes(env: Environment, ports: int) -> tuple[int, int]:
    """Return the spines and the lanes to each at the fullest leaf; no unit declared, its hosts alone count."""
    form = clos.shape(env, ports, _units(env, ports))
    if env.fabric.unit or not env.fabric.spines:
        return form.spines, form.lanes
    taken = min(sizing.fabric_hosts(env) * sizing.per_leaf(env), ports)
    return form.spines, sizing.lanes(env, taken, form.spines)


def _above(env: Environment, units: int, lanes: int, form: clos.Shape) -> Iterator[Problem]:
    fabric, have = env.fabric, sizing.spine_ports(env)
    leaves = clos.meeting(env) * (form.units or units)
    needed, most = leaves * lanes, have if form.tiers == 2 else clos.half(env)
    if needed > most:
        each = f"{leaves} leaves x {lanes} cables make {needed} ports on each spine"
        beside = "" if form.tiers == 2 else f" {most} beside those that lead up, of"
        what = f"{each}, a {fabric.spine} has{beside} {have}"
        hint = "more spines take fewer cables each; a larger fabric needs a third tier"
        yield Problem(("fabric", "spines"), what, hint)
    if form.pods * form.core_lanes > have:
        what = f"{form.pods} pods make {form.pods * form.core_lanes} ports on each core, a {fabric.spine} has {have}"
        yield Problem(("fabric", "spine"), what, "a spine with more ports, or fewer hosts")


def _switch_room(env: Environment) -> Iterator[Problem]:
    racks = {rack.name: rack for rack in env.racks}
    leaf, spine = catalog.switch(env.fabric.leaf), catalog.switch(env.fabric.spine)
    have = sum(sizing.switch_places(racks[name], leaf, spine) for name in env.fabric.racks)
    ports = max(sizing.host_ports(env), sizing.per_leaf(env))
    units = _units(env, ports)
    form = clos.shape(env, ports, units)
    above = sizing.lines(env) * (form.pods * form.spines + form.all_cores)
    needed = env.fabric.planes * (units * sizing.leaves(env) + above)
    if needed > have:
        what = f"{needed} switches are needed, the fabric's racks have places for {have}"
        yield Problem(("fabric", "racks"), what, "name more racks for the fabric")
