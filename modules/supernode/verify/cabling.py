"""Which cable joins what, by LLDP from both ends, and the gate that compares it with the design."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from supernode.records import Finding, Verdict
from supernode.verify.expected import Cable, End, Wanted
from supernode.verify.facts.device import Facts
from supernode.verify.facts.lldp import Neighbour


@dataclass(frozen=True)
class Observed:
    """What is known of one end.

    Attributes:
        asked: the device's LLDP neighbours were read.
        partner: the end it hears, or that hears it; None when neither.
        foreign: what it hears, when the design has no such port.
        carrier: False when the port shows that nobody is at the other end; None when that was not seen.
        by: "self" when the end heard its partner, "partner" when only the partner heard it.
    """

    asked: bool
    partner: End | None = None
    foreign: str = ""
    carrier: bool | None = None
    by: str = ""


def observe(wanted: Wanted, facts: Facts) -> dict[End, Observed]:
    """Return what is known of every designed end, and of undesigned ports of our devices that hear a designed one."""
    ends = {end: None for cable in wanted.cables().values() for end in (cable.a, cable.b)}
    for name in wanted.devices():
        ends.update(
            {(name, port): None for port in facts.of(name).neighbours or {} if _ours(wanted, facts, name, port)}
        )
    direct = {end: _end(wanted, facts, end) for end in ends}
    heard = {seen.partner: end for end, seen in direct.items() if seen.partner is not None}
    return {end: _with_partner(seen, heard.get(end), direct) for end, seen in direct.items()}


def _ours(wanted: Wanted, facts: Facts, name: str, port: str) -> bool:
    """Tell whether an undesigned port hears a designed end; the management network's neighbours do not count."""
    rows = (facts.of(name).neighbours or {}).get(port, ())
    return any(_designed_end(wanted, row) is not None for row in rows)


def _end(wanted: Wanted, facts: Facts, end: End) -> Observed:
    device, port = end
    seen = facts.of(device)
    found = (seen.ports or {}).get(port)
    carrier = None if seen.ports is None else bool(found is not None and found.up and found.carrier is not False)
    if seen.neighbours is None:
        return Observed(False, carrier=carrier)
    row = freshest(seen.neighbours.get(port, ()))
    if row is None or carrier is False:
        return Observed(True, carrier=carrier)
    partner = _designed_end(wanted, row) or _own_port(wanted, facts, row)
    return Observed(True, partner, "" if partner else row.text, carrier, "self")


def freshest(rows: tuple[Neighbour, ...]) -> Neighbour | None:
    """Return the neighbour that was first heard last, of those with a name.

    After a plug has moved, the former neighbour lingers until its time to live ends; a network card's own agent
    announces no name.
    """
    named = [row for row in rows if row.device] or list(rows)
    return min(named, key=lambda row: _seconds(row.age), default=None)


def _seconds(age: str) -> float:
    """Read lldpd's age, "0 day, 00:01:04"."""
    days, _, clock = age.partition(" day, ")
    parts = clock.split(":")
    if not days.isdigit() or not all(part.isdigit() for part in parts):
        return 0.0
    hours, minutes, seconds = (int(part) for part in parts)
    return float(int(days) * 86400 + hours * 3600 + minutes * 60 + seconds)


def _designed_end(wanted: Wanted, row: Neighbour) -> End | None:
    return next(((row.device, port) for port in row.ports if wanted.port((row.device, port)) is not None), None)


def _own_port(wanted: Wanted, facts: Facts, row: Neighbour) -> End | None:
    """Return the end, when it is a port of one of our devices that the design leaves free."""
    known = row.device in wanted.hosts or row.device in wanted.switches
    seen = facts.of(row.device).ports or {}
    return next(((row.device, port) for port in row.ports if port in seen), None) if known else None


