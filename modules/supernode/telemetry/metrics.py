"""What was seen, as Prometheus metrics: base units in every name, a missing value absent. Pure.

`secondary_supply_temperature_celsius` of a reading is `supernode_cooling_supply_temperature_celsius{loop="secondary"}`,
`pump2_speed_ratio` is `supernode_cooling_pump_speed_ratio{pump="2"}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import get_args

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from supernode.clients.cdu import State
from supernode.telemetry.seen import STATES, Seen
from supernode.telemetry.settings import Unit

PREFIX = "supernode_cooling"
DETECTOR_STATES: tuple[str, ...] = get_args(State)
_LOOP = re.compile(r"(primary|secondary)_(.+)")
_PUMP = re.compile(r"pump(\d+)_(.+)")


def named(signal: str) -> tuple[str, dict[str, str]]:
    """Return a signal's metric, and the labels that its name carried."""
    if found := _LOOP.fullmatch(signal):
        return f"{PREFIX}_{found[2]}", {"loop": found[1]}
    if found := _PUMP.fullmatch(signal):
        return f"{PREFIX}_pump_{found[2]}", {"pump": found[1]}
    return f"{PREFIX}_{signal}", {}


def families(units: Iterable[Unit], seen: Mapping[str, Seen], now: float) -> list[Metric]:
    """Return every family of metrics of these units at a moment of the monotonic clock."""
    rows = [(unit, seen[unit.name]) for unit in units]
    return [
        *_values(rows, now),
        _detectors(rows, now),
        *_units(rows, now),
        *_agent(rows),
    ]


Rows = list[tuple[Unit, Seen]]


def _values(rows: Rows, now: float) -> list[Metric]:
    found: dict[str, GaugeMetricFamily] = {}
    for unit, seen in rows:
        for signal, value in seen.values(now):
            name, labels = named(signal)
            family = found.get(name)
            if family is None:
                family = found[name] = GaugeMetricFamily(name, f"As the unit measures it: {signal}.")
            family.add_sample(name, {"cdu": unit.name, **labels}, value)
    return list(found.values())


def _detectors(rows: Rows, now: float) -> Metric:
    name = f"{PREFIX}_leak_detector_state"
    family = GaugeMetricFamily(name, "1 for the state that a leak detector is in, 0 for the others.")
    for unit, seen in rows:
        if seen.reading is None or not seen.fresh(now):
            continue
        for detector in seen.reading.detectors:
            for state in DETECTOR_STATES:
                labels = {"cdu": unit.name, "detector": detector.name, "state": state}
                family.add_sample(name, labels, float(detector.state == state))
    return family


def _units(rows: Rows, now: float) -> list[Metric]:
    about = GaugeMetricFamily(f"{PREFIX}_unit_info", "Every designed unit, whether it answers or not.")
    serves = GaugeMetricFamily(f"{PREFIX}_serves", "The racks whose heat a unit moves away.")
    state = GaugeMetricFamily(f"{PREFIX}_unit_state", "1 for what may be thought of a unit's values, 0 for the others.")
    success = GaugeMetricFamily(
        f"{PREFIX}_last_success_timestamp_seconds", "When an answer was last found to be measured anew."
    )
    mark = GaugeMetricFamily(f"{PREFIX}_device_mark_info", "The device's own sequence or reading time, as it says it.")
    for unit, seen in rows:
        kind, cdu = unit.access.hardware, {"cdu": unit.name}
        what = {"kind": kind.name, "vendor": kind.vendor, "model": kind.model, "protocol": kind.protocol}
        about.add_sample(about.name, {**cdu, **what}, 1)
        for rack in unit.racks:
            serves.add_sample(serves.name, {**cdu, "served_rack": rack}, 1)
        for each in STATES:
            state.add_sample(state.name, {**cdu, "state": each}, float(seen.state(now) == each))
        if seen.success_at is not None:
            success.add_sample(success.name, cdu, seen.success_at)
        if seen.reading is not None and seen.reading.mark:
            mark.add_sample(mark.name, {**cdu, "mark": seen.reading.mark}, 1)
    return [about, serves, state, success, mark]


def _agent(rows: Rows) -> list[Metric]:
    interval = GaugeMetricFamily(f"{PREFIX}_poll_interval_seconds", "How often a unit is read.")
    duration = GaugeMetricFamily(f"{PREFIX}_poll_duration_seconds", "How long the last reading took.")
    polls = CounterMetricFamily(f"{PREFIX}_polls", "Readings that ended, well or not.")
    overruns = CounterMetricFamily(f"{PREFIX}_poll_overruns", "Periods that went by while a reading was under way.")
    errors = CounterMetricFamily(f"{PREFIX}_poll_errors", "Readings that brought nothing new or something impossible.")
    for unit, seen in rows:
        cdu = {"cdu": unit.name}
        interval.add_sample(interval.name, cdu, unit.interval_s)
        duration.add_sample(duration.name, cdu, seen.duration_s)
        polls.add_sample(f"{polls.name}_total", cdu, seen.polls)
        overruns.add_sample(f"{overruns.name}_total", cdu, seen.overruns)
        for reason, count in sorted(seen.errors.items()):
            errors.add_sample(f"{errors.name}_total", {**cdu, "reason": reason}, count)
    return [interval, duration, polls, overruns, errors]
