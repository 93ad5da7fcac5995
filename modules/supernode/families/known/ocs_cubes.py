"""Cubes of cards joined to one 3D torus by optical circuit switches (OCS), which are light paths and not hops.

Jouppi et al., "TPU v4: An Optically Reconfigurable Supercomputer", ISCA 2023: a cube of 4x4x4 is cabled inside by
copper; its 6 faces have 16 optical links each, 96; the two of opposite faces that lie on one line go to the same OCS,
so that 3 * 16 = 48 OCSes each have two ports a cube and can close a line over any row of cubes: 64 cubes make 16x16x16.
A link through an OCS is one link of the graph, of two fibre runs (`runs`); the OCS is no vertex, for nothing is
switched there while the torus stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from supernode import families
from supernode.families.graph import Graph, Group
from supernode.families.known import torus

NAME = "ocs-cubes"
SUMMARY = "cubes cabled inside, joined by optical circuit switches to one 3D torus"
AXES = torus.AXES[:3]
RUN = np.dtype([("ocs", "u4"), ("ocs_port", "u4"), ("card", "u4"), ("card_port", "u2")])


class Parameters(families.Parameters):
    """Cubes in each dimension, cards along an edge of a cube, and the ports of an OCS that links may use."""

    family: Literal["ocs-cubes"]
    cubes: tuple[
        Annotated[int, Field(ge=1, le=64)], Annotated[int, Field(ge=1, le=64)], Annotated[int, Field(ge=1, le=64)]
    ]
    edge: Annotated[int, Field(ge=3, le=16)] = 4
    ocs_ports: Annotated[int, Field(ge=2, le=4096)] = 128

    @model_validator(mode="after")
    def _fits_its_switches(self) -> Parameters:
        needed = 2 * prod(self.cubes)
        if needed > self.ocs_ports:
            raise ValueError(
                f"an OCS needs {needed} ports, two for each of {prod(self.cubes)} cubes; it has {self.ocs_ports}"
            )
        families.bounded(3 * prod(self.cubes) * self.edge**3)
        return self


def size(p: Parameters) -> int:
    """Return the cards of all cubes."""
    return prod(p.cubes) * p.edge**3


def shape(p: Parameters) -> tuple[int, ...]:
    """Return the size of the whole torus."""
    return tuple(count * p.edge for count in p.cubes)


def graph(p: Parameters) -> Graph:
    """Return the torus with its ports; links through an OCS are groups of their own, "x-ocs" after "x" and so on."""
    plain = torus.graph(torus.Parameters(family="torus", shape=shape(p)))
    links = plain.links.copy()
    place = torus.coordinates(shape(p))[links["group"], links["a"]]
    links["group"] = 2 * links["group"] + (place % p.edge == p.edge - 1)
    groups = tuple(Group(name) for axis in AXES for name in (axis, f"{axis}-ocs"))
    return Graph(size(p), (), links, groups)


def ocses(p: Parameters) -> int:
    """Return how many OCSes there are: one for each line through a cube."""
    return 3 * p.edge**2


def runs(p: Parameters, graph: Graph) -> npt.NDArray[np.void]:
    """Return the fibre runs as RUN rows: two for each link through an OCS, in the order of the links.

    A line's OCS is numbered by dimension, then by the place on the face; port 2c takes the upper face of cube c, port
    2c + 1 the lower one.
    """
    optical = graph.links[graph.links["group"] % 2 == 1]
    table = np.zeros((len(optical), 2), RUN)
    for side, end in enumerate(("a", "b")):
        place = torus.coordinates(shape(p))[:, optical[end]]
        cube = torus.number(place // p.edge, p.cubes)
        axis = optical["group"].astype(np.int64) // 2
        table["ocs"][:, side] = axis * p.edge**2 + _on_face(place % p.edge, axis, p.edge)
        table["ocs_port"][:, side] = 2 * cube + side
        table["card"][:, side], table["card_port"][:, side] = optical[end], optical[f"{end}_port"]
    return table.ravel()


def _on_face(inside: npt.NDArray[np.int64], axis: npt.NDArray[np.int64], edge: int) -> npt.NDArray[np.int64]:
    at = np.arange(len(axis))
    first, second = np.where(axis == 0, 1, 0), np.where(axis == 2, 1, 2)
    return np.asarray(inside[first, at] + edge * inside[second, at], dtype=np.int64)


def sources(_p: Parameters) -> Sequence[int]:
    """Return one card: seen from each, a torus is the same."""
    return (0,)


def bisection(p: Parameters, graph: Graph) -> float:
    """Return the weakest cut across one dimension of the torus."""
    return families.weakest(graph, torus.halves(shape(p)))


def routing(_p: Parameters) -> families.Routing:
    """Return torus-2QoS, as for any 3D torus."""
    return families.Routing("torus-2QoS", 2, "a second lane breaks the circle of each dimension")


def candidates(cards: int) -> Iterator[Parameters]:
    """Yield the most even box of cubes of 64 cards, while an OCS has ports for it."""
    cubes, rest = divmod(cards, 64)
    if rest == 0 and 1 <= cubes <= 64:
        boxes = [(a, b, cubes // a // b) for a in range(1, cubes + 1) for b in range(1, a + 1) if cubes % (a * b) == 0]
        yield Parameters(family="ocs-cubes", cubes=min(boxes, key=lambda box: (max(box), sum(box))))
