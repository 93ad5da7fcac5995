"""A full mesh: every card is linked to every other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from pydantic import Field

from supernode import families
from supernode.families.graph import Graph, Group
from supernode.families.known import hyperx
from supernode.families.registry import LIKELY_PORTS

NAME = "full-mesh"
SUMMARY = "every card linked to every other; one hop, a port for each other card"


class Parameters(families.Parameters):
    """How many cards."""

    family: Literal["full-mesh"]
    cards: Annotated[int, Field(ge=2, le=4096)]


def size(p: Parameters) -> int:
    """Return the cards."""
    return p.cards


def graph(p: Parameters) -> Graph:
    """Return the mesh; a card's ports lead to the others in their order."""
    return Graph(p.cards, (), hyperx.meshed((p.cards,)), (Group("mesh"),))


def sources(_p: Parameters) -> Sequence[int]:
    """Return one card: all are alike."""
    return (0,)


def bisection(p: Parameters, _graph: Graph) -> float:
    """Return the links between one half and the other; every cut into halves is alike."""
    return float((p.cards // 2) * (p.cards - p.cards // 2))


def routing(_p: Parameters) -> families.Routing:
    """Return dimension order of one dimension."""
    return families.Routing("dor", 1, "one hop, no circle")


def candidates(cards: int) -> Iterator[Parameters]:
    """Yield the one mesh of these cards, while cards can have that many ports."""
    if 2 <= cards <= LIKELY_PORTS + 1:
        yield Parameters(family="full-mesh", cards=cards)
