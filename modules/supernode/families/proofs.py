"""What a graph is proved to have: measured on it, from every card or from one of each symmetric class."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from supernode.families.graph import FAR, Graph


@dataclass(frozen=True)
class Proofs:
    """The figures of a layer.

    Attributes:
        ports_per_card: the most that any card has.
        diameter: the most hops between two cards (`Graph.hops`).
        mean_hops: over all ordered pairs of different cards.
        bisection: what the weakest cut into halves carries, in links of the full rate.
        oversubscription: of each tier but the top one, what comes from below over what goes further up, at the switch
            where it is highest; empty without tiers.
        pairs: how the hops were measured: "all" or "symmetry".
    """

    cards: int
    switches: tuple[int, ...]
    ports_per_card: int
    links: int
    diameter: int
    mean_hops: float
    bisection: float
    oversubscription: tuple[float, ...]
    pairs: str


def prove(graph: Graph, bisection: float, sources: Sequence[int] | None = None) -> Proofs:
    """Measure a graph.

    Args:
        graph: of one family's parameters.
        bisection: what its family says of it; cuts are a family's knowledge.
        sources: one card of each symmetric class, classes being of one size; None measures from every card.

    Raises:
        ValueError: some card reaches another by no way.
    """
    diameter, total = 0, 0
    measured = range(graph.cards) if sources is None else sources
    for source in measured:
        hops = graph.hops(source)
        if np.any(hops == FAR):
            raise ValueError(f"card {source} does not reach card {int(np.argmax(hops == FAR))}")
        diameter, total = max(diameter, int(hops.max())), total + int(hops.sum())
    return Proofs(
        cards=graph.cards,
        switches=graph.tiers,
        ports_per_card=int(graph.degrees[: graph.cards].max()) if len(graph.links) else 0,
        links=len(graph.links),
        diameter=diameter,
        mean_hops=total / (len(measured) * max(graph.cards - 1, 1)),
        bisection=bisection,
        oversubscription=_oversubscription(graph),
        pairs="all" if sources is None else "symmetry",
    )


def _oversubscription(graph: Graph) -> tuple[float, ...]:
    shares = np.array([group.share for group in graph.groups])[graph.links["group"]]
    bounds = np.cumsum([graph.cards, *graph.tiers])
    a, b = graph.links["a"], graph.links["b"]
    tier = np.searchsorted(bounds, np.arange(graph.vertices), side="right")
    rising = tier[a] < tier[b]
    down = np.bincount(b[rising], shares[rising], graph.vertices)
    up = np.bincount(a[rising], shares[rising], graph.vertices)
    return tuple(
        float(np.max(down[first:last] / np.maximum(up[first:last], 1e-12))) for first, last in pairwise(bounds[:-1])
    )


def weakest(graph: Graph, halves: Iterable[npt.NDArray[np.bool_]]) -> float:
    """Return what the weakest of some cuts carries, in links of the full rate; 0 where there is none."""
    return min((graph.crossing(half) for half in halves), default=0.0)
