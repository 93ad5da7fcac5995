"""Kinds of cooling units (CDUs): how one is read, what it tells, and within what bounds a value can be true."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Table = Literal["input", "holding", "discrete", "coil"]
Type = Literal["int16", "uint16", "int32", "uint32", "float32"]
SIZES: Mapping[str, int] = {"int16": 1, "uint16": 1, "int32": 2, "uint32": 2, "float32": 2}


@dataclass(frozen=True)
class Signal:
    """One value that a kind of unit tells.

    Attributes:
        point: what is measured, e.g. "secondary_flow"; the same word for every kind.
        unit: a base unit as metric names write it: celsius, pascals, watts, ratio, cubic_meters_per_second.
        low, high: a value outside is no measurement.
    """

    point: str
    unit: str
    low: float
    high: float

    @property
    def key(self) -> str:
        """Point and unit in one word, as readings and metrics name it."""
        return f"{self.point}_{self.unit}"

    def admits(self, value: float) -> bool:
        """Tell whether this may be a measurement; NaN is none."""
        return self.low <= value <= self.high


@dataclass(frozen=True)
class Register(Signal):
    """Where a signal stands in a Modbus device.

    Attributes:
        address: 0-based, as it goes over the wire.
        word_order: of a value that takes two registers.
        scale: what a count is worth in `unit`.
    """

    table: Table
    address: int
    type: Type
    word_order: Literal["big", "little"]
    scale: float

    @property
    def size(self) -> int:
        """How many registers it fills."""
        return SIZES[self.type]


@dataclass(frozen=True)
class DetectorInput:
    """A leak detector of a Modbus device: an input that is set when it is wet, and one when the detector is broken.

    Attributes:
        broken: None where the device does not tell.
    """

    name: str
    table: Table
    wet: int
    broken: int | None


@dataclass(frozen=True)
class CduKind:
    """A kind of cooling unit.

    Attributes:
        source: where the figures come from.
        port: where it listens unless the site says otherwise.
        device_id: Modbus unit identifier; 0 for Redfish.
        max_block: the most registers that it answers at once; 0 for Redfish.
        refresh_s: how often it measures anew; reading it faster shows the same values.
        freshness: what of the device's own advances with each refresh: "sequence" is a counter, "reading-time" the
            ReadingTime of the sensor behind the flow on the racks' side.
        sequence: the counter's place; None for Redfish.
        signals: what it tells; for Modbus each is a Register.
        detectors: its leak detectors; empty for Redfish, which lists its own.
        min_flow_m3_s: below this flow on the racks' side it does not cool.
    """

    name: str
    vendor: str
    model: str
    source: str
    protocol: Literal["modbus", "redfish"]
    port: int
    device_id: int
    max_block: int
    refresh_s: float
    freshness: Literal["sequence", "reading-time"]
    sequence: Register | None
    signals: tuple[Signal, ...]
    detectors: tuple[DetectorInput, ...]
    min_flow_m3_s: float

    @property
    def registers(self) -> tuple[Register, ...]:
        """The places of the signals; empty for Redfish, whose schema says where each stands."""
        return tuple(signal for signal in self.signals if isinstance(signal, Register))


def kind_of(name: str, row: Mapping[str, Any]) -> CduKind:
    """Read a catalogue file's content."""
    given = dict(row)
    modbus = given.get("protocol") == "modbus"
    sequence = given.pop("sequence", None)
    signals = given.pop("signals")
    return CduKind(
        name=name,
        sequence=_register({"point": "sequence", "unit": "count", "low": 0, "high": 2**32, **sequence})
        if sequence
        else None,
        signals=tuple(_register(entry) if modbus else Signal(**entry) for entry in signals),
        detectors=tuple(
            DetectorInput(entry["name"], entry.get("table", "discrete"), entry["wet"], entry.get("broken"))
            for entry in given.pop("detectors", ())
        ),
        device_id=given.pop("device_id", 0),
        max_block=given.pop("max_block", 0),
        **given,
    )


def _register(entry: Mapping[str, Any]) -> Register:
    return Register(**{"table": "input", "type": "uint16", "word_order": "big", "scale": 1.0, **entry})
