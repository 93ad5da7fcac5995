"""A layer's graph as columns: who is linked to whom, by which ports; and what is measured on it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

LINK = np.dtype([("a", "u4"), ("a_port", "u2"), ("b", "u4"), ("b_port", "u2"), ("group", "u1")])
Table = npt.NDArray[np.void]
Numbers = npt.NDArray[np.int64]
FAR = -1  # no way leads there


@dataclass(frozen=True)
class Group:
    """Links that are alike: a dimension of a torus, or all links between two tiers.

    Attributes:
        name: e.g. "x", "chord", "card-l1"; unique in its graph.
        share: what one of its links carries, over what the layer's `rate` says.
    """

    name: str
    share: float = 1.0


@dataclass(frozen=True, eq=False)
class Graph:
    """The cards of a domain, or the end ports of a fabric, with their switches and links.

    Vertices are numbers: first the cards, then the switches, tier by tier from the cards up.

    Attributes:
        cards: how many there are.
        tiers: how many switches each tier has, the one next to the cards first; empty where cards are linked directly.
        links: LINK rows; ports are 0-based, and a port's number tells the group it serves: what is cabled by dimension
            can be routed by dimension. Of a link between tiers `a` is the lower end.
        groups: what `links["group"]` counts.
    """

    cards: int
    tiers: tuple[int, ...]
    links: Table
    groups: tuple[Group, ...]

    @property
    def vertices(self) -> int:
        """How many cards and switches there are."""
        return self.cards + sum(self.tiers)

    @property
    def direct(self) -> bool:
        """Whether any two cards are linked without a switch between them."""
        return bool(np.any((self.links["a"] < self.cards) & (self.links["b"] < self.cards)))

    @cached_property
    def degrees(self) -> Numbers:
        """The links of each vertex."""
        ends = np.concatenate([self.links["a"], self.links["b"]])
        return np.bincount(ends, minlength=self.vertices)

    @cached_property
    def _neighbours(self) -> tuple[Numbers, Numbers]:
        """Where each vertex's neighbours begin, and they, one after another."""
        a, b = self.links["a"].astype(np.int64), self.links["b"].astype(np.int64)
        near, far = np.concatenate([a, b]), np.concatenate([b, a])
        starts = np.concatenate([[0], np.cumsum(np.bincount(near, minlength=self.vertices))])
        return starts, far[np.argsort(near, kind="stable")]

    def walks(self, source: int) -> Numbers:
        """Return the fewest links from a vertex to each vertex; FAR where no way leads."""
        starts, far = self._neighbours
        found = np.full(self.vertices, FAR, dtype=np.int64)
        found[source] = walked = 0
        edge = np.array([source])
        while len(edge):
            walked += 1
            counts = starts[edge + 1] - starts[edge]
            first = np.repeat(starts[edge] - np.cumsum(counts) + counts, counts)
            reached = np.zeros(self.vertices, dtype=np.bool_)
            reached[far[first + np.arange(len(first))]] = True
            edge = np.flatnonzero(reached & (found == FAR))
            found[edge] = walked
        return found

    def hops(self, source: int) -> Numbers:
        """Return the hops to each card: links walked where cards are linked directly, else switches passed."""
        found = self.walks(source)[: self.cards]
        return found if self.direct else np.where(found > 0, found - 1, found)

    def crossing(self, half: npt.NDArray[np.bool_]) -> float:
        """Return what the links between a half of the vertices and the other carry, in links of the full rate."""
        crosses = half[self.links["a"]] != half[self.links["b"]]
        shares = np.array([group.share for group in self.groups])
        return float(np.sum(shares[self.links["group"][crosses]]))


def linked(a: Numbers, a_port: Numbers | int, b: Numbers, b_port: Numbers | int, group: int) -> Table:
    """Return LINK rows of one group from its columns, each an array or one number for all."""
    table = np.zeros(np.broadcast(a, a_port, b, b_port).shape, LINK)
    table["a"], table["a_port"], table["b"], table["b_port"], table["group"] = a, a_port, b, b_port, group
    return table


def behind_switches(direct: Graph, each: int) -> Graph:
    """Return the graph in which every card of a direct one is a switch with `each` end ports: a scale-out of its shape.

    The switches' first `each` ports are for them.
    """
    ends = direct.cards * each
    own = np.arange(ends)
    down = linked(own, 0, ends + own // each, own % each, 0)
    across = direct.links.copy()
    for end in ("a", "b"):
        across[end] += ends
        across[f"{end}_port"] += each
    across["group"] += 1
    return Graph(ends, (direct.cards,), np.concatenate([down, across]), (Group("end"), *direct.groups))
