"""Asks every device at once, in a bounded pool, and pumps the flows; knows no transport: it is handed `connect`.

One connection to a device serves the facts and both rounds of flows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager

from supernode.records import Event, State
from supernode.verify import subnet
from supernode.verify.expected import End, Wanted
from supernode.verify.facts import device, flows
from supernode.verify.facts.device import DeviceFacts, Facts
from supernode.verify.facts.raw import NotSeenError

AT_ONCE = 16
PUMPS_AT_ONCE = 512

Run = Callable[[str], str]
"""Runs one command on one device and returns its standard output; raises UnreachableError."""

Connect = Callable[[str], Run]
OnEvent = Callable[[Event], None]


class UnreachableError(Exception):
    """A device did not answer; the text says how in one line."""


def gather(
    wanted: Wanted,
    connect: Connect,
    on_event: OnEvent,
    patience_s: float = device.PATIENCE_S,
    cut: Callable[[], None] = lambda: None,
) -> Facts:
    """Gather the facts of every device, then the flows of both rounds.

    Args:
        wanted: the design's side: whom to ask, and for what.
        connect: returns a device's `run`; it may raise UnreachableError at once or only when run.
        on_event: is called from the threads of the pool.
        patience_s: how long a device waits for all its neighbours to be heard.
        cut: breaks every connection; called on Ctrl-C, so that no thread waits for an answer nobody wants.
    """
    started = time.time()
    runs = {name: connect(name) for name in wanted.asked()}
    devices: dict[str, DeviceFacts] = {}
    with _pool(AT_ONCE, cut) as pool:
        jobs = {pool.submit(_ask, wanted, name, run, on_event, patience_s): name for name, run in runs.items()}
        for job in as_completed(jobs):
            devices[jobs[job]] = job.result()
    if wanted.subnet is not None:
        return subnet.spread(wanted, Facts({name: devices[name] for name in wanted.asked()}, (), started))
    measured = [row for step in (1, -1) for row in _round(wanted, devices, runs, step, on_event, cut)]
    return Facts({name: devices[name] for name in wanted.asked()}, tuple(measured), started)


@contextmanager
def _pool(workers: int, cut: Callable[[], None]) -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(workers) as pool:
        try:
            yield pool
        except BaseException:
            cut()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _ask(wanted: Wanted, name: str, run: Run, on_event: OnEvent, patience_s: float) -> DeviceFacts:
    on_event(Event(time.time(), "verify", name, "facts", State.STARTED))
    try:
        text = run(device.command("on_host", device.request(wanted, name, patience_s)))
    except UnreachableError as error:
        on_event(Event(time.time(), "verify", name, "facts", State.FAILED, str(error)))
        return DeviceFacts(name, reached=False, why=str(error))
    seen = device.parse(name, text)
    lacking = "; ".join(f"{fact}: {why}" for fact, why in seen.unseen.items())
    on_event(Event(time.time(), "verify", name, "facts", State.OK, f"not seen: {lacking}" if lacking else ""))
    return seen


def able(wanted: Wanted, devices: Mapping[str, DeviceFacts]) -> set[End]:
    """Return the hosts' ports that reach their leaf with a small packet, and can therefore take part in flows."""
    return {
        (name, port)
        for name, host in wanted.hosts.items()
        for port in host.ports
        if (sweep := devices[name].sweeps.get((port, "leaf"))) is not None and sweep.small.passed
    }


def plan(wanted: Wanted, devices: Mapping[str, DeviceFacts], step: int) -> list[flows.Flow]:
    """Return the flows of one round over the cables whose ports report no rate of their own."""
    ports = {name: devices[name].ports or {} for name in wanted.switches}
    rows = flows.rail_flows(wanted, able(wanted, devices), step)
    rows += flows.uplink_flows(wanted.cables().values(), ports, step)
    return [row for row in rows if not (_reports(devices, row.source) or _reports(devices, row.target))]


def _reports(devices: Mapping[str, DeviceFacts], end: End) -> bool:
    port = (devices[end[0]].ports or {}).get(end[1])
    return port is not None and port.hardware and port.speed is not None


def _round(
    wanted: Wanted,
    devices: Mapping[str, DeviceFacts],
    runs: Mapping[str, Run],
    step: int,
    on_event: OnEvent,
    cut: Callable[[], None],
) -> Iterable[flows.Measured]:
    rows = plan(wanted, devices, step)
    asked = flows.requests(rows, wanted.rate_floor)
    if not asked:
        return []
    name = f"flows round {1 if step > 0 else 2}"
    on_event(Event(time.time(), "verify", None, name, State.STARTED, f"{len(rows)} flows"))
    with _pool(min(len(asked), PUMPS_AT_ONCE), cut) as pool:  # all must pump at once: each waits for its partner
        jobs = {host: pool.submit(_pump, runs[host], request) for host, request in asked.items()}
        outputs = {host: job.result() for host, job in jobs.items()}
    measured = flows.parse(rows, outputs, wanted.rate_floor)
    good = sum(row.rate is not None for row in measured)
    on_event(Event(time.time(), "verify", None, name, State.OK, f"{good} of {len(rows)} flows measured"))
    return measured


def _pump(run: Run, request: Mapping[str, object]) -> str:
    try:
        return run(device.command("pump_on_host", request))
    except (UnreachableError, NotSeenError):
        return ""
