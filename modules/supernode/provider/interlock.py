"""The word of a rack's cooling unit before a machine of the rack is switched on: dry, flowing, and of this moment.

It is asked right before every power-on, and before a machine that is on would be switched off to start anew. A machine
that is on is left on: who stops it in a leak is firmware. Nothing is taken for health but what says so: a detector that
does not see, a unit that does not answer, and values that stand still hold the machine just as a leak does.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from supernode.clients import cdu
from supernode.clients.cdu import Access, Freshness, Reading
from supernode.clients.tries import Tries
from supernode.errors import CouldNotRun


@dataclass(frozen=True)
class Interlock:
    """What the unit must show (docs/contracts.md, section 7).

    Attributes:
        override: why a machine is switched on whatever the unit shows; empty for none.
    """

    access: Access
    min_flow_m3_s: float
    max_age_s: float
    override: str = ""

    @classmethod
    def of(cls, row: Mapping[str, Any] | None) -> Interlock | None:
        """Read a Machine's input; None where the rack has no unit."""
        if not row:
            return None
        override = str(row.get("override") or "").strip()
        return cls(Access.of(row), float(row["minFlow"]), float(row["maxAgeS"]), override)


@dataclass
class _Watched:
    """What this process knows of one unit."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    fresh: Freshness = field(default_factory=Freshness)
    tries: Tries = field(default_factory=Tries)
    began: float = float("-inf")
    said: tuple[str, ...] = ()


class Units:
    """The units that this process asks; one look at a time for each.

    A look that begins after a machine asked for it is that machine's, too: a rack that starts at once asks twice.
    """

    def __init__(self) -> None:
        self._watched: dict[tuple[str, int], _Watched] = {}

    async def look(self, wanted: Interlock, base: Path, limit_s: float) -> tuple[str, ...]:
        """Read a unit now and say, sensor by sensor, what speaks against a power-on; empty when nothing does."""
        asked = time.monotonic()
        unit = self._watched.setdefault((wanted.access.address, wanted.access.port), _Watched())
        async with unit.turn:
            if unit.began < asked:
                unit.began = time.monotonic()
                unit.said = await _objections(wanted, unit, base, limit_s)
            return unit.said


async def _objections(wanted: Interlock, unit: _Watched, base: Path, limit_s: float) -> tuple[str, ...]:
    """Read until the values are known to be of this moment, or it is known that they are not."""
    until = time.monotonic() + limit_s
    while True:
        try:
            found = await cdu.read(wanted.access, base, unit.tries)
        except CouldNotRun as error:
            return (f"{wanted.access.unit} cannot be read: {error}",)
        now = time.monotonic()
        unit.fresh.note(found.mark, now)
        if said := cdu.objections(found, wanted.min_flow_m3_s):
            return said
        age = unit.fresh.age(now)
        if age is not None and age <= wanted.max_age_s:
            return ()
        if not found.mark or unit.fresh.stands(now) >= wanted.max_age_s or now >= until:
            return (_stale(found, unit.fresh.stands(now)),)
        await asyncio.sleep(wanted.access.hardware.refresh_s / 2)


def _stale(found: Reading, seconds: float) -> str:
    if not found.mark:
        return f"{found.unit} tells no time of its values, so nobody can say how old they are"
    return f"{found.unit} is stale: it answers, and its values stand still at {found.mark!r} for {seconds:.0f} s"
