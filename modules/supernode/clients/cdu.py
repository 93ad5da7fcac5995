"""One cooling unit of any kind, read into one shape: values in base units, leak detectors, and the device's own time.

Only reads are sent. Who acts on a leak is the unit's firmware and the building; this tells what they show.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from supernode import catalog
from supernode.catalog import CduKind
from supernode.clients.tries import Tries

FLOW = "secondary_flow_cubic_meters_per_second"
State = Literal["ok", "warning", "critical", "unavailable", "absent", "disabled", "unknown"]
_LITRES_A_MINUTE = 60_000


@dataclass(frozen=True)
class Access:
    """How a unit is reached; what `design.CoolingUnit.access` says.

    Attributes:
        password: a reference, resolved when the connection opens.
        ca: a file that is named relative to the environment's folder, or PEM text; for Redfish only.
    """

    unit: str
    kind: str
    address: str
    port: int
    username: str = ""
    password: str = field(default="", repr=False)
    ca: str = ""

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Access:
        """Read a mapping; keys that it does not know are others' business."""
        texts = {key: str(row.get(key) or "") for key in ("username", "password", "ca")}
        return cls(str(row["unit"]), str(row["kind"]), str(row["address"]), int(row["port"]), **texts)

    @property
    def hardware(self) -> CduKind:
        """The catalogue's entry."""
        return catalog.cdu(self.kind)


@dataclass(frozen=True)
class Detector:
    """A leak detector; `unavailable`, `absent`, `disabled` and `unknown` are not dry: they do not see."""

    name: str
    state: State

    @property
    def wet(self) -> bool:
        """Whether it reports liquid."""
        return self.state in ("warning", "critical")

    @property
    def blind(self) -> bool:
        """Whether it cannot tell."""
        return not self.wet and self.state != "ok"


@dataclass(frozen=True)
class Reading:
    """What a unit showed at one moment.

    Attributes:
        values: by `Signal.key`, e.g. "secondary_supply_temperature_celsius".
        missing: keys that its kind tells and this device did not.
        implausible: what lies outside the kind's bounds, with the value; it is not in `values`.
        detectors: all that it lists; none listed is no sign of health.
        mark: its own sequence or time of these values; another one means that it measured anew. "" where it tells none.
    """

    unit: str
    values: Mapping[str, float]
    missing: tuple[str, ...]
    implausible: Mapping[str, float]
    detectors: tuple[Detector, ...]
    mark: str

    @property
    def flow(self) -> float | None:
        """On the racks' side, in cubic metres a second; None where it is not known."""
        return self.values.get(FLOW)


def reading(access: Access, told: Mapping[str, float | None], detectors: tuple[Detector, ...], mark: str) -> Reading:
    """Hold what a device told, by `Signal.key`, against its kind."""
    values, missing, implausible = dict[str, float](), list[str](), dict[str, float]()
    for signal in access.hardware.signals:
        value = told.get(signal.key)
        if value is None or value != value:  # NaN: the device says that it has no value
            missing.append(signal.key)
        elif signal.admits(value):
            values[signal.key] = value
        else:
            implausible[signal.key] = value
    return Reading(access.unit, values, tuple(missing), implausible, detectors, mark)


def objections(found: Reading, min_flow_m3_s: float) -> tuple[str, ...]:
    """Say, sensor by sensor, what speaks against more heat for this unit; empty when nothing does."""
    said = [f"leak detector {found.unit}:{d.name} is {d.state}: wet" for d in found.detectors if d.wet]
    said += [f"leak detector {found.unit}:{d.name} is {d.state}: it sees nothing" for d in found.detectors if d.blind]
    if not found.detectors:
        said.append(f"{found.unit} shows no leak detector")
    if FLOW in found.implausible:
        said.append(f"flow {found.unit}:secondary_flow is no measurement: {_litres(found.implausible[FLOW])}")
    elif found.flow is None:
        said.append(f"flow {found.unit}:secondary_flow is not shown")
    elif found.flow < min_flow_m3_s:
        wanted = _litres(min_flow_m3_s)
        said.append(f"flow {found.unit}:secondary_flow is {_litres(found.flow)}, at least {wanted} is wanted")
    return tuple(said)


def _litres(flow: float) -> str:
    return f"{flow * _LITRES_A_MINUTE:.1f} l/min"


@dataclass
class Freshness:
    """How old a unit's values are at most, told by its own mark alone: a unit can answer for ever and show the past.

    A mark that changed was set after the last look at the one before. All times are one monotonic clock's, in seconds.
    """

    _mark: str = ""
    _since: float = 0.0  # when the present mark was first looked at
    _seen: float | None = None  # when it was last looked at
    _after: float | None = None  # when the one before it was last looked at

    def note(self, mark: str, now: float) -> None:
        """Take note of a look; no mark at all says nothing."""
        if not mark:
            return
        if self._seen is None or mark != self._mark:
            self._after, self._since = self._seen, now
        self._mark, self._seen = mark, now

    def age(self, now: float) -> float | None:
        """Return how old the values are at most; None as long as nobody saw them change."""
        return None if self._after is None else now - self._after

    def stands(self, now: float) -> float:
        """Return for how long the present mark was seen to stand."""
        return 0.0 if self._seen is None else now - self._since


class Reader(Protocol):
    """A connection to one unit."""

    async def read(self) -> Reading:
        """Read it once.

        Raises:
            CouldNotRun: it cannot be had: no answer, a certificate that is not trusted, an account that is refused.
        """


@asynccontextmanager
async def connect(
    access: Access, base: Path, *, session: bool = False, tries: Tries | None = None
) -> AsyncIterator[Reader]:
    """Open a connection for the block's time.

    Args:
        access: the unit.
        base: the folder that references and `ca` are relative to.
        session: begin a Redfish session and keep it, for who reads on and on; else each request names the account.
        tries: what is known of its password; who reads again and again shares it, so that a wrong one is sent twice.

    Raises:
        CouldNotRun: nobody answers, or the secret cannot be had.
    """
    from supernode.clients import cdu_modbus, cdu_redfish

    opened = (
        cdu_redfish.connect(access, base, session=session, tries=tries)
        if access.hardware.protocol == "redfish"
        else cdu_modbus.connect(access)
    )
    async with opened as reader:
        yield reader


async def read(access: Access, base: Path, tries: Tries | None = None) -> Reading:
    """Read a unit once, by a connection of its own.

    Raises:
        CouldNotRun: see `Reader.read`.
    """
    async with connect(access, base, tries=tries) as reader:
        return await reader.read()
