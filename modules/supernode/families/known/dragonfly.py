"""A dragonfly: groups that are full meshes inside, each pair of groups joined by the same number of links.

Kim et al., "Technology-driven, highly-scalable dragonfly topology", ISCA 2008: a cards a group, h global links a card,
g groups, at most a*h + 1. Which card has which global link is this module's: global port k of a group, k = 0, 1, ..,
leads to the group k + 1 further, and is on its card k mod a, so that cards differ by one link at most and every group
looks the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from supernode import families
from supernode.families.graph import LINK, Graph, Group, Table, linked
from supernode.families.known import hyperx
from supernode.families.registry import LIKELY_PORTS

NAME = "dragonfly"
SUMMARY = "groups meshed inside, each pair of groups joined by a link; three hops, few ports"


class Parameters(families.Parameters):
    """Size of a group, global links a card, how many groups, and how many links join a pair of groups.

    A card may leave one global port or more unused where the groups are fewer than a*h + 1.
    """

    family: Literal["dragonfly"]
    a: Annotated[int, Field(ge=1, le=1024)]
    h: Annotated[int, Field(ge=1, le=1024)]
    g: Annotated[int, Field(ge=2, le=65536)]
    pair_links: Annotated[int, Field(ge=1, le=1024)] = 1

    @model_validator(mode="after")
    def _reaches_all_groups(self) -> Parameters:
        needed, there = (self.g - 1) * self.pair_links, self.a * self.h
        if needed > there:
            raise ValueError(
                f"{self.g} groups need {needed} global links a group; a={self.a} cards with h={self.h} have {there}"
            )
        families.bounded(self.g * (self.a * (self.a - 1) + needed) // 2)
        return self


def size(p: Parameters) -> int:
    """Return the cards of all groups."""
    return p.a * p.g


def graph(p: Parameters) -> Graph:
    """Return the groups; the first a - 1 ports of a card are local, the others global."""
    inside = np.zeros(0, LINK) if p.a == 1 else hyperx.meshed((p.a,))
    local = np.tile(inside, p.g)
    first = np.repeat(np.arange(p.g) * p.a, len(inside))
    local["a"] += first.astype(np.uint32)
    local["b"] += first.astype(np.uint32)
    return Graph(size(p), (), np.concatenate([local, _between(p)]), (Group("local"), Group("global")))


def _between(p: Parameters) -> Table:
    low, high = np.triu_indices(p.g, 1)
    rows = []
    for copy in range(p.pair_links):
        ahead = copy * (p.g - 1) + high - low - 1
        back = copy * (p.g - 1) + p.g - 1 - (high - low)
        ends = (low * p.a + ahead % p.a, high * p.a + back % p.a)
        rows.append(linked(ends[0], p.a - 1 + ahead // p.a, ends[1], p.a - 1 + back // p.a, 1))
    return np.concatenate(rows)


def sources(p: Parameters) -> Sequence[int]:
    """Return one group's cards: all groups look the same."""
    return range(p.a)


def bisection(p: Parameters, graph: Graph) -> float:
    """Return the weaker of two cuts: between groups, or through all of them."""
    cards = np.arange(size(p))
    cuts = [cards // p.a < p.g // 2, cards % p.a < p.a // 2]
    even = [length % 2 == 0 for length in (p.g, p.a)]
    return families.weakest(graph, [cut for cut, whole in zip(cuts, even, strict=True) if whole] or cuts[:1])


def routing(_p: Parameters) -> families.Routing:
    """Return dfsssp: shortest paths, put on as many lanes as their circles need."""
    return families.Routing("dfsssp", 8, "shortest paths on several lanes; 32 groups of 8 need five")


def candidates(cards: int) -> Iterator[Parameters]:
    """Yield the three divisions into groups that take the fewest ports."""
    shapes = [(a, -(-(cards // a - 1) // a), cards // a) for a in range(2, cards // 2 + 1) if cards % a == 0]
    for a, h, g in sorted(shapes, key=lambda shape: shape[0] - 1 + shape[1])[:3]:
        if a - 1 + h <= LIKELY_PORTS:
            yield Parameters(family="dragonfly", a=a, h=h, g=g)
