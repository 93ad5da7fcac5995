"""What the cooling agent and Prometheus should show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from supernode.design import cooling_agent, watching
from supernode.design.model import Design


@dataclass(frozen=True)
class CoolingUnitExpectation:
    """A cooling unit, as the agent should show it.

    Attributes:
        signals: what its kind tells, with the least and the most that can be true.
        min_flow_m3_s: on the racks' side.
    """

    racks: tuple[str, ...]
    interval_s: float
    signals: Mapping[str, tuple[float, float]]
    min_flow_m3_s: float


@dataclass(frozen=True)
class CoolingExpectation:
    """The cooling agent: the host on which it runs, where it serves, and every unit that it reads."""

    host: str
    url: str
    units: Mapping[str, CoolingUnitExpectation]


@dataclass(frozen=True)
class TargetExpectation:
    """One target of Prometheus."""

    job: str
    address: str
    host: str


@dataclass(frozen=True)
class WatchExpectation:
    """Prometheus: the host on which it runs, where it answers, whom it scrapes, its alerts and whom it tells."""

    host: str
    url: str
    targets: tuple[TargetExpectation, ...]
    alerts: tuple[str, ...]
    alertmanager: str


def cooling(design: Design) -> CoolingExpectation | None:
    """Return what the cooling agent should show; None without one."""
    host = watching.cooling_host(design)
    if host is None:
        return None
    units = {
        unit.name: CoolingUnitExpectation(
            unit.racks,
            cooling_agent.interval_s(unit),
            {signal.key: (signal.low, signal.high) for signal in unit.hardware.signals},
            unit.min_flow_m3_s,
        )
        for unit in design.cooling
    }
    return CoolingExpectation(host.name, f"http://{host.management.ip}:{watching.COOLING_PORT}/metrics", units)


def cooling_read(row: Mapping[str, Any] | None) -> CoolingExpectation | None:
    """Read what was written as JSON."""
    if row is None:
        return None
    units = {}
    for name, unit in row["units"].items():
        signals = {key: (float(low), float(high)) for key, (low, high) in unit["signals"].items()}
        units[name] = CoolingUnitExpectation(**{**unit, "racks": tuple(unit["racks"]), "signals": signals})
    return CoolingExpectation(row["host"], row["url"], units)


def watch(design: Design) -> WatchExpectation | None:
    """Return what Prometheus should show; None without one."""
    host = watching.service_host(design)
    if host is None:
        return None
    rules = next(file.content for file in watching.watch(design, host) if file.path == watching.RULES)
    return WatchExpectation(
        host.name,
        f"http://{host.management.ip}:{watching.PROMETHEUS_PORT}",
        tuple(TargetExpectation(row.job, row.address, row.host) for row in watching.targets(design)),
        watching.alerts(rules),
        f"{host.management.ip}:{watching.ALERTMANAGER_PORT}",
    )


def watch_read(row: Mapping[str, Any] | None) -> WatchExpectation | None:
    """Read what was written as JSON."""
    if row is None:
        return None
    targets = tuple(TargetExpectation(**target) for target in row["targets"])
    return WatchExpectation(**{**row, "targets": targets, "alerts": tuple(row["alerts"])})
