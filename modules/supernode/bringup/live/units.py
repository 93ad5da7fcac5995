"""Cooling units: asked as the interlock asks them right before it lets a machine be switched on."""

from __future__ import annotations

from pathlib import Path

from supernode.bringup.live.seen import UnitSeen
from supernode.clients.cdu import Access
from supernode.design import CoolingUnit, Design
from supernode.provider.interlock import Interlock, Units


async def look(design: Design, unit: CoolingUnit, base: Path) -> UnitSeen:
    """Read a unit until its values are known to be of this moment, or known not to be."""
    cooling = design.environment.cooling
    limit = cooling.interlock.max_age_s if cooling else 0.0
    wanted = Interlock(Access.of(unit.access()), unit.min_flow_m3_s, limit)
    return UnitSeen(unit.name, unit.racks, await Units().look(wanted, base, limit))
