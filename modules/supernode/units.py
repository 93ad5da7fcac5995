"""Quantities that cross a public function, so that a bit is never taken for a byte.

Each is a float with a unit in its type's name; a column or variable that holds one carries the unit in its own name.
"""

from __future__ import annotations

import re


class MbitPerS(float):
    """Megabits (10^6 bit) in a second: the rate of a port or link, as its label says."""


class Metre(float):
    """Length of a cable."""


class Seconds(float):
    """A duration or a budget."""


class Milliseconds(float):
    """A time offset."""


_RATE = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*(k|M|G|T)bit/s\s*$")
_SCALE = {"k": 1e-3, "M": 1.0, "G": 1e3, "T": 1e6}


def parse_rate(text: str) -> MbitPerS:
    """Read a rate such as `400 Gbit/s`.

    Raises:
        ValueError: no number followed by kbit/s, Mbit/s, Gbit/s or Tbit/s; the unit of a bare number would be a guess.
    """
    match = _RATE.match(text)
    if match is None:
        raise ValueError(f"{text!r} is not a rate such as '400 Gbit/s'")
    return MbitPerS(float(match[1]) * _SCALE[match[2]])


def format_rate(rate: MbitPerS) -> str:
    """Write a rate in the largest unit that keeps it at 1 or more, e.g. `400 Gbit/s`."""
    for unit, scale in (("Tbit/s", 1e6), ("Gbit/s", 1e3), ("Mbit/s", 1.0)):
        if rate >= scale:
            return f"{rate / scale:g} {unit}"
    return f"{rate * 1e3:g} kbit/s"
