"""Injecting faults from outside: into the lab that runs, or for the next start where none does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from supernode.errors import CouldNotRun
from supernode.lab import cgroups, control, exchange
from supernode.lab.faults import KINDS, Fault, Standing
from supernode.lab.places import Places

Faults = Sequence[Mapping[str, Any]]


def inject(environment: str, fault: Fault) -> Faults:
    """Inject a fault and return those that stand.

    Raises:
        CouldNotRun: the lab refused it, or none runs and the fault is one that happens rather than stands.
    """
    places = Places.of(environment)
    if _running(places):
        stand = _answer(control.ask(places.control, {"do": "fault", "fault": fault.to_json()}))
        if fault.name == exchange.NAME:
            exchange.deliver(places)
        return stand
    if not KINDS[fault.name].lasting:
        raise CouldNotRun(environment, "no lab runs", f"supernode lab start {environment}")
    Standing(places.faults).add(fault)
    return standing(environment)


def clear(environment: str, fault: Fault) -> Faults:
    """Take a fault away and return those that stand.

    Raises:
        CouldNotRun: it does not stand.
    """
    places = Places.of(environment)
    if _running(places):
        return _answer(control.ask(places.control, {"do": "clear", "fault": fault.to_json()}))
    if not Standing(places.faults).remove(fault):
        raise CouldNotRun(" ".join(fault.targets), f"has no fault {fault.name}")
    return standing(environment)


def standing(environment: str) -> Faults:
    """Return the faults that stand."""
    return [fault.to_json() for fault in Standing(Places.of(environment).faults).read()]


def _running(places: Places) -> bool:
    return cgroups.populated(cgroups.top() / places.cgroup)


def _answer(answer: Any) -> Faults:
    return list(answer)
