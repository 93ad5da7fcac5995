"""A design as things: plugs and cables, watts, a bill, and what fails together; their artefacts and their summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from supernode.design import domains, materials, optics, power, runs
from supernode.design.optics import NOTHING, Fit

if TYPE_CHECKING:
    from supernode.design.model import Design

HEADER = "cable,assembly,product,length_m,a_plug,b_plug\n"


@lru_cache(maxsize=1)
def fitted(design: Design) -> tuple[Fit, ...]:
    """Return what is plugged in for every link; kept, for the summary and each sheet begin with it."""
    return optics.fit_all(runs.runs(design))


def optics_sheet(design: Design) -> Iterator[str]:
    """Yield optics.csv."""
    return optics_csv(fitted(design))


def materials_sheet(design: Design) -> Iterator[str]:
    """Yield materials.csv."""
    return materials.materials_csv(materials.bill(design, fitted(design)))


def power_sheet(design: Design) -> Iterator[str]:
    """Yield power.csv."""
    return power.power_csv(power.racks(design, fitted(design)))


def domains_sheet(design: Design) -> Iterator[str]:
    """Yield failure-domains.csv."""
    return domains.domains_csv(domains.losses(design))


def cables(found: tuple[Fit, ...]) -> int:
    """Return how many physical cables there are: a split one counts once, whatever it carries."""
    return sum(fit.cables for fit in found)


def optics_csv(fits: tuple[Fit, ...]) -> Iterator[str]:
    """Yield for each link the physical cable that carries it, and what is plugged in at both ends.

    Links of one assembly share a cable. Columns are empty where no source says what fits.
    """
    yield HEADER
    first = 1
    for fit in fits:
        said = [_said(fit, choice) for choice in range(len(fit.options))]
        said.append(",,,")  # NOTHING is the last
        columns = (fit.run.cable.tolist(), (fit.assembly + first).tolist(), fit.chosen.tolist())
        yield from (
            f"C{cable:05d},K{number:05d},{said[choice]}\n" for cable, number, choice in zip(*columns, strict=True)
        )
        first += fit.cables


def _said(fit: Fit, choice: int) -> str:
    option = fit.options[choice]
    names = [plug.name if plug else "" for plug in (option.cable, option.plug("a"), option.plug("b"))]
    return f"{names[0]},{option.length_m:g},{names[1]},{names[2]}"


def facts(design: Design) -> Iterator[tuple[str, str]]:
    """Yield the lines of the summary: what is plugged in, what the racks draw, and what is not known of either."""
    yield from _plugged(fitted(design))
    rows = power.racks(design, fitted(design))
    total, limits = sum(row.total_w for row in rows), [row for row in rows if row.limit_w]
    yield "power", f"{total / 1000:.1f} kW in {len(rows)} racks" + (_fullest(limits) if limits else "")
    over = [row.rack for row in rows if row.over]
    if over:
        yield "", f"more than they are fed, with their optics: {', '.join(over)}"
    unknown = sorted({name for row in rows for name in row.unknown})
    if unknown:
        yield "", f"beside that, what no source says: {', '.join(unknown)}"


def _plugged(fits: tuple[Fit, ...]) -> Iterator[tuple[str, str]]:
    counts: Counter[str] = Counter()
    for fit in fits:
        for product, _, count in fit.parts():
            counts[product.name] += count
    found = ", ".join(f"{count} x {name}" for name, count in counts.items() if count)
    if found:
        yield "optics", f"{cables(fits)} physical cables: {found}"
    for fit in fits:
        if fit.unknown:
            links = int(np.count_nonzero(fit.chosen == NOTHING))
            yield "" if found else "optics", f"{links} {fit.run.tier} links: {fit.unknown}"


def _fullest(limits: list[power.RackPower]) -> str:
    row = max(limits, key=lambda row: row.total_w / (row.limit_w or 1))
    return f"; the fullest, {row.rack}, {row.total_w / 1000:.1f} of {(row.limit_w or 0) / 1000:g} kW"
