"""Every designed cooling unit is read, fresh, dry and plausible: (wanted, facts) -> findings. Pure.

Limits of plausibility are loose on purpose: a heat balance from two thermometers and a flow meter is worth 5 to 9 %, so
what differs by less than 15 % is no finding.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from supernode.records import Finding, Verdict
from supernode.verify.facts.scraped import Metrics
from supernode.verify.unseen import unseen

if TYPE_CHECKING:
    from supernode.design.observers import CoolingUnitExpectation
    from supernode.verify.expected import Wanted
    from supernode.verify.facts.device import Facts

CHECK = "cooling"
PREFIX = "supernode_cooling_"
PERIODS = 3
SLACK_S = 5.0  # between the agent's last reading and the page that tells of it
BALANCE = 0.15
# Heat that a cubic metre takes up for each kelvin, joules: from a quarter of glycol in water (1020 kg/m3, 3.9 kJ) to
# water. What the loop holds is the site's.
LEAST_HEAT, MOST_HEAT = 3.98e6, 4.18e6
LEAST_DIFFERENCE_K = 2.0  # below it thermometers say nothing of heat
NOTICEABLE_W = 1000.0
WANT = "read, fresh, dry and plausible"


def gate(wanted: Wanted, facts: Facts) -> list[Finding]:
    """Judge every designed unit by what the agent serves; places are the units."""
    if wanted.cooling is None:
        return []
    seen = facts.of(wanted.cooling.host)
    if seen.cooling is None:
        return [unseen(CHECK, name, seen, "cooling", WANT) for name in wanted.cooling.units]
    return [_unit(name, unit, seen.cooling) for name, unit in wanted.cooling.units.items()]


def _unit(name: str, unit: CoolingUnitExpectation, page: Metrics) -> Finding:
    if not page.of(f"{PREFIX}unit_info", cdu=name):
        hint = "run the playbooks: the agent's settings are of another design"
        return Finding(CHECK, name, Verdict.FAIL, WANT, "the agent does not know it", hint=hint)
    stale = list(_stale(name, unit, page))
    if stale == ["starting"]:
        return Finding(
            CHECK, name, Verdict.UNKNOWN, WANT, "not read twice yet", evidence=("the agent has just started",)
        )
    said = stale or [*_detectors(name, page), *_signals(name, unit, page), *_balance(name, page)]
    racks = ", ".join(unit.racks)
    if not said:
        return Finding(CHECK, name, Verdict.PASS, WANT, _summary(name, page))
    hint = f"it cools {racks}: look at the unit itself before any machine there is switched on"
    return Finding(CHECK, name, Verdict.FAIL, WANT, "; ".join(said), evidence=tuple(_evidence(name, page)), hint=hint)


def _stale(name: str, unit: CoolingUnitExpectation, page: Metrics) -> Iterator[str]:
    state = next((s.labels["state"] for s in page.of(f"{PREFIX}unit_state", cdu=name) if s.value == 1), "silent")
    if state == "starting":
        yield "starting"
    elif state == "silent":
        reasons = [s.labels["reason"] for s in page.of(f"{PREFIX}poll_errors_total", cdu=name) if s.value]
        yield f"does not answer ({', '.join(reasons) or 'no reason known'})"
    elif state == "frozen":
        marks = [s.labels["mark"] for s in page.of(f"{PREFIX}device_mark_info", cdu=name)]
        yield f"is frozen: it answers, and its values stay those of {marks[0] if marks else 'no mark at all'}"
    else:
        success = page.of(f"{PREFIX}last_success_timestamp_seconds", cdu=name)
        limit = PERIODS * unit.interval_s + SLACK_S
        if not success or page.at - success[0].value > limit:
            yield f"was not measured anew for more than {limit:g} s"


def _detectors(name: str, page: Metrics) -> Iterator[str]:
    rows = page.of(f"{PREFIX}leak_detector_state", cdu=name)
    if not rows:
        yield "shows no leak detector"
    for row in rows:
        if row.value == 1 and row.labels["state"] != "ok":
            what = (
                "leak detected by" if row.labels["state"] in ("warning", "critical") else "leak detector sees nothing:"
            )
            yield f"{what} {row.labels['detector']} ({row.labels['state']})"


def _signals(name: str, unit: CoolingUnitExpectation, page: Metrics) -> Iterator[str]:
    values = _values(name, page)
    missing = [key for key in unit.signals if key not in values]
    if missing:
        yield f"does not show {', '.join(missing)}"
    for key, (low, high) in unit.signals.items():
        if key in values and not low <= values[key] <= high:
            yield f"{key} is {values[key]:g}, which can be {low:g} to {high:g}"
    flow = values.get("secondary_flow_cubic_meters_per_second")
    if flow is not None and flow < unit.min_flow_m3_s:
        yield f"secondary flow is {_litres(flow)}, at least {_litres(unit.min_flow_m3_s)} is wanted"


def _balance(name: str, page: Metrics) -> Iterator[str]:
    """Hold heat against flow and temperatures on the racks' side, where there is heat to speak of."""
    values = _values(name, page)
    keys = ("heat_removed_watts", "secondary_flow_cubic_meters_per_second")
    heat, flow = (values.get(key) for key in keys)
    supply, back = (values.get(f"secondary_{way}_temperature_celsius") for way in ("supply", "return"))
    if heat is None or flow is None or supply is None or back is None or heat < NOTICEABLE_W:
        return
    if back <= supply:
        sides = f"the return ({back:g} C) is no warmer than the supply ({supply:g} C)"
        yield f"heat is removed ({heat / 1000:.1f} kW), and {sides}"
    elif back - supply >= LEAST_DIFFERENCE_K:
        low, high = flow * (back - supply) * LEAST_HEAT, flow * (back - supply) * MOST_HEAT
        if not (1 - BALANCE) * low <= heat <= (1 + BALANCE) * high:
            told = f"{low / 1000:.1f} to {high / 1000:.1f} kW"
            yield f"it says {heat / 1000:.1f} kW of heat, its flow and temperatures say {told}"


