"""Cooling units by Modbus TCP: the catalogue says which register holds what."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from supernode.catalog import CduKind, DetectorInput, Register
from supernode.clients import modbus
from supernode.clients.cdu import Access, Detector, Reading, reading
from supernode.clients.modbus import Modbus, Place


@dataclass
class _Reader:
    access: Access
    device: Modbus

    async def read(self) -> Reading:
        """See `cdu.Reader`."""
        kind = self.access.hardware
        found = await self.device.read(_wanted(kind))
        told = {r.key: _value(r, found) for r in kind.registers}
        mark = "" if kind.sequence is None else f"{_value(kind.sequence, found):.0f}"
        return reading(self.access, told, tuple(_detector(d, found) for d in kind.detectors), mark)


def _wanted(kind: CduKind) -> Iterator[Place]:
    yield from modbus.places(kind.registers)
    if kind.sequence:
        yield from modbus.places([kind.sequence])
    for detector in kind.detectors:
        yield detector.table, detector.wet
        if detector.broken is not None:
            yield detector.table, detector.broken


def _value(register: Register, found: Mapping[Place, int]) -> float:
    words = [found[register.table, register.address + n] for n in range(register.size)]
    return modbus.decode(register, words)


def _detector(row: DetectorInput, found: Mapping[Place, int]) -> Detector:
    """Read a detector; a wet one counts as wet also where it calls itself broken."""
    if found[row.table, row.wet]:
        return Detector(row.name, "critical")
    broken = row.broken is not None and found[row.table, row.broken]
    return Detector(row.name, "unavailable" if broken else "ok")


@asynccontextmanager
async def connect(access: Access) -> AsyncIterator[_Reader]:
    """Open a connection; see `cdu.connect`."""
    kind = access.hardware
    async with modbus.connect(access.address, access.port, kind.device_id, kind.max_block) as device:
        yield _Reader(access, device)
