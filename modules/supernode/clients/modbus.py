"""A Modbus TCP client that reads what a register profile lists: in blocks, decoded, and nothing but reads.

After the MODBUS Application Protocol Specification V1.1b3: function codes 1 to 4, registers big-endian; the order
of a value's two registers is the device's own.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from pymodbus.client import AsyncModbusTcpClient
from pymodbus.exceptions import ModbusException

from supernode.catalog import Register
from supernode.catalog.cdu import Table
from supernode.errors import CouldNotRun

ANSWER_S = 3.0
_FUNCTIONS: Mapping[Table, str] = {
    "input": "read_input_registers",
    "holding": "read_holding_registers",
    "discrete": "read_discrete_inputs",
    "coil": "read_coils",
}
_BITS = {"discrete", "coil"}
Place = tuple[Table, int]  # a table and a 0-based address in it


@dataclass(frozen=True)
class Block:
    """Addresses that are read by one request."""

    table: Table
    address: int
    count: int


def places(registers: Iterable[Register]) -> Iterable[Place]:
    """Yield every place that the registers fill."""
    return ((r.table, r.address + n) for r in registers for n in range(r.size))


def blocks(wanted: Iterable[Place], most: int) -> tuple[Block, ...]:
    """Cover places with as few requests as possible; none asks for a place that is not wanted.

    A device may answer a request that touches a register it does not have with an exception, all of it.

    Args:
        wanted: the places.
        most: how many a device answers at once.
    """
    found: list[Block] = []
    for table, address in sorted(set(wanted)):
        last = found[-1] if found else None
        if last and last.table == table and last.address + last.count == address and last.count < most:
            found[-1] = Block(table, last.address, last.count + 1)
        else:
            found.append(Block(table, address, 1))
    return tuple(found)


def decode(register: Register, words: Sequence[int]) -> float:
    """Return the value in the register's unit; NaN where the device says that it has none."""
    kinds = AsyncModbusTcpClient.DATATYPE
    value = AsyncModbusTcpClient.convert_from_registers(
        list(words), kinds[register.type.upper()], word_order=register.word_order
    )
    return float(value) * register.scale if isinstance(value, int | float) else math.nan


@dataclass
class Modbus:
    """One device. Use `connect`."""

    where: str
    device_id: int
    most: int
    _client: AsyncModbusTcpClient

    async def read(self, wanted: Iterable[Place]) -> Mapping[Place, int]:
        """Read places: registers as 16-bit numbers, bits as 0 or 1.

        Raises:
            CouldNotRun: no answer, or an exception of the device.
        """
        found: dict[Place, int] = {}
        for block in blocks(wanted, self.most):
            answer = await self._ask(block)
            told = answer.bits if block.table in _BITS else answer.registers
            if len(told) < block.count:
                raise CouldNotRun(self.where, f"{_spell(block)}: answers {len(told)} of {block.count}")
            found |= {(block.table, block.address + n): int(told[n]) for n in range(block.count)}
        return found

    async def _ask(self, block: Block) -> Any:
        function = getattr(self._client, _FUNCTIONS[block.table])
        try:
            answer = await function(block.address, count=block.count, device_id=self.device_id)
        except (ModbusException, OSError, TimeoutError) as error:
            raise CouldNotRun(self.where, f"{_spell(block)}: no answer ({type(error).__name__})") from error
        if answer.isError():
            code = getattr(answer, "exception_code", 0)
            raise CouldNotRun(
                self.where,
                f"{_spell(block)}: answers exception {code}",
                "does the register map of its kind fit this device?",
            )
        return answer


def _spell(block: Block) -> str:
    return f"{block.table} {block.address} to {block.address + block.count - 1}"


@asynccontextmanager
async def connect(address: str, port: int, device_id: int, most: int) -> AsyncIterator[Modbus]:
    """Open a connection for the block's time; one request is under way at a time.

    Args:
        address: the device's.
        port: likewise.
        device_id: its unit identifier.
        most: how many registers it answers at once.

    Raises:
        CouldNotRun: nobody listens there.
    """
    where = f"{address}:{port}"
    client = AsyncModbusTcpClient(address, port=port, timeout=ANSWER_S, retries=1, reconnect_delay=0)
    try:
        if not await client.connect():
            raise CouldNotRun(where, "does not answer Modbus TCP", "is it powered, and its port open from here?")
        yield Modbus(where, device_id, most, client)
    finally:
        client.close()
