"""What a family is, and which there are: one module each under `known/`, found by being there."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Protocol, cast

from pydantic import BaseModel, ConfigDict

from supernode.families.graph import Graph
from supernode.families.proofs import Proofs, prove

MOST_LINKS = 1 << 23
MOST_PORTS = 65535  # as a LINK row holds them
LIKELY_PORTS = 128  # of a card: what needs more is no candidate


class Parameters(BaseModel):
    """What the spec says of a layer of one family; each family adds its own, and `family`, a literal of its name.

    What contradicts itself raises ValueError in a validator: the spec names the file and the line.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True)
class Routing:
    """How an InfiniBand fabric of a family is routed without deadlock.

    Attributes:
        engine: as `routing_engine` of the open opensm names it.
        lanes: virtual lanes that the engine may have to use.
        options: further keys of opensm.conf.
        why: one sentence for the report.
    """

    engine: str
    lanes: int
    why: str
    options: Mapping[str, str] | None = None


def bounded(links: int, ports: int = 0) -> None:
    """Refuse a layer that no memory or no column holds, before its graph is made.

    Raises:
        ValueError: more links than MOST_LINKS, or more ports of one vertex than MOST_PORTS.
    """
    if links > MOST_LINKS:
        raise ValueError(f"it would have {links:,} links; at most {MOST_LINKS:,} are designed")
    if ports > MOST_PORTS:
        raise ValueError(f"one card or switch would have {ports:,} ports; at most {MOST_PORTS:,} are designed")


class Family(Protocol):
    """The functions of a family's module; `p` is always its own Parameters."""

    NAME: str
    SUMMARY: str
    Parameters: type[Parameters]

    def size(self, p: Any) -> int:
        """Return how many cards it joins."""

    def graph(self, p: Any) -> Graph:
        """Return the graph; ports are given by dimension or tier, so that cabling and routing agree."""

    def sources(self, p: Any) -> Sequence[int] | None:
        """Return one card of each symmetric class where all classes have one size; None measures from all."""

    def bisection(self, p: Any, graph: Graph) -> float:
        """Return what the weakest cut into halves carries, in links of the full rate."""

    def routing(self, p: Any) -> Routing | None:
        """Return how opensm routes it, each vertex being a switch or each tier its own; None where it cannot."""

    def candidates(self, cards: int) -> Iterator[Any]:
        """Yield the parameters of this family that join just so many cards; the likely ones, not all."""


@cache
def families() -> Mapping[str, Family]:
    """Return all families by name."""
    from supernode.families import known

    modules = (
        importlib.import_module(f"{known.__name__}.{entry.name}") for entry in pkgutil.iter_modules(known.__path__)
    )
    found = (cast(Family, module) for module in modules)
    return {family.NAME: family for family in sorted(found, key=lambda family: family.NAME)}


@lru_cache(maxsize=8)
def proved(p: Parameters) -> tuple[Graph, Proofs]:
    """Return the graph of a family's parameters and what is measured on it; kept, for a refusal and a design ask both.

    Raises:
        KeyError: `p` is of no family.
    """
    known = family(str(getattr(p, "family", "")))
    graph = known.graph(p)
    return graph, prove(graph, known.bisection(p, graph), known.sources(p))


def family(name: str) -> Family:
    """Return a family.

    Raises:
        KeyError: no such family; its text lists those that exist.
    """
    if name not in families():
        raise KeyError(f"no family {name!r}; known: {', '.join(families())}")
    return families()[name]
