"""What is sold to go between two cages: copper, active optical cables, transceivers and fibre."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from supernode.catalog.model import Transport
from supernode.units import MbitPerS, parse_rate

Class = Literal["dac", "acc", "aoc", "transceiver", "fibre"]
Mode = Literal["", "multi", "single"]


@dataclass(frozen=True)
class Product:
    """A cable with its plugs, a transceiver, or fibre between two of these.

    Attributes:
        sort: "dac" is passive copper, "acc" active copper, "aoc" an active optical cable.
        source: where the figures come from.
        rate: of each port; 0 for fibre.
        cage: what its plug fits into, which is the one that carries all ports; empty for fibre.
        ports: how many that plug carries.
        far: the cage of the plugs at the other end; empty but for cables.
        legs: the plugs at the other end, which share the ports evenly; 0 for a transceiver.
        lengths_m: what a cable is sold in; empty but for cables.
        shortest_m: the shortest that fibre is sold in; what lies between that and its reach is made to length.
        reach_m: the furthest that it carries.
        optic: transceivers of the same understand each other.
        mode: of the fibre it is, or wants.
        splits: into how many ports of equal rate fibre may divide each port of a transceiver.
        built_in: the socket itself is the transceiver, and nothing is bought.
        power_w: the most that one plug draws; None where no source was read.
    """

    name: str
    vendor: str
    source: str
    sort: Class
    links: tuple[Transport, ...]
    rate: MbitPerS
    cage: str
    ports: int
    far: str
    legs: int
    lengths_m: tuple[float, ...]
    shortest_m: float
    reach_m: float
    optic: str
    mode: Mode
    splits: tuple[int, ...]
    built_in: bool
    power_w: float | None


def products(vendor: str, source: str, rows: Mapping[str, Mapping[str, Any]]) -> Iterator[Product]:
    """Read a catalogue file's products, in its order."""
    for name, row in rows.items():
        lengths = tuple(float(length) for length in row.get("lengths_m", ()))
        yield Product(
            name=name,
            vendor=vendor,
            source=source,
            sort=row["class"],
            links=tuple(row.get("links", ())),
            rate=parse_rate(row["rate"]) if "rate" in row else MbitPerS(0),
            cage=row.get("cage", ""),
            ports=row.get("ports", 0),
            far=row.get("far", ""),
            legs=row.get("legs", 0),
            lengths_m=lengths,
            shortest_m=float(row.get("shortest_m", 0)),
            reach_m=float(row.get("reach_m", max(lengths, default=0))),
            optic=row.get("optic", ""),
            mode=row.get("mode", ""),
            splits=tuple(row.get("splits", (1,))),
            built_in=row.get("built_in", False),
            power_w=row.get("power_w"),
        )
