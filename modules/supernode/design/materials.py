"""The bill of materials: what a design is bought from, with the spares that a site keeps.

Spares: two of a hundred, rounded up and at least one, of every kind of switch, transceiver, cable and fibre, the latter
by length. Of servers they are those that the environment asks for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from supernode import catalog
from supernode.catalog import Product
from supernode.design.runs import switch_kinds

if TYPE_CHECKING:
    from supernode.design.model import Design
    from supernode.design.optics import Fit

SPARE_PERCENT = 2
HEADER = "sort,item,maker,model,length_m,needed,spares,total\n"


@dataclass(frozen=True)
class Material:
    """One line of the bill.

    Attributes:
        sort: "server", "switch", or what an `optics` product is: "dac", "acc", "aoc", "transceiver", "fibre".
        length_m: 0 for what has none.
    """

    sort: str
    item: str
    maker: str
    model: str
    length_m: float
    needed: int
    spares: int

    @property
    def total(self) -> int:
        """How many are bought."""
        return self.needed + self.spares


def spares(needed: int) -> int:
    """Return how many are kept of something of which so many are used."""
    return max(1, -(-needed * SPARE_PERCENT // 100)) if needed else 0


def bill(design: Design, fits: Iterable[Fit]) -> tuple[Material, ...]:
    """Return the lines: servers, switches, then what lies between them by class, product and length."""
    return (*_servers(design), *_switches(design), *_between(fits))


def _servers(design: Design) -> Iterator[Material]:
    needed, kept = Counter[str](), Counter[str]()
    for pool in design.environment.pools:
        if not pool.cloud:
            needed[pool.kind] += pool.count
            kept[pool.kind] += pool.spares
    for name, count in needed.items():
        kind = catalog.server(name)
        yield Material("server", name, kind.vendor, kind.model, 0, count, kept[name])


def _switches(design: Design) -> Iterator[Material]:
    counts, tiers = Counter[str](), design.columns.switch_tiers
    for tier, of_tier in enumerate(switch_kinds(design)):
        counts[of_tier] += int((tiers == tier).sum())
    for name, count in counts.items():
        kind = catalog.switch(name)
        yield Material("switch", name, kind.vendor, kind.model, 0, count, spares(count))


def _between(fits: Iterable[Fit]) -> Iterator[Material]:
    counts: Counter[tuple[Product, float]] = Counter()
    for fit in fits:
        for product, length, count in fit.parts():
            counts[product, length] += count
    order = {product.name: place for place, product in enumerate(catalog.optics())}
    for product, length in sorted(counts, key=lambda row: (order[row[0].name], row[1])):
        needed = counts[product, length]
        if needed:
            yield Material(product.sort, product.name, product.vendor, product.name, length, needed, spares(needed))


def materials_csv(lines: Iterable[Material]) -> Iterator[str]:
    """Yield materials.csv line by line."""
    yield HEADER
    for row in lines:
        length = f"{row.length_m:g}" if row.length_m else ""
        named = f"{row.sort},{row.item},{row.maker},{_quoted(row.model)},{length}"
        yield f"{named},{row.needed},{row.spares},{row.total}\n"


def _quoted(text: str) -> str:
    return f'"{text}"' if "," in text else text
