"""What a BMC still shows of an earlier moment, until it is reset."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from supernode.lab.bmc.faults import Faults
from supernode.lab.chassis import Chassis, Identity, Power, Progress


@dataclass(frozen=True)
class Moment:
    """What was read then.

    Attributes:
        firmware: versions before the last update of each component.
        serial: that of the system board's predecessor.
        at: of the monotonic clock.
    """

    power: Power
    progress: Progress
    firmware: Mapping[str, str]
    serial: str
    at: float


class Stale:
    """The moment that a BMC did not get over, if any."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._moment: Moment | None = None

    def take(self, chassis: Chassis, firmware: Mapping[str, str]) -> None:
        """Hold on to this moment."""
        former = Identity.manufactured("former", chassis.slot).system_serial
        versions = {name: _former(version) for name, version in firmware.items()}
        self._moment = Moment(chassis.power_state(), chassis.boot_progress(), versions, former, time.monotonic())

    def forget(self) -> None:
        """Look afresh, as a BMC does that was reset."""
        self._moment = None

    def of(self, what: str) -> Moment | None:
        """Return the moment that is shown of power, firmware or identity; None shows what is."""
        fault = self._faults.get("bmc-stale-inventory")
        if fault is None or self._moment is None or fault["what"] != what:
            return None
        over = fault["for_s"] and time.monotonic() - self._moment.at > fault["for_s"]
        return None if over else self._moment


def _former(version: str) -> str:
    """Return a version that could have come before; the first of all keeps its name."""
    head, dot, last = version.rpartition(".")
    return f"{head}{dot}{int(last) - 1}" if last.isdigit() and int(last) > 0 else f"{version}-rc1"
