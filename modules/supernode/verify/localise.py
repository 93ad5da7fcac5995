"""From findings to causes: one cause for everything that follows from it, so that no fault hides another. Pure.

A cause owns ends of cables or whole devices. Every finding that is not a pass touches some; the first cause that
owns one of them explains it. Findings that share a `cause` are one problem; the first in the list is its head.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from supernode.records import Finding, Verdict
from supernode.units import format_rate
from supernode.verify import cabling, rate, recable, subnet, tunnel
from supernode.verify.cabling import text
from supernode.verify.expected import Cable, End, Wanted
from supernode.verify.facts import fib
from supernode.verify.facts.device import Facts, next_host

_MANY = 2
_REACH, _IDENTITY, _CABLING = frozenset(("reach",)), frozenset(("identity",)), frozenset(("cabling",))
_TUNNEL = frozenset((tunnel.CHECK,))
_PORTS, _RATE, _FIB = frozenset(("rails", "ports")), frozenset(("rate",)), frozenset(("fib",))


@dataclass(frozen=True)
class Cause:
    """One thing that is wrong.

    Attributes:
        own: the checks that see it directly. What another check says where this cause is at work is no judgement of its
            own: it becomes unknown until the cause is mended.
        ends, devices: what it owns; a device is owned whole.
        checks: the checks that it can explain; empty means any.
    """

    what: str
    own: frozenset[str]
    hint: str = ""
    cables: tuple[str, ...] = ()
    ends: frozenset[End] = frozenset()
    devices: frozenset[str] = frozenset()
    evidence: tuple[str, ...] = ()
    checks: frozenset[str] = frozenset()

    def owns(self, check: str, touched: frozenset[End | str]) -> bool:
        """Tell whether it explains a finding that touches these ends and devices."""
        return (not self.checks or check in self.checks) and bool(touched & (self.ends | self.devices))


@dataclass(frozen=True)
class Case:
    """What there is to explain, and what with."""

    wanted: Wanted
    facts: Facts
    findings: tuple[Finding, ...]

    @functools.cached_property
    def seen(self) -> dict[End, cabling.Observed]:
        """What LLDP and the ports say of every end."""
        return cabling.observe(self.wanted, self.facts)


def explain(wanted: Wanted, facts: Facts, findings: Iterable[Finding]) -> list[Finding]:
    """Return the same findings in the same order, each that is not a pass with its cause, its cables and what to do."""
    case = Case(wanted, facts, tuple(findings))
    causes = [cause for source in _SOURCES for cause in source(case)]
    told: set[str] = set()
    return [row if row.verdict is Verdict.PASS else _explained(case, row, causes, told) for row in case.findings]


def _explained(case: Case, row: Finding, causes: list[Cause], told: set[str]) -> Finding:
    where = touched(case.wanted, case.facts, row)
    cause = next((cause for cause in causes if cause.owns(row.check, where)), None)
    if cause is None:
        return dataclasses.replace(row, cause=f"{row.place}: {row.found}" if row.verdict is not Verdict.UNKNOWN else "")
    first = cause.what not in told
    follows = row.verdict is Verdict.FAIL and row.check not in cause.own
    told.add(cause.what)
    evidence = cause.evidence if first and cause.evidence else row.evidence
    return dataclasses.replace(
        row,
        verdict=Verdict.UNKNOWN if follows else row.verdict,
        cause=cause.what,
        cables=cause.cables or row.cables,
        hint=cause.hint or row.hint,
        evidence=evidence,
    )


def touched(wanted: Wanted, facts: Facts, row: Finding) -> frozenset[End | str]:
    """Return the ends and devices that a finding is about."""
    cable = wanted.cables().get(row.place)
    if cable is not None:
        beside = _beside(wanted, facts, cable.id) if row.check == "rate" and row.verdict is Verdict.UNKNOWN else ()
        return frozenset((cable.a, cable.b, cable.a[0], cable.b[0], *beside))
    device, _, port = row.place.partition(":")
    if row.verdict is Verdict.UNKNOWN and (observer := _observer(wanted, row.check)):
        return frozenset((device, observer))
    if not port:
        return frozenset((device, *(_lost(wanted, facts, device) if row.check == "fib" else ())))
    if row.check == "mtu" and not _leaf_fails(wanted, facts, (device, port)):
        other = next_host(wanted, device, port)
        return frozenset((device, *_both(wanted, (other, port)))) if other else frozenset((device,))
    return frozenset((device, *_both(wanted, (device, port))))


def _observer(wanted: Wanted, check: str) -> str:
    """Return the host that tells what a check asks of others; who is not reached tells nothing of them."""
    services = {"cooling": wanted.cooling, "watch": wanted.watch}
    return service.host if (service := services.get(check)) is not None else ""


def _beside(wanted: Wanted, facts: Facts, cable: str) -> Iterator[End]:
    """Yield ends of the other cables on flows that could not be measured: one broken cable leaves two unmeasured."""
    cables = wanted.cables()
    for flow in facts.flows:
        crossed = [name for name, _ in flow.flow.cables]
        if flow.rate is None and cable in crossed:
            yield from (end for name in crossed for end in (cables[name].a, cables[name].b))


def _both(wanted: Wanted, end: End) -> Iterator[End | str]:
    row = wanted.port(end)
    yield from (end, end[0])
    if row is not None:
        yield from ((row.peer_device, row.peer_port), row.peer_device)


def _leaf_fails(wanted: Wanted, facts: Facts, end: End) -> bool:
    """Tell whether the first hop is at fault or was not seen: then the way to the next host says nothing new."""
    row, sweep = wanted.port(end), facts.of(end[0]).sweeps.get((end[1], "leaf"))
    return row is None or sweep is None or not sweep.full.passed or sweep.over.passed


def _lost(wanted: Wanted, facts: Facts, name: str) -> Iterator[End | str]:
    """Yield the ends whose loss narrows a switch's table: uplinks that its kernel leaves out, and those behind."""
    switch, routes = wanted.switches[name], facts.of(name).routes or ()
    for prefix, width in switch.fib.items():
        route = fib.lookup(routes, prefix)
        used = set(route.ports) if route is not None else set()
        if len(used) == width:
            continue
        for port, row in switch.ports.items():
            if row.kind == "uplink" and port not in used:
                yield from ((name, port), (row.peer_device, row.peer_port), row.peer_device)
                yield from ((row.peer_device, other) for other in wanted.switches[row.peer_device].ports)


