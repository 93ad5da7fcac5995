"""How many of a thing fit: the arithmetic that checks and the design share."""

from __future__ import annotations

import math

from supernode import catalog
from supernode.catalog import ServerKind, SwitchKind
from supernode.spec.environment import Environment, Pool, Rack


def on_fabric(pool: Pool) -> bool:
    """Tell whether a pool's servers have ports for the fabric; those of a service pool and rented ones have none."""
    return catalog.server(pool.kind).on_fabric


def rails(env: Environment) -> int:
    """Return the number of rails, which all pools on the fabric share; 0 where none is on it."""
    return next((len(catalog.server(pool.kind).nics) for pool in env.pools if on_fabric(pool)), 0)


def fabric_hosts(env: Environment) -> int:
    """Return how many hosts the fabric has to take, spares included."""
    return sum(pool.count + pool.spares for pool in env.pools if on_fabric(pool))


def places(rack: Rack, height_u: int, power_w: int | None) -> int:
    """Return how many devices of a height and power a rack takes; without a declared power, space alone counts."""
    by_space = rack.units // height_u
    return by_space if not (rack.power_w and power_w) else min(by_space, rack.power_w // power_w)


def server_places(rack: Rack, kind: ServerKind) -> int:
    """Return how many servers of a kind a rack takes."""
    return places(rack, kind.height_u, kind.power_w)


def switch_places(rack: Rack, leaf: SwitchKind, spine: SwitchKind) -> int:
    """Return how many switches a rack takes; each place is as high as the higher of the two kinds."""
    return rack.units // max(leaf.height_u, spine.height_u)


def leaves(env: Environment) -> int:
    """Return the leaves of a unit in one plane: one for each rail, or one for whole hosts."""
    return 1 if env.fabric.by_host else rails(env)


def lines(env: Environment) -> int:
    """Return into how many fabrics that never meet each plane falls: the rails in rail-only, else one."""
    return rails(env) if env.fabric.family == "rail-only" else 1


def per_leaf(env: Environment) -> int:
    """Return how many ports of a leaf a host takes."""
    return rails(env) if env.fabric.by_host else 1


def uplinks(env: Environment, ports: int) -> int:
    """Return the uplinks that keep so many host ports of a leaf within the oversubscription."""
    return max(1, math.ceil(ports * env.fabric.rates.rail / _up(env) - 1e-9))


def lanes(env: Environment, ports: int, spines: int) -> int:
    """Return the parallel cables of each leaf and spine that keep so many host ports within the oversubscription."""
    return max(1, math.ceil(ports * env.fabric.rates.rail / (spines * _up(env)) - 1e-9))


def _up(env: Environment) -> float:
    return env.fabric.rates.uplink * env.fabric.oversubscription


def uplink_ports(env: Environment, ports: int) -> int:
    """Return how many uplink ports a leaf has beside `ports` host ports."""
    leaf = catalog.switch(env.fabric.leaf)
    down = math.ceil(ports / leaf.split_for(env.fabric.rates.rail))
    return (leaf.ports - down) * leaf.split_for(env.fabric.rates.uplink)


def spine_ports(env: Environment) -> int:
    """Return how many ports a spine has for leaves."""
    spine = catalog.switch(env.fabric.spine)
    return spine.ports * spine.split_for(env.fabric.rates.uplink)


def host_ports(env: Environment) -> int:
    """Return the host ports of a leaf: the declared unit's, else the largest power of two beside which its uplinks fit.

    0 when not even one host and its uplinks fit.
    """
    if env.fabric.unit:
        return env.fabric.unit * per_leaf(env)
    best, ports = 0, 1
    while uplink_ports(env, ports) >= _wanted(env, ports):
        best, ports = ports, ports * 2
    return best if best >= per_leaf(env) else 0


def _wanted(env: Environment, ports: int) -> int:
    spines = env.fabric.spines
    return spines * lanes(env, ports, spines) if spines else uplinks(env, ports)


def stride(ports: int) -> int:
    """Return how many addresses a leaf's prefix holds: two for each host port, rounded up to a power of two."""
    return 1 << max(1, (2 * ports - 1).bit_length())
