"""Short flows over every cable in both directions: the rate of a port that reports none of its own.

Hosts under one leaf form a ring on each rail: everyone sends to the next, then everyone to the one before. Two slow
flows that share one cable name it. Uplinks carry flows of their own, between link-local addresses of leaf and spine.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from supernode.units import MbitPerS
from supernode.verify.expected import Cable, End, Wanted
from supernode.verify.facts.ports import Port
from supernode.verify.facts.raw import NotSeenError

PORT = 17317
WARM_S = 1
WINDOWS = 5
_MOST_OFFERED = 0.985
_SENDERS_FAULT = 0.95
_HEADERS = 48
CONNECT_S = 20
_MIN_RING = 2


@dataclass(frozen=True)
class Flow:
    """One flow to be pumped.

    Attributes:
        cables: those it crosses, each with the direction on it: "up" from a to b, "down" from b to a.
    """

    key: str
    source: End
    target: End
    source_address: str
    target_address: str
    cables: tuple[tuple[str, str], ...]
    rate: MbitPerS
    mtu: int
    link_local: bool = False


@dataclass(frozen=True)
class Measured:
    """A flow and what arrived; rate is the median over windows of one second, None when nothing could be measured."""

    flow: Flow
    rate: MbitPerS | None
    why: str = ""


def rings(wanted: Wanted, ends: Collection[End]) -> dict[End, list[str]]:
    """Return the hosts that take part, by (leaf, host's port), in the design's order."""
    found: dict[End, list[str]] = {}
    for name, host in wanted.hosts.items():
        for port, row in host.ports.items():
            if (name, port) in ends:
                found.setdefault((row.peer_device, port), []).append(name)
    return found


def rail_flows(wanted: Wanted, ends: Collection[End], step: int) -> list[Flow]:
    """Plan one round: each host sends to its neighbour `step` places further (1 or -1) on every rail.

    Args:
        wanted: the design's side.
        ends: the hosts' ports that reach their leaf; one that does not is left out, so that it spoils no other flow.
        step: 1 for the first round, -1 for the second.
    """
    found: list[Flow] = []
    for (leaf, port), names in rings(wanted, ends).items():
        if len(names) < _MIN_RING:
            found += _with_leaf(wanted, names[0], port, leaf, step)
            continue
        for at, name in enumerate(names):
            found.append(_between(wanted, name, names[(at + step) % len(names)], port))
    return found


def _between(wanted: Wanted, name: str, other: str, port: str) -> Flow:
    mine, theirs = wanted.hosts[name].ports[port], wanted.hosts[other].ports[port]
    key = f"{name}:{port}>{other}:{port}"
    crossed = ((mine.cable, "up"), (theirs.cable, "down"))
    rate = MbitPerS(min(mine.rate, theirs.rate))
    return Flow(key, (name, port), (other, port), mine.address, theirs.address, crossed, rate, mine.mtu)


def _with_leaf(wanted: Wanted, name: str, port: str, leaf: str, step: int) -> list[Flow]:
    """Plan the flow of a host that is alone under its leaf: nobody but the leaf itself is there to talk to."""
    row = wanted.hosts[name].ports[port]
    host, switch = (name, port), (leaf, row.peer_port)
    if step > 0:
        return [
            Flow(
                f"{name}:{port}>{leaf}",
                host,
                switch,
                row.address,
                row.peer_address,
                ((row.cable, "up"),),
                row.rate,
                row.mtu,
            )
        ]
    return [
        Flow(
            f"{leaf}>{name}:{port}",
            switch,
            host,
            row.peer_address,
            row.address,
            ((row.cable, "down"),),
            row.rate,
            row.mtu,
        )
    ]


def uplink_flows(cables: Iterable[Cable], ports: Mapping[str, Mapping[str, Port]], step: int) -> list[Flow]:
    """Plan one round over the uplinks: from leaf to spine (step 1) or back (-1).

    Args:
        cables: all cables; those that are no uplinks are passed over.
        ports: the switches' ports by device, for their link-local addresses; a cable whose end shows none is left out.
        step: the round, 1 or -1.
    """
    found = []
    for cable in cables:
        source, target = (cable.a, cable.b) if step > 0 else (cable.b, cable.a)
        addresses = [ports[d][p].link_local if d in ports and p in ports[d] else "" for d, p in (source, target)]
        if cable.kind == "uplink" and all(addresses):
            crossed = ((cable.id, "up" if step > 0 else "down"),)
            key = f"{':'.join(source)}>{':'.join(target)}"
            found.append(
                Flow(key, source, target, addresses[0], addresses[1], crossed, cable.rate, cable.mtu, link_local=True)
            )
    return found


def offer(floor: float) -> float:
    """Return the share of the declared rate that a sender offers: above the floor, and below what would queue."""
    return min((1 + floor) / 2, _MOST_OFFERED)


def requests(flows: Iterable[Flow], floor: float) -> dict[str, dict[str, Any]]:
    """Return what each device is asked to do in a round, by name."""
    found: dict[str, dict[str, Any]] = {}

    def of(device: str) -> dict[str, Any]:
        empty = {"serve": [], "send": [], "warm_s": WARM_S, "windows": WINDOWS, "connect_s": CONNECT_S}
        return found.setdefault(device, empty)

    for flow in flows:
        common = {"key": flow.key, "address": flow.target_address, "port": PORT}
        here, there = (flow.source[1], flow.target[1]) if flow.link_local else ("", "")
        of(flow.target[0])["serve"].append({**common, "device": there})
        pace = {"mbit_s": offer(floor) * flow.rate, "size": flow.mtu - _HEADERS}
        of(flow.source[0])["send"].append({**common, **pace, "source": flow.source_address, "device": here})
    return found


def parse(flows: Iterable[Flow], outputs: Mapping[str, str], floor: float) -> list[Measured]:
    """Read what the pumps of one round printed, by device; where one printed nothing, its flows are unmeasured."""
    answers = {device: _answer(text) for device, text in outputs.items()}
    return [_measured(flow, answers, floor) for flow in flows]


def _answer(text: str) -> Mapping[str, Any]:
    lines = [line for line in text.splitlines() if line.startswith("{")]
    try:
        answer: Mapping[str, Any] = json.loads(lines[-1]) if lines else {}
    except ValueError as error:
        raise NotSeenError(f"the pump printed no JSON: {error}") from error
    return answer


def _measured(flow: Flow, answers: Mapping[str, Mapping[str, Any]], floor: float) -> Measured:
    source, target = (answers.get(device, {}) for device, _ in (flow.source, flow.target))
    windows = target.get("served", {}).get(flow.key)
    if not windows:
        whys = [side.get("failed", {}).get(flow.key, "") for side in (source, target)]
        return Measured(flow, None, next((why for why in whys if why), "the pump gave no answer"))
    rate, offered = _median(windows), _median(source.get("offered", {}).get(flow.key) or [0])
    if rate < floor * flow.rate and rate >= _SENDERS_FAULT * offered:
        return Measured(flow, None, f"the sender managed only {offered:.3g} Mbit/s")
    return Measured(flow, rate)


def _median(windows: list[int]) -> MbitPerS:
    return MbitPerS(statistics.median(windows) * 8 / 1e6)
