"""What the catalogue says of machines that are rented: their shape at the provider, and what an hour of one costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any


@dataclass(frozen=True)
class NetworkCard:
    """The interface on one network card.

    Attributes:
        card: its index, which is also the rail's number.
        device: index of the interface on the instance, as the provider counts.
        type: in the provider's words, e.g. "efa" (with an address) or "efa-only" (without one).
    """

    card: int
    device: int
    type: str


@dataclass(frozen=True)
class CloudShape:
    """How a kind is asked for at its provider; there is a card for every NIC of the kind."""

    provider: str
    instance_type: str
    cards: tuple[NetworkCard, ...]


@dataclass(frozen=True)
class Price:
    """What one instance costs by the hour on demand, by region, and where and when that was read."""

    currency: str
    source: str
    date: date
    per_hour: Mapping[str, Decimal]


def shape(row: Mapping[str, Any], nics: int) -> CloudShape:
    """Read a kind's `cloud`: the first card is the primary one, all others are alike."""
    primary, further = row["primary"], row["further"]
    cards = (NetworkCard(card, **(further if card else primary)) for card in range(nics))
    return CloudShape(row["provider"], row["instance_type"], tuple(cards))


def price(row: Mapping[str, Any]) -> Price:
    """Read a kind's `price`; figures are decimal, as bills are."""
    hourly = {region: Decimal(str(figure)) for region, figure in row["per_hour"].items()}
    return Price(row["currency"], row["source"], row["date"], hourly)
