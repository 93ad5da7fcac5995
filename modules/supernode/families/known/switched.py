"""One tier of switches, each card linked to every one: NVLink over NVSwitch chips, or cards of one PCIe switch.

The switches are not linked to each other: each is a plane of its own. A card's links to the switches may differ in
number, as on HGX H100, whose 18 NVLinks go to four chips by 5, 4, 4 and 5. An NVL72 rack has 72 cards, 18 chips and
one link between each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from supernode import families
from supernode.families.graph import Graph, Group, linked

NAME = "switched"
SUMMARY = "one tier of switches, each a plane linked to every card; one switch between any two cards"
MOST_LINKS = 256  # of a card to one switch

Links = Annotated[int, Field(ge=1, le=MOST_LINKS)]


class Parameters(families.Parameters):
    """Cards, switches, and a card's links to each switch: one number for all, or one for each switch in their order.

    `switch_ports`, where given, is what a switch has; more links than that are refused.
    """

    family: Literal["switched"]
    cards: Annotated[int, Field(ge=2, le=65536)]
    switches: Annotated[int, Field(ge=1, le=1024)]
    links: Links | tuple[Links, ...] = 1
    switch_ports: Annotated[int, Field(ge=1, le=65535)] | None = None

    @model_validator(mode="after")
    def _fits_its_switches(self) -> Parameters:
        if isinstance(self.links, tuple) and len(self.links) != self.switches:
            raise ValueError(f"links names {len(self.links)} numbers for {self.switches} switches; give one for each")
        needed, there = max(each(self)) * self.cards, self.switch_ports or 65535
        if needed > there:
            raise ValueError(f"a switch needs {needed} ports for {self.cards} cards; it has {there}")
        families.bounded(sum(each(self)) * self.cards, sum(each(self)))
        return self


def each(p: Parameters) -> tuple[int, ...]:
    """Return a card's links to each switch."""
    return p.links if isinstance(p.links, tuple) else (p.links,) * p.switches


def size(p: Parameters) -> int:
    """Return the cards."""
    return p.cards


def graph(p: Parameters) -> Graph:
    """Return the planes; a card's ports are given switch by switch, a switch's card by card."""
    counts = np.array(each(p))
    switch = np.repeat(np.arange(p.switches), counts)
    copy = np.arange(len(switch)) - np.repeat(np.cumsum(counts) - counts, counts)
    cards = np.arange(p.cards)[:, None]
    links = linked(cards, np.arange(len(switch)), p.cards + switch, cards * counts[switch] + copy, 0)
    return Graph(p.cards, (p.switches,), links.ravel(), (Group("card-switch"),))


def sources(_p: Parameters) -> Sequence[int]:
    """Return one card: all are alike."""
    return (0,)


def bisection(p: Parameters, graph: Graph) -> float:
    """Return the links of one half of the cards: a switch joins all its ports at their rate."""
    return families.weakest(graph, [np.arange(graph.vertices) < p.cards // 2])


def routing(_p: Parameters) -> families.Routing:
    """Return ftree: up one link and down one."""
    return families.Routing("ftree", 1, "one tier: no way leads down and up again")


def candidates(cards: int) -> Iterator[Parameters]:
    """Yield one switch."""
    if 2 <= cards <= 512:
        yield Parameters(family="switched", cards=cards, switches=1)
