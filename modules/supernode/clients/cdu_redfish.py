"""Cooling units by Redfish: ThermalEquipment, CDUs, connectors, pumps and leak detectors (DMTF, release 2025.4).

A connector's excerpts hold all its values, so no sensor is asked but the one that tells when the flow was measured.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from supernode.clients import cdu_leaks, redfish, secrets
from supernode.clients.answer import MISSHAPEN, Json, misshapen
from supernode.clients.cdu import Access, Reading, reading
from supernode.clients.patience import Patience
from supernode.clients.redfish import Redfish
from supernode.clients.tries import Tries
from supernode.errors import CouldNotRun

EQUIPMENT = "/redfish/v1/ThermalEquipment"
PATIENCE = Patience(answer_s=8.0, tries=2, first_s=0.2, longest_s=2.0)
Merge = Callable[[Iterable[float]], float]
# A connector's property -> the word in a point's name, what one is worth in the base unit, and what several make.
_CONNECTOR: Mapping[str, tuple[str, float, Merge]] = {
    "FlowLitersPerMinute": ("flow_cubic_meters_per_second", 1 / 60_000, sum),
    "SupplyTemperatureCelsius": ("supply_temperature_celsius", 1.0, max),
    "ReturnTemperatureCelsius": ("return_temperature_celsius", 1.0, max),
    "SupplyPressurekPa": ("supply_pressure_pascals", 1000.0, min),
    "ReturnPressurekPa": ("return_pressure_pascals", 1000.0, min),
}


@dataclass(frozen=True)
class _Paths:
    """Where things stand in one device's tree; it is walked once."""

    primary: tuple[str, ...]
    secondary: tuple[str, ...]
    pumps: tuple[str, ...]
    leaks: str
    chassis: tuple[str, ...]


@dataclass
class _Reader:
    access: Access
    client: Redfish
    paths: _Paths | None = None

    async def read(self) -> Reading:
        """See `cdu.Reader`."""
        try:
            self.paths = self.paths or await self._walk()
            return await self._read(self.paths)
        except MISSHAPEN as error:
            raise CouldNotRun(self.access.unit, misshapen(error)) from error

    async def _walk(self) -> _Paths:
        equipment = await self.client.get(EQUIPMENT)
        units = await self.client.members(_link(equipment, "CDUs")) if _link(equipment, "CDUs") else []
        if len(units) != 1:
            what = f"lists {len(units)} cooling units under {EQUIPMENT}, one is expected"
            raise CouldNotRun(self.access.unit, what, "is this the address of the unit itself?")
        unit = units[0]
        primary = await self._listed(_link(unit, "PrimaryCoolantConnectors"))
        secondary = await self._listed(_link(unit, "SecondaryCoolantConnectors"))
        pumps = await self._listed(_link(unit, "Pumps"))
        chassis = tuple(str(entry["@odata.id"]) for entry in (unit.get("Links") or {}).get("Chassis") or ())
        return _Paths(primary, secondary, pumps, _link(unit, "LeakDetection"), chassis)

    async def _listed(self, collection: str) -> tuple[str, ...]:
        return tuple(str(row["@odata.id"]) for row in await self.client.members(collection)) if collection else ()

    async def _read(self, paths: _Paths) -> Reading:
        primary = [await self.client.get(path) for path in paths.primary]
        secondary = [await self.client.get(path) for path in paths.secondary]
        told = {**_connectors("primary", primary), **_connectors("secondary", secondary)}
        told["heat_removed_watts"] = _merged(secondary or primary, "HeatRemovedkW", 1000.0, sum)
        for number, path in enumerate(paths.pumps, 1):
            told[f"pump{number}_speed_ratio"] = _excerpt(await self.client.get(path), "PumpSpeedPercent", 0.01)
        detectors = await cdu_leaks.read(self.client, paths.leaks, paths.chassis)
        return reading(self.access, told, detectors, await self._measured(secondary))

    async def _measured(self, connectors: list[Json]) -> str:
        """Return when the flow was measured, as the sensor behind it says."""
        flows = [row.get("FlowLitersPerMinute") or {} for row in connectors]
        source = next((str(flow["DataSourceUri"]) for flow in flows if flow.get("DataSourceUri")), "")
        sensor = await self.client.find(source) if source else None
        return str((sensor or {}).get("ReadingTime") or "")


def _connectors(side: str, rows: list[Json]) -> dict[str, float | None]:
    return {f"{side}_{word}": _merged(rows, key, worth, merge) for key, (word, worth, merge) in _CONNECTOR.items()}


def _merged(rows: list[Json], key: str, worth: float, merge: Merge) -> float | None:
    """Make one value of all connectors'; one of them without a value leaves none, for a part is not the whole."""
    found = [_excerpt(row, key, worth) for row in rows]
    known = [value for value in found if value is not None]
    return merge(known) if known and len(known) == len(found) else None


def _excerpt(row: Json, key: str, worth: float) -> float | None:
    value = (row.get(key) or {}).get("Reading")
    return None if value is None or isinstance(value, bool) else float(value) * worth


def _link(resource: Json, name: str) -> str:
    return str((resource.get(name) or {}).get("@odata.id") or "")


@asynccontextmanager
async def connect(access: Access, base: Path, *, session: bool, tries: Tries | None = None) -> AsyncIterator[_Reader]:
    """Open a connection; see `cdu.connect`."""
    password = await secrets.resolve(access.password, base)
    where = access.address if access.port == 443 else f"{access.address}:{access.port}"
    ca = await asyncio.to_thread(_ca, access, base)
    async with redfish.connect(where, access.username, password, ca, PATIENCE, look=not session, tries=tries) as client:
        yield _Reader(access, client)


def _ca(access: Access, base: Path) -> str:
    if access.ca.lstrip().startswith("-----BEGIN"):
        return access.ca
    try:
        return (base / access.ca).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise CouldNotRun(f"{access.unit}: {access.ca}", f"cannot be read: {why}") from error
