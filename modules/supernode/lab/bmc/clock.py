"""The BMC's own clock: set by hand, and one that begins again in 1970 where nothing keeps it."""

from __future__ import annotations

import time

from supernode.lab.bmc.faults import Faults
from supernode.lab.bmc.state import State


class Clock:
    """What time a BMC believes it is, in seconds since the epoch."""

    def __init__(self, state: State, faults: Faults) -> None:
        self._state, self._faults = state, faults
        self._since, self._was_lost = time.monotonic(), False

    def now(self) -> float:
        """Return the BMC's time."""
        base = time.monotonic() - self._since if self._lost else time.time()
        return base + self._state.clock_offset_s

    def told(self, at: float) -> float:
        """Return what the BMC calls a moment of this machine's clock; it has none before its own beginning."""
        return max(0.0, self.now() - (time.time() - at))

    def set(self, wanted: float) -> None:
        """Set the clock; one that is not kept goes right until the next reset."""
        self._state.clock_offset_s += wanted - self.now()

    def restart(self) -> None:
        """Begin anew where nothing keeps the time."""
        if self._lost:
            self._begin()

    def notice(self) -> None:
        """Take it that the clock is lost now, or kept again."""
        if self._lost != self._was_lost:
            self._was_lost = self._lost
            self._begin()

    def _begin(self) -> None:
        self._since, self._state.clock_offset_s = time.monotonic(), 0.0

    @property
    def _lost(self) -> bool:
        return "bmc-clock-1970" in self._faults.active
