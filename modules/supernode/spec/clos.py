"""The rule of Clos fabrics: how many spines, pods and cores join so many units, for any radix and number of rails.

For radix 64, 8 rails and units of 32 it gives every row of the DGX SuperPOD tables.
"""

from __future__ import annotations

from dataclasses import dataclass

from supernode.spec import sizing
from supernode.spec.environment import Environment


@dataclass(frozen=True)
class Shape:
    """What stands above the leaves, in one plane and, in rail-only, for one rail.

    Attributes:
        spines: of one pod.
        lanes: parallel cables of a leaf and a spine, where every leaf is full.
        units: of a pod; 0 in two tiers, where there is no pod.
        pods: 1 in two tiers.
        cores: of one group; spine n of every pod reaches the cores of group n. 0 in two tiers.
        core_lanes: parallel cables of a spine and a core.
    """

    tiers: int
    spines: int
    lanes: int
    units: int = 0
    pods: int = 1
    cores: int = 0
    core_lanes: int = 0

    def pod(self, unit: int) -> int:
        """Return the pod of a unit, both from 1; 0 in two tiers."""
        return (unit - 1) // self.units + 1 if self.units else 0

    @property
    def all_cores(self) -> int:
        """How many cores there are in all groups."""
        return self.cores * self.spines


def meeting(env: Environment) -> int:
    """Return how many leaves of a unit are cabled to one and the same spine."""
    return sizing.leaves(env) // sizing.lines(env)


def half(env: Environment) -> int:
    """Return the ports of a spine that are for leaves where there are cores above it."""
    return sizing.spine_ports(env) // 2


def shape(env: Environment, ports: int, units: int) -> Shape:
    """Return what joins so many units whose leaves have so many host ports each.

    Two tiers, while a spine has a port for every leaf: the fewest spines over which the uplinks of a leaf divide evenly
    and whose ports suffice. Else three: a pod is what half of a spine's ports take, the other half goes up, and each
    spine reaches one group of cores, which has the fewest that divide evenly. What does not fit even so has one cable
    to each, and is refused where ports are counted.
    """
    up, top = sizing.uplinks(env, ports), sizing.spine_ports(env)
    stated, tiers = env.fabric.spines, env.fabric.tiers
    leaves = units * meeting(env)
    fewest = _fewest(up, leaves, top)
    if tiers == 2 or (tiers is None and (stated or fewest or env.fabric.family == "leaf-spine")):
        spines = stated or fewest or up
        return Shape(2, spines, sizing.lanes(env, ports, spines))
    spines = stated or up
    lanes = sizing.lanes(env, ports, spines)
    size = max(1, half(env) // (meeting(env) * lanes))
    pods, climbing = -(-units // size), size * meeting(env) * lanes
    cores = _fewest(climbing, pods, top) or climbing
    return Shape(3, spines, lanes, size, pods, cores, climbing // cores)


def _fewest(cables: int, below: int, ports: int) -> int:
    """Return the fewest switches over which the cables of each one below divide evenly; 0 where no number does."""
    return next((n for n in range(1, cables + 1) if cables % n == 0 and below * (cables // n) <= ports), 0)