def _with_partner(seen: Observed, heard_by: End | None, direct: Mapping[End, Observed]) -> Observed:
    """Fill in from the other end what this one did not hear itself, unless its port is without carrier."""
    if seen.partner is not None or seen.foreign or heard_by is None or seen.carrier is False:
        return seen
    return Observed(seen.asked, heard_by, "", seen.carrier, "partner") if heard_by in direct else seen


def gate(wanted: Wanted, facts: Facts) -> list[Finding]:
    """Judge every cable from both its ends: PASS only when each heard the other."""
    seen = observe(wanted, facts)
    return [_cable(cable, seen, facts) for cable in wanted.cables().values()]


def _cable(cable: Cable, seen: Mapping[End, Observed], facts: Facts) -> Finding:
    a, b = seen[cable.a], seen[cable.b]
    want = f"{text(cable.a)} - {text(cable.b)}"
    evidence = (_line(cable.a, a), _line(cable.b, b))
    if wrong(cable, seen):
        found = "; ".join(_line(end, row) for end, row in ((cable.a, a), (cable.b, b)) if row.partner or row.foreign)
        return Finding("cabling", cable.id, Verdict.FAIL, want, found, cables=(cable.id,), evidence=evidence)
    if (a.by, a.partner, b.by, b.partner) == ("self", cable.b, "self", cable.a):
        return Finding("cabling", cable.id, Verdict.PASS, want, "each end hears the other")
    if gone(cable, seen):
        return Finding("cabling", cable.id, Verdict.FAIL, want, "no link", cables=(cable.id,), evidence=evidence)
    if a.by == b.by == "self":
        hint = "look again when the former neighbour has aged out (LLDP's time to live, 120 s unless set)"
        found = "the ends contradict each other: what one of them hears is stale"
        return Finding("cabling", cable.id, Verdict.UNKNOWN, want, found, evidence=evidence, hint=hint)
    silent = [end for end, row in ((cable.a, a), (cable.b, b)) if row.by != "self"]
    why = [reason for end in silent if (reason := _why(end, facts))]
    found = f"{' and '.join(map(text, silent))} heard nobody"
    return Finding("cabling", cable.id, Verdict.UNKNOWN, want, found, evidence=(*evidence, *why))


def _why(end: End, facts: Facts) -> str:
    row = facts.of(end[0])
    return row.why if not row.reached else row.unseen.get("neighbours", "")


def wrong(cable: Cable, seen: Mapping[End, Observed]) -> bool:
    """Tell whether either end is joined to something else than designed, and that other end does not deny it."""
    return any(_misjoined(end, far, seen) for end, far in ((cable.a, cable.b), (cable.b, cable.a)))


def _misjoined(end: End, far: End, seen: Mapping[End, Observed]) -> bool:
    row = seen[end]
    if row.foreign:
        return True
    if row.partner is None or row.partner == far:
        return False
    other = seen.get(row.partner)
    return other is None or other.by != "self" or other.partner == end


def gone(cable: Cable, seen: Mapping[End, Observed]) -> bool:
    """Tell whether a cable was seen not to carry: both ports were read, one has no carrier, and neither hears anybody.

    Where a device was not reached its port may only be without power: that is unknown.
    """
    a, b = seen[cable.a], seen[cable.b]
    silent = all(row.partner is None and not row.foreign for row in (a, b))
    return silent and None not in (a.carrier, b.carrier) and False in (a.carrier, b.carrier)


def text(end: End) -> str:
    """Write an end as `device:port`."""
    return f"{end[0]}:{end[1]}"


def _line(end: End, row: Observed) -> str:
    if row.partner is not None:
        return f"{text(end)} {'hears' if row.by == 'self' else 'is heard by'} {text(row.partner)}"
    if row.foreign:
        return f"{text(end)} hears {row.foreign}, which the design does not know"
    if row.carrier is False:
        return f"{text(end)} has no carrier"
    return f"{text(end)} {'hears nobody' if row.asked else 'was not seen'}"
