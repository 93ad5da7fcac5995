"""Groups that are meshed directly inside and joined through bridge switches: the 512-card direct + bridge hybrid.

No port-level reference of such a supernode is published; this is the model that is designed here.

* A group is a HyperX of `shape`; (32,) is a full mesh of 32, (8, 4) has far fewer ports.
* Each card has `up` links to bridges. Bridge plane i of `planes` takes the cards of every group whose number in the
  group is i modulo `planes`; a card's links all go to its plane, spread over the plane's `plane_bridges` switches.
* A bridge joins all its ports at their rate. Traffic between two groups leaves on any plane: from a card
  directly if the other card is of the same plane, else with one or more links inside one of the groups.

So between one group and all others `between_groups` links of the full rate can be in use at a time, 1 / (groups - 1) of
that with each when all groups talk to all; inside a group it is the mesh.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from supernode import families
from supernode.families.graph import Graph, Group, Table, linked
from supernode.families.known import hyperx

NAME = "bridged"
SUMMARY = "groups meshed directly inside, joined through planes of bridge switches"


class Parameters(families.Parameters):
    """Groups, the HyperX inside each, bridge planes, switches of a plane, and a card's links up.

    `bridge_ports`, where given, is what a bridge has.
    """

    family: Literal["bridged"]
    groups: Annotated[int, Field(ge=2, le=4096)]
    shape: Annotated[tuple[Annotated[int, Field(ge=2, le=256)], ...], Field(min_length=1, max_length=4)]
    planes: Annotated[int, Field(ge=1, le=1024)]
    plane_bridges: Annotated[int, Field(ge=1, le=64)] = 1
    up: Annotated[int, Field(ge=1, le=64)] = 1
    bridge_ports: Annotated[int, Field(ge=1, le=65535)] | None = None

    @model_validator(mode="after")
    def _fits_its_bridges(self) -> Parameters:
        inside = prod(self.shape)
        if inside % self.planes:
            raise ValueError(f"{inside} cards a group are not divided evenly by {self.planes} planes")
        if self.up % self.plane_bridges:
            raise ValueError(f"{self.up} links up are not divided evenly by {self.plane_bridges} bridges of a plane")
        needed = self.groups * inside // self.planes * (self.up // self.plane_bridges)
        if needed > (self.bridge_ports or 65535):
            raise ValueError(f"a bridge needs {needed} ports; it has {self.bridge_ports or 65535}")
        families.bounded(self.groups * inside * (self.up + sum(self.shape) // 2))
        return self


def size(p: Parameters) -> int:
    """Return the cards of all groups."""
    return p.groups * prod(p.shape)


def between_groups(p: Parameters) -> int:
    """Return the links of the full rate between one group and all others together."""
    return prod(p.shape) * p.up


def graph(p: Parameters) -> Graph:
    """Return the groups and bridges, plane by plane; a card's first ports are the mesh's, then those up."""
    inside = hyperx.meshed(p.shape)
    mesh = np.tile(inside, p.groups)
    first = np.repeat(np.arange(p.groups) * prod(p.shape), len(inside)).astype(np.uint32)
    mesh["a"] += first
    mesh["b"] += first
    names = [Group(hyperx.AXES[axis]) for axis in range(len(p.shape))]
    tiers = (p.planes * p.plane_bridges,)
    return Graph(size(p), tiers, np.concatenate([mesh, _up(p)]), (*names, Group("bridge")))


def _up(p: Parameters) -> Table:
    card, link = np.indices((size(p), p.up)).reshape(2, -1)
    group, inside = np.divmod(card, prod(p.shape))
    rank, plane = np.divmod(inside, p.planes)
    each = p.up // p.plane_bridges
    bridge = size(p) + plane * p.plane_bridges + link // each
    port = (group * (prod(p.shape) // p.planes) + rank) * each + link % each
    return linked(card, sum(p.shape) - len(p.shape) + link, bridge, port, len(p.shape))


def sources(p: Parameters) -> Sequence[int]:
    """Return one group's cards: all groups look the same."""
    return range(prod(p.shape))


def bisection(p: Parameters, graph: Graph) -> float:
    """Return the weakest of some cuts: between groups, or through every group along one dimension of its mesh."""
    card = np.arange(size(p))
    cuts = [card // prod(p.shape) < p.groups // 2] if p.groups % 2 == 0 else []
    for axis, length in enumerate(p.shape):
        if length % 2 == 0:
            cuts.append(card % prod(p.shape) // prod(p.shape[:axis]) % length < length // 2)
    return families.weakest(graph, (_with_bridges(graph, cut) for cut in cuts or [card < size(p) // 2]))


def _with_bridges(graph: Graph, cards: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return a cut of the cards with each bridge on the side of most of its links: no other place cuts fewer."""
    up = graph.links[graph.links["b"] >= graph.cards]
    weight = np.where(cards[up["a"]], 1, -1)
    balance = np.bincount(up["b"] - graph.cards, weight, graph.tiers[0])
    return np.concatenate([cards, balance > 0])


def routing(_p: Parameters) -> families.Routing:
    """Return dfsssp: mesh and bridges close circles, which lanes break."""
    return families.Routing("dfsssp", 8, "shortest paths on several lanes; 16 groups of 8x4 on four planes need six")


def candidates(cards: int) -> Iterator[Parameters]:
    """Yield full meshes of 8, 16 and 32, and the 8x4 HyperX, with a plane for each eight cards of a group."""
    for shape in ((8,), (16,), (32,), (8, 4)):
        groups, rest = divmod(cards, prod(shape))
        if rest == 0 and 2 <= groups <= 512:
            yield Parameters(family="bridged", groups=groups, shape=shape, planes=prod(shape) // 8)
