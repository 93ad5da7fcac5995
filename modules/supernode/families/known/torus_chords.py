"""A torus in which each card has one more link, the chord, to the card that lies farthest from it.

A card at distance d from another is at distance D - d from the other's antipode, D being the torus' diameter: with the
chord the diameter is (D + 1) // 2, for one port a card more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from supernode import families
from supernode.families.graph import Graph, Group, linked
from supernode.families.known import torus

NAME = "torus-chords"
SUMMARY = "torus of even sizes with a chord from each card to its antipode; half the hops for one more port"


class Parameters(families.Parameters):
    """Sizes of the torus; even, for only then has each card one antipode."""

    family: Literal["torus-chords"]
    shape: Annotated[tuple[Annotated[int, Field(ge=2, le=65536)], ...], Field(min_length=1, max_length=6)]

    @model_validator(mode="after")
    def _has_antipodes(self) -> Parameters:
        odd = [length for length in self.shape if length % 2]
        if odd:
            raise ValueError(f"shape has the odd size {odd[0]}: no card lies opposite another; each size must be even")
        if self.shape == (2,):
            raise ValueError("shape is of two cards, which are linked already: no chord can be added")
        families.bounded(prod(self.shape) * (len(self.shape) + 1))
        return self


def size(p: Parameters) -> int:
    """Return the product of the sizes."""
    return prod(p.shape)


def graph(p: Parameters) -> Graph:
    """Return the torus with its ports, and on each card's last port the chord."""
    plain = torus.graph(_plain(p))
    place = torus.coordinates(p.shape)
    cards = np.flatnonzero(place[0] < p.shape[0] // 2)
    half = np.array(p.shape)[:, None] // 2
    far = torus.number((place[:, cards] + half) % (2 * half), p.shape)
    port = 2 * len(p.shape)
    chords = linked(cards, port, far, port, len(p.shape))
    return Graph(size(p), (), np.concatenate([plain.links, chords]), (*plain.groups, Group("chord")))


def sources(_p: Parameters) -> Sequence[int]:
    """Return one card: a chord leads from each in the same direction."""
    return (0,)


def bisection(p: Parameters, graph: Graph) -> float:
    """Return the weakest cut across one dimension, in two slabs or in the four that part no chord."""
    return families.weakest(graph, _halves(p.shape))


def _halves(shape: tuple[int, ...]) -> Iterator[npt.NDArray[np.bool_]]:
    yield from torus.halves(shape)
    place = torus.coordinates(shape)
    for axis, length in enumerate(shape):
        if length % 4 == 0:
            yield place[axis] % (length // 2) < length // 4


def routing(_p: Parameters) -> families.Routing:
    """Return lash: dimension order closes circles beyond four cards a side, dfsssp needs nine lanes at 8x8x4."""
    return families.Routing("lash", 8, "layers of paths without a circle: two at 4x4x4, six at 8x8x4")


def candidates(cards: int) -> Iterator[Parameters]:
    """Yield the most even shapes of two and three even sizes."""
    for dimensions in (2, 3):
        half = cards >> dimensions
        shape = torus.even_shape(half, dimensions) if cards == half << dimensions else None
        if shape:
            yield Parameters(family="torus-chords", shape=tuple(2 * length for length in shape))


def _plain(p: Parameters) -> torus.Parameters:
    return torus.Parameters(family="torus", shape=p.shape)
