"""A scale-up Clos in sub-planes: switch chips in each node, and behind each of them a sub-plane of its own.

Chip i of every node is linked to every switch of sub-plane i and to no other, so a card picks the sub-plane by its
port. CloudMatrix384, Zuo et al., "Serving Large Language Models on Huawei CloudMatrix384", 2025: 48 nodes of 8 cards
with 7 chips (336), 7 sub-planes of 16 switches (112), 2 links from each card to each chip of its node, and 1 from a
chip to each switch of its sub-plane.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from supernode import families
from supernode.families.graph import Graph, Group, Table, linked

NAME = "two-tier"
SUMMARY = "switch chips in each node, each with a sub-plane of switches behind it; at most three switches between cards"


class Parameters(families.Parameters):
    """Nodes, cards and chips of a node, switches of a sub-plane, and how many links each pair of neighbours has.

    `l2_ports`, where given, is what a switch of the second tier has.
    """

    family: Literal["two-tier"]
    nodes: Annotated[int, Field(ge=2, le=4096)]
    node_cards: Annotated[int, Field(ge=1, le=256)]
    l1: Annotated[int, Field(ge=1, le=64)]
    l2: Annotated[int, Field(ge=1, le=256)]
    card_links: Annotated[int, Field(ge=1, le=64)] = 1
    up_links: Annotated[int, Field(ge=1, le=64)] = 1
    l2_ports: Annotated[int, Field(ge=1, le=65535)] | None = None

    @model_validator(mode="after")
    def _fits_its_switches(self) -> Parameters:
        needed, there = self.nodes * self.up_links, self.l2_ports or 65535
        if needed > there:
            raise ValueError(f"a switch of the second tier needs {needed} ports for {self.nodes} nodes; it has {there}")
        families.bounded(self.nodes * self.l1 * (self.node_cards * self.card_links + self.l2 * self.up_links))
        return self


def size(p: Parameters) -> int:
    """Return the cards of all nodes."""
    return p.nodes * p.node_cards


def graph(p: Parameters) -> Graph:
    """Return the tiers: chips node by node, switches sub-plane by sub-plane.

    A card's ports are given chip by chip; a chip's first go down, card by card, then up, switch by switch; a switch's
    node by node.
    """
    tiers = (p.nodes * p.l1, p.l1 * p.l2)
    links = np.concatenate([_down(p), _up(p)])
    return Graph(size(p), tiers, links, (Group("card-l1"), Group("l1-l2")))


def _down(p: Parameters) -> Table:
    node, card, chip, copy = np.indices((p.nodes, p.node_cards, p.l1, p.card_links)).reshape(4, -1)
    lower = node * p.node_cards + card
    upper = size(p) + node * p.l1 + chip
    return linked(lower, chip * p.card_links + copy, upper, card * p.card_links + copy, 0)


def _up(p: Parameters) -> Table:
    node, chip, switch, copy = np.indices((p.nodes, p.l1, p.l2, p.up_links)).reshape(4, -1)
    lower = size(p) + node * p.l1 + chip
    upper = size(p) + p.nodes * p.l1 + chip * p.l2 + switch
    first = p.node_cards * p.card_links
    return linked(lower, first + switch * p.up_links + copy, upper, node * p.up_links + copy, 1)


def sources(_p: Parameters) -> Sequence[int]:
    """Return one card: all are alike."""
    return (0,)


def bisection(p: Parameters, graph: Graph) -> float:
    """Return the weaker of two cuts: the nodes of one half with their chips, or half the cards alone."""
    at = np.arange(graph.vertices)
    half = p.nodes // 2
    chips = (at >= size(p)) & (at < size(p) + half * p.l1)
    nodes = (at < half * p.node_cards) | chips
    return families.weakest(graph, [nodes, at < size(p) // 2])


def routing(_p: Parameters) -> families.Routing:
    """Return ftree: up and down by tiers."""
    return families.Routing("ftree", 1, "up and down by tiers: no circle can close")


def candidates(cards: int) -> Iterator[Parameters]:
    """Yield nodes of eight with as many links up as down."""
    if cards % 8 == 0 and 16 <= cards <= 32768:
        yield Parameters(family="two-tier", nodes=cards // 8, node_cards=8, l1=1, l2=8)
