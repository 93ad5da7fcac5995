"""One cooling unit's two loops, as few lumps as show what a fault does: heat in, heat out, and what is in between.

The racks warm the secondary loop's coolant, a heat exchanger hands it to the facility's water, a valve there holds the
supply temperature, and pumps follow the load. What comes in and does not go out warms the coolant: the balance holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# Water with a quarter of propylene glycol at 30 C; the figures of the supplier count on a real site.
DENSITY, SPECIFIC_HEAT = 1020.0, 3900.0
VOLUMETRIC = DENSITY * SPECIFIC_HEAT  # J in a cubic metre for each kelvin
COOLANT_M3 = 0.25
FLOW_PER_WATT = 1.5 / 60_000 / 1000  # OCP's guideline: 1.5 l/min for each kW
LEAST_FLOW, MOST_FLOW = 60 / 60_000, 400 / 60_000
SUPPLY_SETPOINT, FACILITY_SUPPLY, HOTTEST = 30.0, 18.0, 78.0
AT_REST = SUPPLY_SETPOINT - 1.0  # where the valve is shut
EXCHANGER_W_PER_K = 60_000.0
VALVE_PER_K = 0.25
STATIC_PA, HEAD_PA = 180_000.0, 220_000.0
LONGEST_STEP_S = 0.5


@dataclass
class Loop:
    """The state of one unit, and what moves it.

    Attributes:
        coolant: the secondary loop's temperature on the way to the racks, in Celsius.
        choke: the share of the wanted flow that the pumps reach; less than 1 is a fault.
        taken_j, removed_j: energy that came in from the racks and went out to the facility, since the start.
    """

    coolant: float = AT_REST
    choke: float = 1.0
    taken_j: float = 0.0
    removed_j: float = 0.0
    _wanted_w: float = 0.0
    _heat_w: float = 0.0
    _removed_w: float = 0.0

    def advance(self, seconds: float, heat_w: float) -> None:
        """Let time pass while the racks give off this much heat."""
        while seconds > 0:
            step = min(seconds, LONGEST_STEP_S)
            self._step(step, heat_w)
            seconds -= step

    def _step(self, seconds: float, heat_w: float) -> None:
        # The coolant takes up no more than brings it to what machines get at their hottest; they throttle then.
        most = max(0.0, self.flow(heat_w) * VOLUMETRIC * (HOTTEST - self.coolant))
        self._heat_w = min(heat_w, most)
        self._removed_w = EXCHANGER_W_PER_K * self._valve * max(0.0, self.coolant - FACILITY_SUPPLY)
        self.taken_j += self._heat_w * seconds
        self.removed_j += self._removed_w * seconds
        self.coolant += (self._heat_w - self._removed_w) * seconds / (VOLUMETRIC * COOLANT_M3)
        self._wanted_w = heat_w

    @property
    def _valve(self) -> float:
        """Open by how far the supply is above where it rests, from shut to all the way."""
        return min(1.0, max(0.0, (self.coolant - AT_REST) * VALVE_PER_K))

    def flow(self, heat_w: float) -> float:
        """Return the flow to the racks at this heat, in cubic metres a second."""
        return self.choke * min(MOST_FLOW, max(LEAST_FLOW, heat_w * FLOW_PER_WATT))

    @property
    def stored_j(self) -> float:
        """Energy in the coolant, from where it started."""
        return VOLUMETRIC * COOLANT_M3 * (self.coolant - AT_REST)

    def values(self) -> Mapping[str, float]:
        """Return what sensors would show, by point, in base units."""
        flow = self.flow(self._wanted_w)
        speed = min(1.0, max(LEAST_FLOW, self._wanted_w * FLOW_PER_WATT) / MOST_FLOW)
        primary = max(LEAST_FLOW, MOST_FLOW * self._valve)
        return {
            "secondary_supply_temperature": self.coolant,
            "secondary_return_temperature": self.coolant + self._heat_w / (flow * VOLUMETRIC),
            "primary_supply_temperature": FACILITY_SUPPLY,
            "primary_return_temperature": FACILITY_SUPPLY + self._removed_w / (primary * VOLUMETRIC),
            "secondary_flow": flow,
            "primary_flow": primary,
            "secondary_supply_pressure": STATIC_PA + HEAD_PA * (self.choke * speed) ** 2,
            "secondary_return_pressure": STATIC_PA,
            "pump1_speed": speed,
            "pump2_speed": speed,
            "heat_removed": self._removed_w,
        }
