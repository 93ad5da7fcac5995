"""Prometheus scrapes everything that is designed, evaluates its rules and has somebody to tell: pure.

Counted by name: an empty list of targets has no target that is down.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from supernode.records import Finding, Verdict
from supernode.verify.unseen import unseen

if TYPE_CHECKING:
    from supernode.design.observers import TargetExpectation, WatchExpectation
    from supernode.verify.expected import Wanted
    from supernode.verify.facts.device import Facts
    from supernode.verify.facts.scraped import Scraping, Watched

CHECK = "watch"
ALERTS = "alerts"


def gate(wanted: Wanted, facts: Facts) -> list[Finding]:
    """Judge the targets of every host, and the rules with their receiver; places are the hosts, and `alerts`."""
    watch = wanted.watch
    if watch is None:
        return []
    hosts = dict.fromkeys(row.host for row in watch.targets)
    seen = facts.of(watch.host)
    if seen.watch is None:
        want = "its targets are up"
        return [unseen(CHECK, place, seen, "watch", want) for place in (*hosts, ALERTS)]
    rows = [_host(host, [row for row in watch.targets if row.host == host], seen.watch) for host in hosts]
    return [*rows, _alerts(watch, seen.watch)]


def _host(host: str, wanted: list[TargetExpectation], seen: Watched) -> Finding:
    want = ", ".join(f"{row.job} at {row.address} is up" for row in wanted)
    wrong = [line for row in wanted if (line := _target(row, seen))]
    waiting = [f"its {row.job} was not scraped yet" for row in wanted if _waits(row, seen)]
    said = [*wrong, *waiting]
    if waiting and not wrong:
        return Finding(CHECK, host, Verdict.UNKNOWN, want, "; ".join(said))
    if said:
        hint = "look at the service on that host, and at whether Prometheus reaches its management address"
        return Finding(CHECK, host, Verdict.FAIL, want, "; ".join(said), hint=hint)
    return Finding(CHECK, host, Verdict.PASS, want, "up")


def _scraped(row: TargetExpectation, seen: Watched) -> Scraping | None:
    return next((t for t in seen.targets if (t.job, t.address, t.host) == (row.job, row.address, row.host)), None)


def _waits(row: TargetExpectation, seen: Watched) -> bool:
    found = _scraped(row, seen)
    return found is not None and found.health == "unknown"


def _target(row: TargetExpectation, seen: Watched) -> str:
    found = _scraped(row, seen)
    if found is None:
        return f"Prometheus does not know its {row.job} at {row.address}"
    well = found.health in ("up", "unknown")
    return "" if well else f"its {row.job} at {row.address} is {found.health}: {found.why}"


def _alerts(watch: WatchExpectation, seen: Watched) -> Finding:
    want = f"{', '.join(watch.alerts)}; sent to {watch.alertmanager}; no target that is not designed"
    said = list(_wrong(watch, seen))
    if said:
        return Finding(CHECK, ALERTS, Verdict.FAIL, want, "; ".join(said), hint="run the playbooks: role watch")
    found = f"firing: {'; '.join(seen.firing)}" if seen.firing else "loaded, none is firing"
    return Finding(CHECK, ALERTS, Verdict.PASS, want, found)


def _wrong(watch: WatchExpectation, seen: Watched) -> Iterator[str]:
    missing = [name for name in watch.alerts if name not in seen.alerts]
    if missing:
        yield f"no rule raises {', '.join(missing)}"
    yield from (f"{name} cannot be evaluated: {why}" for name, why in seen.alerts.items() if why)
    if watch.alertmanager not in seen.alertmanagers:
        yield f"alerts go to {', '.join(seen.alertmanagers) or 'nobody'}"
    known = {(row.job, row.address) for row in watch.targets}
    strangers = [f"{row.job} at {row.address}" for row in seen.targets if (row.job, row.address) not in known]
    if strangers:
        yield f"scrapes what is not designed: {', '.join(strangers)}"
