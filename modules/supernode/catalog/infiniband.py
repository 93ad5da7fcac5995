"""What InfiniBand calls its links: four lanes, each at a speed that has a name."""

from __future__ import annotations

from collections.abc import Mapping

from supernode.units import MbitPerS, format_rate

LANES = 4
"""Every cable of a compute fabric has four; fewer that run are a fault."""

SPEEDS: Mapping[str, float] = {
    "SDR": 2500,
    "DDR": 5000,
    "QDR": 10000,
    "EDR": 25000,
    "HDR": 50000,
    "NDR": 100000,
    "XDR": 200000,
}
"""Mbit/s of one lane by name, as the tools print it (InfiniBand Architecture Specification, PortInfo)."""

MTUS = (2048, 4096)


def speed(rate: MbitPerS) -> str:
    """Name the speed of a link's lanes.

    Raises:
        ValueError: no four lanes carry just that; the text names the rates that there are.
    """
    for name, lane in SPEEDS.items():
        if lane * LANES == rate:
            return name
    rates = ", ".join(f"{format_rate(MbitPerS(lane * LANES))} ({name})" for name, lane in SPEEDS.items())
    raise ValueError(f"no InfiniBand link of {LANES} lanes carries {format_rate(rate)}; there are {rates}")
