"""All cooling units of a lab: each at its own address, all of them ageing by one clock."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from supernode.errors import WrongInput
from supernode.lab.artefacts import CoolingUnit
from supernode.lab.bmc import faults as sockets
from supernode.lab.bmc.access import hash_password
from supernode.lab.bmc.certificates import Authority
from supernode.lab.cooling import modbus, redfish
from supernode.lab.cooling.unit import Unit
from supernode.lab.factory import Factory

log = logging.getLogger(__name__)
Front = modbus.Front | redfish.Front


def _heat(of: Callable[[str], float], racks: Sequence[str]) -> float:
    return sum(map(of, racks))


class Hall:
    """The units.

    Args:
        rows: from cooling.csv.
        folder: the authority under `ca/`, each unit's certificate under `cdu/<unit>/`.
        made: the passwords on their labels.
        heat: tells how much heat a rack gives off now, in watts.
    """

    def __init__(self, rows: Sequence[CoolingUnit], folder: Path, made: Factory, heat: Callable[[str], float]) -> None:
        self._folder, self._made = folder, made
        self.units = {row.unit: Unit(row, functools.partial(_heat, heat, row.racks)) for row in rows}
        self._fronts: dict[str, Front] = {}

    async def open(self) -> None:
        """Put every unit into operation.

        Raises:
            CouldNotRun: an address cannot be listened on.
        """
        for name, unit in self.units.items():
            self._fronts[name] = await self._front(unit)
            unit.hearing = functools.partial(self._hearing, name)
            self._hearing(name, not unit.silent)

    async def _front(self, unit: Unit) -> Front:
        if unit.kind.protocol == "modbus":
            return await modbus.listen(unit)
        name = unit.row.unit
        front = redfish.Front(unit, await asyncio.to_thread(hash_password, self._made.unit_password(name)))
        authority = Authority(self._folder / "ca")
        await front.listen(
            await asyncio.to_thread(authority.issue, self._folder / "cdu" / name, f"cdu-{name}", unit.row.address)
        )
        return front

    async def run(self) -> None:
        """Let time pass, for good: each unit measures as often as its kind does."""
        await asyncio.gather(*(self._age(unit) for unit in self.units.values()))

    async def _age(self, unit: Unit) -> None:
        clock = asyncio.get_running_loop().time
        before = clock()
        while True:
            await asyncio.sleep(unit.kind.refresh_s)
            now = clock()
            unit.advance(now - before)
            before = now

    async def close(self) -> None:
        """Stop listening."""
        for front in self._fronts.values():
            await front.close()
        self._fronts.clear()

    def set_fault(self, name: str, target: str, arguments: Mapping[str, Any]) -> None:
        """Inject a fault; the target is a unit or a rack, with `:detector` behind it where one is meant.

        Raises:
            WrongInput: no such unit, rack or detector.
        """
        unit, detector = self._find(target)
        unit.set_fault(name, detector, arguments)

    def clear_fault(self, name: str, target: str) -> None:
        """Take a fault away."""
        unit, detector = self._find(target)
        unit.clear_fault(name, detector)

    def status(self) -> list[dict[str, Any]]:
        """Return what each unit does, for `supernode lab status`."""
        return [
            {
                "unit": name,
                "kind": unit.row.kind,
                "address": f"{unit.row.address}:{unit.row.port}",
                "racks": " ".join(unit.row.racks),
                "faults": " ".join(unit.faults),
            }
            for name, unit in self.units.items()
        ]

    def _find(self, target: str) -> tuple[Unit, str]:
        wanted, _, detector = target.partition(":")
        found = next((u for u in self.units.values() if wanted == u.row.unit or wanted in u.row.racks), None)
        if found is None:
            known = ", ".join(self.units) or "none"
            raise WrongInput(target, "is no cooling unit of this lab and no rack of one", f"units: {known}")
        return found, detector

    def _hearing(self, name: str, hears: bool) -> None:
        """Let the unit's sockets hear or not: who is silent does not even refuse."""
        change = sockets.restore if hears else sockets.deafen
        for each in self._fronts[name].sockets():
            try:
                change(each)
            except OSError as error:  # nothing was attached, or the connection is just ending
                log.debug("%s: socket filter: %s", name, error)
