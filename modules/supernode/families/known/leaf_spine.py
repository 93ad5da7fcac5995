"""Leaves and spines: every leaf linked to every spine, oversubscribed as the spec states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from supernode import families
from supernode.families.graph import Graph, Group, linked

NAME = "leaf-spine"
SUMMARY = "two tiers, every leaf linked to every spine; oversubscription as stated"


class Parameters(families.Parameters):
    """Leaves, ends of a leaf, spines, links of each pair, and the oversubscription that this is meant to be.

    `up_rate` is an uplink's rate over an end's.
    """

    family: Literal["leaf-spine"]
    leaves: Annotated[int, Field(ge=1, le=4096)]
    leaf_ends: Annotated[int, Field(ge=1, le=1024)]
    spines: Annotated[int, Field(ge=1, le=1024)]
    pair_links: Annotated[int, Field(ge=1, le=256)] = 1
    up_rate: Annotated[float, Field(gt=0, le=16, allow_inf_nan=False)] = 1.0
    oversubscription: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0

    @model_validator(mode="after")
    def _is_as_stated(self) -> Parameters:
        found = self.leaf_ends / (self.spines * self.pair_links * self.up_rate)
        if abs(found - self.oversubscription) > 0.01 * self.oversubscription:
            raise ValueError(
                f"oversubscription is stated as {self.oversubscription:g}, but {self.leaf_ends} ends over "
                f"{self.spines * self.pair_links} uplinks of rate {self.up_rate:g} are {found:.3g}"
            )
        leaf_ports = self.leaf_ends + self.spines * self.pair_links
        families.bounded(self.leaves * leaf_ports, max(leaf_ports, self.leaves * self.pair_links))
        return self


def size(p: Parameters) -> int:
    """Return the ends of all leaves."""
    return p.leaves * p.leaf_ends


def graph(p: Parameters) -> Graph:
    """Return the tiers; a leaf's first ports lead down, then up spine by spine; a spine's leaf by leaf."""
    end = np.arange(size(p))
    down = linked(end, 0, size(p) + end // p.leaf_ends, end % p.leaf_ends, 0)
    leaf, spine, copy = np.indices((p.leaves, p.spines, p.pair_links)).reshape(3, -1)
    low, high = size(p) + leaf, size(p) + p.leaves + spine
    up = linked(low, p.leaf_ends + spine * p.pair_links + copy, high, leaf * p.pair_links + copy, 1)
    groups = (Group("end-leaf"), Group("leaf-spine", p.up_rate))
    return Graph(size(p), (p.leaves, p.spines), np.concatenate([down, up]), groups)


def sources(_p: Parameters) -> Sequence[int]:
    """Return one end: all are alike."""
    return (0,)


def bisection(p: Parameters, graph: Graph) -> float:
    """Return the weaker of two cuts: the leaves of one half with their ends, or half the ends alone."""
    at = np.arange(graph.vertices)
    half = p.leaves // 2
    leaves = (at >= size(p)) & (at < size(p) + half)
    cuts = [at < size(p) // 2]
    return families.weakest(graph, [*cuts, (at < half * p.leaf_ends) | leaves] if half else cuts)


def routing(_p: Parameters) -> families.Routing:
    """Return ftree: up and down by tiers."""
    return families.Routing("ftree", 1, "up and down by tiers: no circle can close")


def candidates(cards: int) -> Iterator[Parameters]:
    """Yield leaves of 32 ends, or of 8, with as many uplinks."""
    for ends in (32, 8):
        leaves, rest = divmod(cards, ends)
        if rest == 0 and 2 <= leaves <= 1024:
            yield Parameters(family="leaf-spine", leaves=leaves, leaf_ends=ends, spines=ends)
