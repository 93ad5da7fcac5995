"""What would do instead: the families and parameters that join some cards within some hops, proved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from supernode.families.proofs import Proofs, prove
from supernode.families.registry import Family, Parameters, families


@dataclass(frozen=True)
class Found:
    """Parameters of a family, and what was proved of them."""

    family: str
    parameters: Parameters
    proofs: Proofs

    def __str__(self) -> str:
        """Return e.g. "torus-chords 4x4x4 (7 ports, 224 cables)"."""
        return f"{described(self.parameters)} ({self.proofs.ports_per_card} ports, {self.proofs.links} cables)"


def nearest(cards: int, max_hops: int, max_ports: int | None = None, *, switches: bool = False) -> list[Found]:
    """Return the likely parameters of all families that satisfy a bound, the fewest ports first, then the fewest links.

    Args:
        cards: that are joined, just so many.
        max_hops: between any two cards.
        max_ports: of a card; None leaves them free.
        switches: whether families with switches count too; their hops are switches passed, not links.
    """
    ports = max_ports if max_ports is not None else cards
    if ports < (0 if switches else least_ports(cards, max_hops)):
        return []
    found = [each for family in families().values() for each in _proved(family, cards, switches)]
    fit = [each for each in found if each.proofs.diameter <= max_hops and each.proofs.ports_per_card <= ports]
    return sorted(fit, key=lambda each: (each.proofs.ports_per_card, each.proofs.links, str(each)))


def _proved(family: Family, cards: int, switches: bool) -> Iterator[Found]:
    for parameters in family.candidates(cards):
        graph = family.graph(parameters)
        if switches or not graph.tiers:
            proofs = prove(graph, family.bisection(parameters, graph), family.sources(parameters))
            yield Found(family.NAME, parameters, proofs)


def least_ports(cards: int, max_hops: int) -> int:
    """Return how many ports a card needs at least: Moore's bound for a direct network of any wiring.

    With d ports a card reaches at most 1 + d * sum((d - 1)**i for i < max_hops) cards, itself among them. Within no
    hops no number of ports is enough for two cards; then it is `cards`, more than there are others.
    """
    if max_hops < 1:
        return 0 if cards == 1 else cards
    return next(ports for ports in range(cards + 1) if _reached(ports, max_hops) >= cards)


def _reached(ports: int, hops: int) -> int:
    return 1 + sum(ports * int(max(ports - 1, 0) ** step) for step in range(hops))


def described(p: Parameters) -> str:
    """Return a family and its parameters in a few words, e.g. "hyperx 8x8" or "dragonfly a=8 h=4 g=32"."""
    said = p.model_dump(exclude={"family"}, exclude_defaults=True)
    words = [f"{key}={_word(value)}" for key, value in said.items()]
    if said.keys() == {"shape"}:
        words = [_word(said["shape"])]
    return " ".join([str(getattr(p, "family", "")), *words])


def _word(value: object) -> str:
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)