def _cut_off(case: Case) -> Iterator[Cause]:
    """Tell of a tunnel that carries nothing: whoever is reached by it alone says nothing of itself then."""
    for row in case.findings:
        if row.check != tunnel.CHECK or row.verdict is not Verdict.FAIL:
            continue
        mine = case.wanted.gateways[row.place]
        ends = sorted((row.place, mine.peer))
        if tunnel.silent(case.facts.of(row.place)):
            behind = {*mine.behind, *case.wanted.gateways[mine.peer].behind}
            what = f"the tunnel between {ends[0]} and {ends[1]} carries nothing: {row.found}"
            yield Cause(what, _TUNNEL, row.hint, devices=frozenset((*ends, *behind)), evidence=row.evidence)
        elif tunnel.narrow(case.facts.of(row.place)):
            what = f"the WAN between {ends[0]} and {ends[1]} carries less than designed: {row.found}"
            yield Cause(what, _TUNNEL, row.hint, devices=frozenset(ends), evidence=row.evidence, checks=_TUNNEL)


def _unreached(case: Case) -> Iterator[Cause]:
    """Devices that do not answer; many with one reason are one cause."""
    by_reason: dict[str, list[Finding]] = {}
    for row in case.findings:
        if row.check == "reach" and row.verdict is Verdict.FAIL:
            by_reason.setdefault(row.found, []).append(row)
    for reason, rows in by_reason.items():
        for group in [rows] if len(rows) > _MANY else [[row] for row in rows]:
            names = [row.place for row in group]
            who = f"{names[0]} does" if len(names) == 1 else f"{len(names)} devices do"
            evidence = tuple(f"{name}: {reason}" for name in names)
            yield Cause(
                f"{who} not answer: {reason}", _REACH, group[0].hint, devices=frozenset(names), evidence=evidence
            )


