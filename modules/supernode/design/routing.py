"""How a fabric is routed without deadlock: what opensm is given, or the BGP plan of a fabric of Ethernet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from supernode.design.model import Design

AXES = "xyz"
# Of a tree each way is up, then down. Where a wrong or missing cable leaves no tree, up/down has no deadlock either.
TREE_ENGINES = ("ftree", "updn")
Channel = tuple[str, str, str]  # from, to, and the name of the cable


@dataclass(frozen=True)
class Manager:
    """What opensm is told.

    Attributes:
        engines: in the order in which they are tried; never a shortest path by chance after them.
        lanes: virtual lanes that they need.
        roots: the switches of the top tier.
    """

    engines: tuple[str, ...]
    lanes: int
    roots: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class BgpTier:
    """The switches of one tier in the BGP plan.

    Attributes:
        asns: the first and the last; the same where the tier shares one.
        up, down: the fewest and the most equal ways of a switch towards the tier above, and to one switch below.
        announced: prefixes of each switch: its loopback, and a leaf's hosts.
        learnt: routes that each learns from its neighbours.
        connected: the most links of one that are numbered.
    """

    tier: str
    switches: int
    asns: tuple[int, int]
    up: tuple[int, int]
    down: tuple[int, int]
    announced: int
    learnt: int
    connected: int


@dataclass(frozen=True)
class Routes:
    """How a fabric is routed, and whether a circle of waiting channels was found in all ways that it may use.

    Attributes:
        circle: the cables of a circle, in order; empty, as it must be.
    """

    transport: str
    manager: Manager | None
    bgp: tuple[BgpTier, ...]
    why: str
    circle: tuple[str, ...]


def routes(design: Design) -> Routes:
    """Return how an environment's fabric is routed."""
    tiers = {switch.name: 1 + (switch.tier == "spine") for switch in design.switches}
    links = [(link.a_device, link.b_device, link.cable) for link in design.links if link.kind == "uplink"]
    found = circle(links, tiers)
    if design.environment.fabric.infiniband:
        return Routes("infiniband", manager(design), (), "opensm makes all routes", found)
    why = (
        "all spines share an ASN, so none takes a route that came through another, and no way leads down and up again; "
        "each leaf has its own, so none needs allowas-in; ways of different leaves are equal by multipath-relax"
    )
    return Routes("roce", None, tuple(_bgp(design)), why, found)


def manager(design: Design) -> Manager:
    """Return what opensm is told of a tree."""
    roots = tuple(switch.name for switch in design.switches if switch.tier == "spine")
    return Manager(TREE_ENGINES, 1, roots, "each way of a tree is up, then down, so one lane has no circle")


def _bgp(design: Design) -> Iterator[BgpTier]:
    uplinks = [link for link in design.links if link.kind == "uplink"]
    hosts = Counter(link.b_device for link in design.links if link.kind == "rail")
    up = Counter(link.a_device for link in uplinks)
    across = Counter((link.a_device, link.b_device) for link in uplinks).values()
    leaves = [switch for switch in design.switches if switch.tier == "leaf"]
    spines = [switch for switch in design.switches if switch.tier == "spine"]
    # A leaf tells of itself and its hosts. Of the spines it hears their loopbacks; a spine hears of no other spine.
    for tier, switches, announced, learnt in (
        ("leaf", leaves, 2, 2 * (len(leaves) - 1) + len(spines) if spines else 0),
        ("spine", spines, 1, 2 * len(leaves)),
    ):
        asns = [switch.asn for switch in switches if switch.asn is not None]
        if asns:
            ways = _range(up[leaf.name] for leaf in leaves) if tier == "leaf" else (0, 0)
            below = (1, 1) if tier == "leaf" else _range(across)
            most = max((hosts[switch.name] for switch in switches), default=0)
            yield BgpTier(tier, len(switches), (min(asns), max(asns)), ways, below, announced, learnt, most)


def _range(counts: Iterable[int]) -> tuple[int, int]:
    found = list(counts)
    return (min(found), max(found)) if found else (0, 0)


def circle(links: Sequence[Channel], tiers: Mapping[str, int], *, valleys: bool = False) -> tuple[str, ...]:
    """Return the cables of a circle of channels that wait for each other; empty where there is none.

    Args:
        links: the lower end, the upper end, the cable.
        tiers: of each switch; a link between two of one tier counts as up from its first end.
        valleys: ways may also go up again after they went down, which is what the plan must not allow.
    """
    import numpy as np

    from supernode.design.forwarding import circle as closed

    channels = [(a, b, cable) for a, b, cable in links] + [(b, a, cable) for a, b, cable in links]
    rises = [tiers[a] <= tiers[b] for a, b, _ in links] + [tiers[a] > tiers[b] for a, b, _ in links]
    leaving: dict[str, list[int]] = {}
    for number, (a, _, _) in enumerate(channels):
        leaving.setdefault(a, []).append(number)
    pairs = [
        (number, following)
        for number, (_, b, cable) in enumerate(channels)
        for following in leaving.get(b, ())
        if channels[following][2] != cable and (valleys or rises[number] or not rises[following])
    ]
    if not pairs:
        return ()
    before, after = np.array(pairs, dtype=np.int64).T
    return tuple(channels[number][2] for number in closed(before, after))


def torus_2qos(shape: Sequence[int], guids: Sequence[int]) -> Iterator[str]:
    """Yield torus-2QoS.conf (torus-2QoS.conf(5)): the shape, and one switch's neighbours, which say what is up.

    Args:
        shape: of two or three dimensions.
        guids: of the switches, the first dimension counting fastest.

    Raises:
        ValueError: not two or three dimensions, or not one GUID for each switch.
    """
    if len(shape) not in (2, 3):
        raise ValueError(f"torus-2QoS routes two or three dimensions, not {len(shape)}")
    if len(guids) != prod(shape):
        raise ValueError(f"{len(guids)} GUIDs for {prod(shape)} switches")
    # Of two switches there is one link: a dimension that is open, not closed.
    sizes = [f"{size}{'m' if size == 2 else 't'}" for size in shape] + ["1"] * (3 - len(shape))
    yield f"torus {' '.join(sizes)}\n"
    for axis, size in enumerate(shape):
        step = prod(shape[:axis])
        yield f"{AXES[axis]}p_link 0x{guids[0]:016x} 0x{guids[step]:016x}\n"
        if size == 4:  # the neighbours of a neighbour do not tell which way is up
            yield f"{AXES[axis]}m_link 0x{guids[0]:016x} 0x{guids[(size - 1) * step]:016x}\n"
