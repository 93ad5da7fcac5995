"""A simulated cooling unit: its loop, its detectors, its own clock and counter, and what may be wrong with it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from supernode import catalog
from supernode.errors import WrongInput
from supernode.lab.artefacts import CoolingUnit
from supernode.lab.cooling.loop import Loop

DETECTORS = ("tray", "manifold")  # of a kind whose own file lists none
FAULTS = ("leak", "freeze-cdu", "cdu-silent", "low-flow")


@dataclass(frozen=True)
class Shown:
    """What the unit tells until it measures again.

    Attributes:
        sequence: counts each measuring, and starts again after 2**32.
        at: when that was, by the unit's own clock, in seconds since the epoch.
        values: by point, in base units.
        detectors: state by name: ok, warning or critical.
    """

    sequence: int
    at: float
    values: Mapping[str, float]
    detectors: Mapping[str, str]


@dataclass
class Unit:
    """One unit.

    Attributes:
        heat: tells how much heat its racks give off now, in watts.
        hearing: called when it falls silent or answers again.
    """

    row: CoolingUnit
    heat: Callable[[], float]
    loop: Loop = field(default_factory=Loop)
    faults: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    hearing: Callable[[bool], None] = lambda _hears: None
    shown: Shown = Shown(0, 0.0, {}, {})

    def __post_init__(self) -> None:
        self.kind = catalog.cdu(self.row.kind)
        self.detectors = tuple(d.name for d in self.kind.detectors) or DETECTORS
        self._wet: dict[str, str] = {}
        self.measure()

    def advance(self, seconds: float) -> None:
        """Let time pass and measure once; a frozen unit goes on answering with what it has."""
        self.loop.advance(seconds, self.heat())
        self.measure()

    def measure(self) -> None:
        """Take new values, unless it is frozen."""
        if "freeze-cdu" in self.faults and self.shown.sequence:
            return
        states = {name: self._wet.get(name, "ok") for name in self.detectors}
        self.shown = Shown((self.shown.sequence + 1) % 2**32 or 1, time.time(), self.loop.values(), states)

    @property
    def silent(self) -> bool:
        """Whether no packet is to be answered."""
        return "cdu-silent" in self.faults

    def set_fault(self, name: str, detector: str, arguments: Mapping[str, Any]) -> None:
        """Inject a fault of FAULTS.

        Raises:
            WrongInput: it has no such detector.
        """
        if name == "leak":
            self._wet[self._detector(detector)] = str(arguments["state"])
        elif name == "low-flow":
            self.loop.choke = float(arguments["share"])
        self.faults[name] = arguments
        self._changed()

    def clear_fault(self, name: str, detector: str) -> None:
        """Take a fault away."""
        if name == "leak":
            self._wet.pop(self._detector(detector), None)
        elif name == "low-flow":
            self.loop.choke = 1.0
        if name != "leak" or not self._wet:
            self.faults.pop(name, None)
        self._changed()

    def _changed(self) -> None:
        self.measure()
        self.hearing(not self.silent)

    def _detector(self, name: str) -> str:
        found = name or self.detectors[0]
        if found not in self.detectors:
            raise WrongInput(name, f"is no leak detector of {self.row.unit}", f"its own: {', '.join(self.detectors)}")
        return found