def _strangers(case: Case) -> Iterator[Cause]:
    """Machines that are not who they should be; two that are each other are one cause."""
    serials = {host.serial: name for name, host in case.wanted.hosts.items() if host.serial}
    failing = {row.place: row for row in case.findings if row.check == "identity" and row.verdict is Verdict.FAIL}
    done: set[str] = set()
    for name, row in failing.items():
        identity = case.facts.of(name).identity
        other = serials.get(identity.serial, "") if identity is not None else ""
        if name in done:
            continue
        if other in failing:
            done.add(other)
            hint = f"let {name} and {other} change places, or bind each to the other's slot with supernode assign"
            what = f"{name} and {other} stand in each other's slot"
            yield Cause(
                what, _IDENTITY, hint, devices=frozenset((name, other)), checks=frozenset(("identity", "image"))
            )
        else:
            what = f"another machine than {name} stands in {case.wanted.hosts[name].slot}"
            yield Cause(what, _IDENTITY, row.hint, devices=frozenset((name,)), checks=frozenset(("identity", "image")))


def _miscabled(case: Case) -> Iterator[Cause]:
    for group in recable.find(case.wanted, case.seen):
        ends = frozenset(end for cable in group.cables for end in (cable.a, cable.b))
        moved = frozenset(partner for _, partner in group.observed if partner is not None)
        evidence = [f"{c.id} is designed to join {text(c.a)} and {text(c.b)}" for c in group.cables]
        by = "the subnet" if case.wanted.subnet is not None else "LLDP"
        evidence += [f"{by}: {text(end)} is joined to {text(partner)}" for end, partner in group.observed if partner]
        hint = "; then ".join(map(str, group.steps))
        hint += f" ({by} cannot tell it from this, which cures it as well: {group.also})" if group.also else ""
        yield Cause(
            group.what, _CABLING, hint, tuple(c.id for c in group.cables), ends | moved, evidence=tuple(evidence)
        )


def _missing(case: Case) -> Iterator[Cause]:
    """Cables that were seen not to carry between devices that answer; a device that lost them all is one cause."""
    lost = [
        cable
        for cable in case.wanted.cables().values()
        if cabling.gone(cable, case.seen) and case.facts.of(cable.a[0]).reached and case.facts.of(cable.b[0]).reached
    ]
    for device, cables in _all_of_a_device(case.wanted, lost).items():
        ids = tuple(cable.id for cable in cables)
        ends = frozenset(end for cable in cables for end in (cable.a, cable.b))
        yield Cause(f"no cable of {device} carries a link ({len(ids)} of {len(ids)})", _CABLING, _PLUG, ids, ends)
        lost = [cable for cable in lost if cable not in cables]
    for cable in lost:
        what = f"cable {cable.id} between {text(cable.a)} and {text(cable.b)} is missing, unplugged or broken"
        yield Cause(what, _CABLING, _PLUG, (cable.id,), frozenset((cable.a, cable.b)))


_PLUG = "see that both plugs sit and the port is on; else replace the cable"


def _all_of_a_device(wanted: Wanted, lost: list[Cable]) -> dict[str, list[Cable]]:
    """Return those devices, if any, whose every cable is among the lost."""
    found = {}
    for name in wanted.devices():
        mine = [cable for cable in wanted.cables().values() if name in (cable.a[0], cable.b[0])]
        if len(mine) >= _MANY and all(cable in lost for cable in mine):
            found[name] = mine
    return found


def _silent(case: Case) -> Iterator[Cause]:
    for name in case.wanted.devices():
        why = case.facts.of(name).unseen.get("neighbours")
        if why:
            what = f"LLDP on {name} does not answer: {why}"
            yield Cause(what, _CABLING, "systemctl status lldpd", devices=frozenset((name,)), checks=_CABLING)


