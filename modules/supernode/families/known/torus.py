"""A torus: cards on a grid, each linked to both neighbours of every dimension, the last one to the first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from supernode import families
from supernode.families.graph import Graph, Group, linked

NAME = "torus"
SUMMARY = "grid of 1 to 6 dimensions, closed in each; few ports, many hops"
AXES = "xyzuvw"


class Parameters(families.Parameters):
    """Sizes of the dimensions; one of size 2 has one link between its two cards, not two."""

    family: Literal["torus"]
    shape: Annotated[tuple[Annotated[int, Field(ge=2, le=65536)], ...], Field(min_length=1, max_length=6)]

    @model_validator(mode="after")
    def _of_a_size(self) -> Parameters:
        families.bounded(prod(self.shape) * len(self.shape))
        return self


def size(p: Parameters) -> int:
    """Return the product of the sizes."""
    return prod(p.shape)


def graph(p: Parameters) -> Graph:
    """Return the grid; ports 2d and 2d+1 of a card lead up and down dimension d."""
    place = coordinates(p.shape)
    rows = []
    for axis, length in enumerate(p.shape):
        cards = np.arange(size(p)) if length > 2 else np.flatnonzero(place[axis] == 0)
        above = place[:, cards].copy()
        above[axis] = (above[axis] + 1) % length
        rows.append(linked(cards, 2 * axis, number(above, p.shape), 2 * axis + 1, axis))
    return Graph(size(p), (), np.concatenate(rows), tuple(Group(AXES[axis]) for axis in range(len(p.shape))))


def sources(_p: Parameters) -> Sequence[int]:
    """Return one card: seen from each, a torus is the same."""
    return (0,)


def bisection(p: Parameters, graph: Graph) -> float:
    """Return the weakest cut across one dimension."""
    return families.weakest(graph, halves(p.shape))


def halves(shape: tuple[int, ...]) -> Iterator[npt.NDArray[np.bool_]]:
    """Yield, for each dimension of even size, the cards of its lower half; where all are odd, nearly halves of each."""
    place = coordinates(shape)
    even = [axis for axis, length in enumerate(shape) if length % 2 == 0]
    for axis in even or range(len(shape)):
        yield place[axis] < shape[axis] // 2


def routing(p: Parameters) -> families.Routing:
    """Return torus-2QoS for two and three dimensions, which breaks the circle of each by a lane; lash beyond."""
    if len(p.shape) in (2, 3):
        return families.Routing("torus-2QoS", 2, "a second lane breaks the circle of each dimension")
    return families.Routing("lash", 8, "layers of paths without a circle")


def candidates(cards: int) -> Iterator[Parameters]:
    """Yield the most even shapes of two and three dimensions."""
    for dimensions in (2, 3):
        shape = even_shape(cards, dimensions)
        if shape:
            yield Parameters(family="torus", shape=shape)


def coordinates(shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """Return each card's place, one row a dimension; the first dimension counts fastest."""
    return np.stack(np.unravel_index(np.arange(prod(shape)), shape, order="F")).astype(np.int64)


def number(place: npt.NDArray[np.int64], shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """Return the cards at some places."""
    return np.asarray(np.ravel_multi_index(tuple(place), shape, order="F"), dtype=np.int64)


def even_shape(cards: int, dimensions: int) -> tuple[int, ...] | None:
    """Return the factors of a number that lie closest to each other, the largest first; None where one would be 1."""
    if dimensions == 1:
        return (cards,) if cards > 1 else None
    for least in range(round(cards ** (1 / dimensions)), 1, -1):
        rest = even_shape(cards // least, dimensions - 1) if cards % least == 0 else None
        if rest:
            return tuple(sorted((*rest, least), reverse=True))
    return None
