"""The Modbus TCP front of a cooling unit: its kind's register map over what the unit shows; it takes no writes.

Values are put into registers here by `struct` and the map alone, so that a client's own reading of the map is tested.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pymodbus.constants import ExcCodes
from pymodbus.datastore import ModbusBaseDeviceContext, ModbusServerContext
from pymodbus.server import ModbusTcpServer

from supernode.catalog import Register
from supernode.errors import CouldNotRun
from supernode.lab.cooling.unit import Unit

_TABLES: Mapping[int, str] = {1: "coil", 2: "discrete", 3: "holding", 4: "input"}
_PACKING: Mapping[str, str] = {"int16": ">h", "uint16": ">H", "int32": ">i", "uint32": ">I", "float32": ">f"}


def words(register: Register, value: float) -> list[int]:
    """Put a value into registers; the first word is the one at the register's address."""
    counts = value / register.scale
    whole: float | int = counts if register.type == "float32" else round(counts)
    data = struct.pack(_PACKING[register.type], whole)
    found = list(struct.unpack(f">{len(data) // 2}H", data))
    return found[::-1] if register.word_order == "little" else found


class Device(ModbusBaseDeviceContext):
    """The unit's tables, made from what it shows when it is asked."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    def getValues(self, func_code: int, address: int, count: int = 1) -> Any:  # noqa: N802 - pymodbus's name
        """Answer a read; one that touches what is not there is refused whole."""
        kind = self._unit.kind
        if count > kind.max_block:
            return ExcCodes.ILLEGAL_VALUE
        table = _TABLES[func_code]
        there = {place: value for place, value in self._places() if place[0] == table}
        wanted = [(table, address + n) for n in range(count)]
        return [there[place] for place in wanted] if all(p in there for p in wanted) else ExcCodes.ILLEGAL_ADDRESS

    def setValues(self, func_code: int, address: int, values: Any) -> Any:  # noqa: N802, ARG002 - pymodbus's name
        """Refuse every write."""
        return ExcCodes.ILLEGAL_FUNCTION

    def reset(self) -> None:
        """Do nothing: there is nothing to forget."""

    def _places(self) -> Iterator[tuple[tuple[str, int], int]]:
        kind, shown = self._unit.kind, self._unit.shown
        rows: Iterable[tuple[Register, float]] = [(r, shown.values[r.point]) for r in kind.registers]
        if kind.sequence:
            rows = [*rows, (kind.sequence, float(shown.sequence))]
        for register, value in rows:
            for n, word in enumerate(words(register, value if math.isfinite(value) else 0.0)):
                yield (register.table, register.address + n), word
        for detector in kind.detectors:
            yield (detector.table, detector.wet), int(shown.detectors[detector.name] != "ok")
            if detector.broken is not None:
                yield (detector.table, detector.broken), 0


class Front:
    """A listening unit."""

    def __init__(self, server: Any) -> None:
        self._server = server  # untyped: its own annotations know no sockets

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.transport.sockets[0].getsockname()[1])

    def sockets(self) -> Iterator[Any]:
        """Yield the listening socket and those of the connections that stand."""
        yield from self._server.transport.sockets
        for connection in self._server.active_connections.values():
            if connection.transport is not None and not connection.transport.is_closing():
                yield connection.transport.get_extra_info("socket")

    async def close(self) -> None:
        """Stop listening."""
        await self._server.shutdown()


async def listen(unit: Unit, port: int | None = None) -> Front:
    """Put a unit's front into operation.

    Raises:
        CouldNotRun: the address cannot be listened on.
    """
    where = (unit.row.address, unit.row.port if port is None else port)
    make: Any = ModbusServerContext
    context = make(devices={unit.kind.device_id: Device(unit)}, single=False)
    server = ModbusTcpServer(context, address=where)
    if not await server.listen():
        raise CouldNotRun(f"{where[0]}:{where[1]}", f"cooling unit {unit.row.unit} cannot listen there")
    return Front(server)
