"""HyperX, or nD full mesh: cards on a grid, each linked to all others of its line in every dimension.

Ahn et al., "HyperX: topology, routing, and packaging of efficient large-scale networks", SC 2009, with one card a
switch and one link a pair; an UB-Mesh rack is 8x8 of it, its pod 8x8x4x4.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from supernode import families
from supernode.families.graph import Graph, Group, Table, linked
from supernode.families.known import torus
from supernode.families.registry import LIKELY_PORTS

NAME = "hyperx"
SUMMARY = "full mesh in each of 1 to 6 dimensions; as many hops as dimensions, many ports"
AXES = torus.AXES


class Parameters(families.Parameters):
    """Sizes of the dimensions, each a full mesh."""

    family: Literal["hyperx"]
    shape: Annotated[tuple[Annotated[int, Field(ge=2, le=4096)], ...], Field(min_length=1, max_length=6)]

    @model_validator(mode="after")
    def _of_a_size(self) -> Parameters:
        families.bounded(prod(self.shape) * sum(length - 1 for length in self.shape) // 2)
        return self


def size(p: Parameters) -> int:
    """Return the product of the sizes."""
    return prod(p.shape)


def graph(p: Parameters) -> Graph:
    """Return the grid; ports are given dimension by dimension, in each to the others of the line in their order."""
    groups = tuple(Group(AXES[axis]) for axis in range(len(p.shape)))
    return Graph(size(p), (), meshed(p.shape), groups)


def meshed(shape: tuple[int, ...]) -> Table:
    """Return the links of a grid that is a full mesh in each dimension; the group is the dimension."""
    place = torus.coordinates(shape)
    rows, first = [], 0
    for axis, length in enumerate(shape):
        stride = prod(shape[:axis])
        lines = np.flatnonzero(place[axis] == 0)[:, None]
        low, high = np.triu_indices(length, 1)
        ends = (lines + low * stride, lines + high * stride)
        rows.append(linked(ends[0], first + high - 1, ends[1], first + low, axis).ravel())
        first += length - 1
    return np.concatenate(rows)


def sources(_p: Parameters) -> Sequence[int]:
    """Return one card: all are alike."""
    return (0,)


def bisection(p: Parameters, graph: Graph) -> float:
    """Return the weakest cut across one dimension; nearly halves where its size is odd."""
    return families.weakest(graph, torus.halves(p.shape))


def routing(_p: Parameters) -> families.Routing:
    """Return dimension order, which closes no circle where each dimension is one hop."""
    return families.Routing("dor", 1, "one hop in each dimension, in their order: no circle can close")


def candidates(cards: int) -> Iterator[Parameters]:
    """Yield the most even shapes of two to four dimensions."""
    for dimensions in (2, 3, 4):
        shape = torus.even_shape(cards, dimensions)
        if shape and sum(shape) - dimensions <= LIKELY_PORTS:
            yield Parameters(family="hyperx", shape=shape)