def _values(name: str, page: Metrics) -> dict[str, float]:
    """Return values by signal: the loop's or the pump's label goes back to where the signal has it."""
    found = {}
    for sample in page.samples:
        if sample.labels.get("cdu") == name and sample.name.startswith(PREFIX):
            word = sample.name.removeprefix(PREFIX)
            if loop := sample.labels.get("loop"):
                word = f"{loop}_{word}"
            elif pump := sample.labels.get("pump"):
                word = f"pump{pump}_{word.removeprefix('pump_')}"
            found[word] = sample.value
    return found


def _litres(flow: float) -> str:
    return f"{flow * 60_000:.1f} l/min"


def _summary(name: str, page: Metrics) -> str:
    values = _values(name, page)
    flow, heat = values.get("secondary_flow_cubic_meters_per_second", 0), values.get("heat_removed_watts")
    detectors = {row.labels["detector"] for row in page.of(f"{PREFIX}leak_detector_state", cdu=name)}
    warmth = f", {heat / 1000:.1f} kW" if heat is not None else ""
    return f"fresh, {len(detectors)} detectors dry, {_litres(flow)}{warmth}"


def _evidence(name: str, page: Metrics) -> Iterator[str]:
    telling = ("unit_state", "device_mark_info", "leak_detector_state", "poll_errors_total", "last_success")
    for row in page.samples:
        if row.labels.get("cdu") == name and row.value and row.name.removeprefix(PREFIX).startswith(telling):
            labels = ",".join(f"{key}={value}" for key, value in row.labels.items() if key != "cdu")
            yield f"{row.name.removeprefix(PREFIX)}{{{labels}}} {row.value:.10g}"
