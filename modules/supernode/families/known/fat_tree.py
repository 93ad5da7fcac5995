"""The k-ary fat tree of two or three tiers of one kind of switch, as many links up as down.

Al-Fares et al., "A scalable, commodity data center network architecture", SIGCOMM 2008: k pods of k/2 edge and k/2
aggregation switches, (k/2)**2 core switches, k**3/4 ends; aggregation switch i of a pod is linked to core switches
i*k/2 to (i+1)*k/2 - 1. With two tiers k leaves, k/2 spines and k**2/2 ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from supernode import families
from supernode.families.graph import Graph, Group, Table, linked

NAME = "fat-tree"
SUMMARY = "two or three tiers of one kind of switch, nothing oversubscribed; k**2/2 or k**3/4 ends"


class Parameters(families.Parameters):
    """Ports of a switch, even, and how many tiers."""

    family: Literal["fat-tree"]
    radix: Annotated[int, Field(ge=2, le=512)]
    tiers: Literal[2, 3] = 2

    @model_validator(mode="after")
    def _halves(self) -> Parameters:
        if self.radix % 2:
            raise ValueError(f"radix {self.radix} is odd; half of a switch's ports lead up")
        families.bounded(size(self) * self.tiers)
        return self


def size(p: Parameters) -> int:
    """Return the ends."""
    return int(2 * (p.radix // 2) ** p.tiers)


def graph(p: Parameters) -> Graph:
    """Return the tree; a switch's first ports lead down, a top one's all."""
    half, ends = p.radix // 2, size(p)
    leaves = ends // half
    end = np.arange(ends)
    down = linked(end, 0, ends + end // half, end % half, 0)
    if p.tiers == 2:
        return Graph(
            ends, (leaves, half), np.concatenate([down, _to_spines(p)]), (Group("end-leaf"), Group("leaf-spine"))
        )
    pod, low, high = np.indices((p.radix, half, half)).reshape(3, -1)
    edge, upper = ends + pod * half + low, ends + leaves + pod * half + high
    middle = linked(edge, half + high, upper, low, 1)
    top = linked(ends + leaves + pod * half + low, half + high, ends + 2 * leaves + low * half + high, pod, 2)
    names = ("end-edge", "edge-aggregation", "aggregation-core")
    return Graph(ends, (leaves, leaves, half**2), np.concatenate([down, middle, top]), tuple(map(Group, names)))


def _to_spines(p: Parameters) -> Table:
    leaf, spine = np.indices((p.radix, p.radix // 2)).reshape(2, -1)
    first = size(p) + leaf
    return linked(first, p.radix // 2 + spine, size(p) + p.radix + spine, leaf, 1)


def sources(_p: Parameters) -> Sequence[int]:
    """Return one end: all are alike."""
    return (0,)


def bisection(p: Parameters, _graph: Graph) -> float:
    """Return one link for each end of a half: no tier carries less than the one below it."""
    return size(p) / 2


def routing(_p: Parameters) -> families.Routing:
    """Return ftree: up and down by tiers."""
    return families.Routing("ftree", 1, "up and down by tiers: no circle can close")


def candidates(cards: int) -> Iterator[Parameters]:
    """Yield the trees of just so many ends."""
    for tiers in (2, 3):
        half = round((cards / 2) ** (1 / tiers))
        if 1 <= half <= 64 and 2 * half**tiers == cards:
            yield Parameters(family="fat-tree", radix=2 * half, tiers=2 if tiers == 2 else 3)