def _unwalked(case: Case) -> Iterator[Cause]:
    """Yield the one cause where no manager's host saw the subnet: nothing is known of any cable."""
    if case.wanted.subnet is None or subnet.walker(case.wanted, case.facts):
        return
    seen = {name: case.facts.of(name) for name in case.wanted.subnet.managers}
    why = tuple(f"{name}: {row.unseen.get('subnet') or row.why or 'not seen'}" for name, row in seen.items())
    what = "no subnet manager's host saw the subnet, so nothing is known of its cables"
    checks = frozenset(("cabling", "ib-links"))
    yield Cause(what, checks, subnet.HINT, devices=frozenset(case.wanted.devices()), evidence=why, checks=checks)


def _misconfigured(case: Case) -> Iterator[Cause]:
    """Ports that are wrong in themselves (down, absent, another MTU or address); one fault at many is one cause.

    A port without carrier is not among them: its cable or the device at its other end is the cause.
    """
    by_fault: dict[str, list[Finding]] = {}
    for row in case.findings:
        if row.check in ("rails", "ports") and row.verdict is Verdict.FAIL:
            faults = [line for line in row.evidence if not line[:1].isdigit()] or [row.found]
            if faults[0] != _NO_CARRIER:
                by_fault.setdefault(_ADDRESS.sub("its address", faults[0]), []).append(row)
    for fault, rows in by_fault.items():
        if len(rows) > _MANY_PORTS:
            devices = {row.place.partition(":")[0] for row in rows}
            what = f"{len(rows)} ports of {len(devices)} device{'s' * (len(devices) > 1)}: {fault}"
            ends = frozenset(end for row in rows for end in _port_and_far(case.wanted, row))
            hint = "so many at once are no broken ports: were they configured by this design?"
            yield Cause(what, _PORTS, hint, (), ends, evidence=tuple(f"{row.place}: {row.evidence[0]}" for row in rows))
        else:
            for row in rows:
                ends = frozenset(_port_and_far(case.wanted, row))
                what = f"{row.place}: {row.evidence[0] if row.evidence else row.found}"
                yield Cause(what, _PORTS, row.hint, row.cables, ends)


_NO_CARRIER = "no carrier"
_MANY_PORTS = 4
_ADDRESS = re.compile(r"address \S+")


def _port_and_far(wanted: Wanted, row: Finding) -> Iterator[End]:
    device, _, port = row.place.partition(":")
    yield device, port
    designed = wanted.port((device, port))
    if designed is not None:
        yield designed.peer_device, designed.peer_port


def _unrouted(case: Case) -> Iterator[Cause]:
    """Switches whose kernel holds none of the designed routes: nobody configured them, or no session is up."""
    bare = [
        name
        for name, switch in case.wanted.switches.items()
        if switch.fib and (routes := case.facts.of(name).routes) is not None
        if all(fib.lookup(routes, prefix) is None for prefix in switch.fib)
    ]
    if bare:
        who = bare[0] if len(bare) == 1 else f"{len(bare)} switches"
        what = f"the kernel of {who} holds none of the designed routes"
        hint = "was the fabric configured (pulumi up)? else: vtysh -c 'show bgp summary'"
        yield Cause(
            what, _FIB, hint, devices=frozenset(bare), evidence=tuple(f"{n}: no route" for n in bare), checks=_FIB
        )


def _slow(case: Case) -> Iterator[Cause]:
    cables = case.wanted.cables()
    found = [reason for reason in rate.intersect(case.facts.flows, case.wanted.rate_floor) if reason.suspects]
    measured = [row for row in case.facts.flows if row.rate is not None]
    slow = [row for row in measured if rate.is_slow(row, case.wanted.rate_floor)]
    if len(slow) == len(measured) > _MANY:
        what = f"all {len(slow)} flows are slow: look for a limit that they share before any cable"
        ends = frozenset(
            end for row in slow for cable, _ in row.flow.cables for end in (cables[cable].a, cables[cable].b)
        )
        yield Cause(
            what, _RATE, "a busy measuring machine, a wrong declared rate, or a shaper", ends=ends, checks=_RATE
        )
        return
    sure = {cable: reason for reason in found if reason.sure for cable, _ in reason.suspects}
    for device, ids in _slow_devices(case.wanted, set(sure)).items():
        what = f"every cable of {device} is slow ({len(ids)} of {len(ids)}): the device, not its cables"
        ends = frozenset(end for cable in ids for end in (cables[cable].a, cables[cable].b))
        yield Cause(what, _RATE, f"look at the load and the ports of {device}", tuple(ids), ends, checks=_RATE)
    yield from (_slow_cables(cables, reason) for reason in _by_cables(found))


def _by_cables(found: list[rate.Slow]) -> Iterator[rate.Slow]:
    """Merge both directions of the same cables into one reason."""
    merged: dict[frozenset[str], rate.Slow] = {}
    for reason in found:
        ids = frozenset(cable for cable, _ in reason.suspects)
        before = merged.get(ids, rate.Slow((), ()))
        merged[ids] = rate.Slow((*before.suspects, *reason.suspects), (*before.flows, *reason.flows))
    yield from merged.values()


_HALF = (
    "half the lanes or a speed step is lost: compare what both ports negotiated (ethtool), reseat both plugs, then "
    "exchange the cable; where the fault does not go with it, it is a port"
)


def _slow_cables(cables: dict[str, Cable], reason: rate.Slow) -> Cause:
    ids = sorted({cable for cable, _ in reason.suspects})
    ways = {way for _, way in reason.suspects}
    speed = rate.shown(min(row.rate for row in reason.flows if row.rate is not None))
    ends = frozenset(end for cable in ids for end in (cables[cable].a, cables[cable].b))
    evidence = tuple(map(rate.line, reason.flows))
    if len(ids) > 1:
        what = f"one of the cables {', '.join(ids)} is slow: {speed}, and no other flow tells them apart"
        return Cause(
            what,
            _RATE,
            "exchange one for a good cable and measure again",
            tuple(ids),
            ends,
            evidence=evidence,
            checks=_RATE,
        )
    cable = cables[ids[0]]
    towards = f" towards {text(cable.b if ways == {'up'} else cable.a)}" if len(ways) == 1 else ""
    half = rate.is_half(reason, cable.rate)
    what = f"cable {cable.id} between {text(cable.a)} and {text(cable.b)} "
    what += f"{'runs at half its rate' if half else 'is slow'}: {speed} of {format_rate(cable.rate)}{towards}"
    hint = _HALF if half else "see the error counters of both ports; clean or replace the cable, or look for a shaper"
    return Cause(what, _RATE, hint, (cable.id,), ends, evidence=evidence, checks=_RATE)


def _slow_devices(wanted: Wanted, slow: set[str]) -> dict[str, list[str]]:
    found = {}
    for name in wanted.devices():
        mine = [cable.id for cable in wanted.cables().values() if name in (cable.a[0], cable.b[0])]
        if len(mine) > _MANY and slow.issuperset(mine):
            found[name] = mine
    return found


Source = Callable[[Case], Iterator[Cause]]


def _lost_gpus(case: Case) -> Iterator[Cause]:
    """Yield hosts without all of their accelerators: to a scheduler one is what it is designed to be, or nothing."""
    for row in case.findings:
        if row.check == "gpus" and row.verdict is Verdict.FAIL:
            what = f"{row.place}: {row.found}"
            checks = frozenset(("gpus", "scheduler"))
            yield Cause(what, frozenset(("gpus",)), row.hint, devices=frozenset((row.place,)), checks=checks)


_SOURCES: tuple[Source, ...] = (
    _cut_off,
    _unreached,
    _unwalked,
    _strangers,
    _miscabled,
    _missing,
    _silent,
    _unrouted,
    _misconfigured,
    _slow,
    _lost_gpus,
)
