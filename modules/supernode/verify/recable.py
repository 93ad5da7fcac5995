"""From what LLDP saw to what a technician does: which plugs changed places, and in which order to put them right. Pure.

Designed cables and observed links form alternating paths and cycles over the ends. A cycle over two cables is an
exchange, a longer one a rotation; a path is a shift, or one plug in a wrong port. Whatever it is, fixing one cable at a
time at its far end is a sequence of exchanges (two plugs in hand) and moves (into an empty port), each of which puts
one cable right.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from supernode.verify import cabling
from supernode.verify.cabling import Observed, text
from supernode.verify.expected import Cable, End, Wanted

Sides = Callable[[Cable], tuple[End, End]]
"""Which end of a cable stays, and which is put right."""


@dataclass(frozen=True)
class Step:
    """One thing to do: exchange the plugs in two ports, move one, or plug in one that was not seen (source None)."""

    kind: str
    source: End | None
    target: End

    def __str__(self) -> str:
        if self.kind == "exchange" and self.source is not None:
            return f"exchange the two plugs at {text(self.source)} and {text(self.target)}"
        if self.source is not None:
            return f"move the plug from {text(self.source)} to {text(self.target)}"
        return f"plug the cable into {text(self.target)}"


@dataclass(frozen=True)
class Miscabling:
    """One group of cables that stand in each other's places.

    Attributes:
        what: the cause in one sentence.
        steps: what to do, in order.
        also: another place at which the same exchange would look the same, or "".
    """

    what: str
    cables: tuple[Cable, ...]
    steps: tuple[Step, ...]
    also: str = ""
    observed: tuple[tuple[End, End | None], ...] = ()


def find(wanted: Wanted, seen: Mapping[End, Observed]) -> list[Miscabling]:
    """Return every group of wrongly joined cables, whole exchanged devices as one."""
    cables = wanted.cables()
    links = _links(seen)
    by_end = {end: cable for cable in cables.values() for end in (cable.a, cable.b)}
    todo = [cable for cable in cables.values() if cabling.wrong(cable, seen)]
    groups: list[list[Cable]] = []
    done: set[str] = set()
    for cable in todo:
        if cable.id not in done:
            groups.append(_component(cable, links, by_end))
            done.update(member.id for member in groups[-1])
    found = [_miscabling(group, links, seen) for group in groups]
    return _whole_devices(wanted, found)


def _links(seen: Mapping[End, Observed]) -> dict[End, End]:
    """Return who is joined to whom, both ways; what an end hears itself outweighs what others say of it."""
    links = {end: row.partner for end, row in seen.items() if row.partner is not None}
    for end, partner in list(links.items()):
        links.setdefault(partner, end)
    return {end: partner for end, partner in links.items() if links[partner] == end}


def _component(start: Cable, links: Mapping[End, End], by_end: Mapping[End, Cable]) -> list[Cable]:
    found, queue = {start.id: start}, [start]
    while queue:
        cable = queue.pop()
        for end in (cable.a, cable.b):
            other = by_end.get(links[end]) if end in links else None
            if other is not None and other.id not in found:
                found[other.id] = other
                queue.append(other)
    return [found[key] for key in sorted(found)]


def _miscabling(group: list[Cable], links: Mapping[End, End], seen: Mapping[End, Observed]) -> Miscabling:
    far = _plan(group, links, _far_side)
    near = _plan(group, links, _near_side)
    steps, also = (near, far) if _handier(near, far, group) else (far, near)
    what = _describe(group, links, steps, seen)
    other = str(also[0]) if len(also) == 1 == len(steps) and also[0].kind == steps[0].kind == "exchange" else ""
    ends = tuple((end, links.get(end)) for cable in group for end in (cable.a, cable.b))
    return Miscabling(what, tuple(group), tuple(steps), other, ends)


def _far_side(cable: Cable) -> tuple[End, End]:
    return cable.a, cable.b


def _near_side(cable: Cable) -> tuple[End, End]:
    return cable.b, cable.a


def _handier(near: list[Step], far: list[Step], group: list[Cable]) -> bool:
    """Prefer the switch's side of rail cables, where no host is pulled; between switches, the ports of one device."""
    if any(cable.kind == "rail" for cable in group):
        return False
    return _devices(near) < _devices(far)


def _devices(steps: Iterable[Step]) -> int:
    return len({end[0] for step in steps for end in (step.source, step.target) if end is not None})


def _plan(group: list[Cable], links: Mapping[End, End], sides: Sides) -> list[Step]:
    now = dict(links)
    pairs = [sides(cable) for cable in group]
    steps: list[Step] = []
    for keep, want in pairs:
        if keep in now and now[keep] != want:
            steps.append(_fix(now, keep, want))
    steps += [Step("plug", None, want) for keep, want in pairs if keep not in now and now.get(want) is None]
    return steps


def _fix(now: dict[End, End], keep: End, want: End) -> Step:
    """Put one cable right, whose plug is in `keep` and whose other plug is where it must not be; keep `now` true."""
    lies, guest = now[keep], now.get(want)
    now[keep], now[want] = want, keep
    if guest is None:
        del now[lies]
        return Step("move", lies, want)
    now[lies], now[guest] = guest, lies
    return Step("exchange", lies, want)


def _describe(group: list[Cable], links: Mapping[End, End], steps: list[Step], seen: Mapping[End, Observed]) -> str:
    names = ", ".join(cable.id for cable in group)
    if len(group) == 2 and len(steps) == 1 and steps[0].kind == "exchange":
        source, target = sorted((steps[0].source or steps[0].target, steps[0].target))
        one, two = (f"{cable.id} (from {text(_other(cable, (source, target)))})" for cable in group)
        return f"cables {one} and {two} are exchanged at {text(source)} and {text(target)}"
    if len(group) == 1:
        return _lone(group[0], links, seen)
    return _shift(group, links) or f"cables {names} are plugged in each other's places"


def _other(cable: Cable, ends: tuple[End, End]) -> End:
    """Return the end of a cable that is not one of those."""
    return cable.a if cable.b in ends else cable.b


def _lone(cable: Cable, links: Mapping[End, End], seen: Mapping[End, Observed]) -> str:
    for end, far in ((cable.a, cable.b), (cable.b, cable.a)):
        if end in links and links[end] != far:
            return f"cable {cable.id} is plugged into {text(links[end])} instead of {text(far)}"
        if seen[end].foreign:
            return f"at {text(end)} is {seen[end].foreign} instead of cable {cable.id} from {text(far)}"
    return f"the ends of cable {cable.id} disagree about each other"


def _shift(group: list[Cable], links: Mapping[End, End]) -> str:
    """Recognise a block that is off by the same number: ports on one leaf, or the rails of one host."""
    moved = [(cable, links[cable.a]) for cable in group if cable.a in links]
    names = f"cables {group[0].id} to {group[-1].id}"
    leaves = {cable.b[0] for cable, _ in moved} | {end[0] for _, end in moved}
    offsets = {_number(end[1]) - _number(cable.b[1]) for cable, end in moved}
    if len(leaves) == len(offsets) == 1 and len(moved) > 1 and offsets != {0}:
        by = offsets.pop()
        far = f"{abs(by)} port{'s' * (abs(by) != 1)} too {'far' if by > 0 else 'near'}"
        return f"{len(moved)} cables ({names}) are plugged {far} on {leaves.pop()}"
    hosts = {cable.a[0] for cable, _ in moved}
    by_leaf_port = {cable.b: _number(cable.a[1]) for cable in group}
    if len(hosts) == 1 and len(moved) == len(group) and all(end in by_leaf_port for _, end in moved):
        turns = {(by_leaf_port[end] - _number(cable.a[1])) % len(group) for cable, end in moved}
        if len(turns) == 1:
            return f"the {len(group)} rail cables of {hosts.pop()} ({names}) are shifted by {turns.pop()} rail(s)"
    return ""


def _number(port: str) -> int:
    digits = re.findall(r"\d+", port)
    return int(digits[-1]) if digits else 0


def _whole_devices(wanted: Wanted, found: list[Miscabling]) -> list[Miscabling]:
    """Merge exchanges that together are two devices exchanged: all rails of two hosts, or all of two leaves."""
    pairs: dict[frozenset[str], list[Miscabling]] = {}
    for row in found:
        devices = _exchanged_devices(row)
        if devices:
            pairs.setdefault(devices, []).append(row)
    merged: list[Miscabling] = []
    for devices, rows in pairs.items():
        if len(rows) > 1 and all(len(rows) == _rail_ports(wanted, name) for name in devices):
            merged.append(_merge(sorted(devices), rows))
    gone = {id(row) for rows in pairs.values() for row in rows if any(row.cables[0] in m.cables for m in merged)}
    return [*merged, *(row for row in found if id(row) not in gone)]


def _exchanged_devices(row: Miscabling) -> frozenset[str]:
    if len(row.cables) != 2 or len(row.steps) != 1:
        return frozenset()
    one, two = row.cables
    if one.b[0] == two.b[0] and one.a[0] != two.a[0]:
        return frozenset((one.a[0], two.a[0]))
    if one.a[0] == two.a[0] and one.b[0] != two.b[0]:
        return frozenset((one.b[0], two.b[0]))
    return frozenset()


def _rail_ports(wanted: Wanted, name: str) -> int:
    rows = wanted.hosts[name].ports if name in wanted.hosts else wanted.switches[name].ports
    return sum(row.kind == "rail" for row in rows.values())


def _merge(devices: list[str], rows: list[Miscabling]) -> Miscabling:
    one, two = devices
    what = f"{one} and {two} are exchanged: all {len(rows)} rail cables of each are the other's"
    return Miscabling(
        what,
        tuple(cable for row in rows for cable in row.cables),
        tuple(step for row in rows for step in row.steps),
        f"let {one} and {two} change places, if they stand in each other's slot or bear each other's name",
        tuple(pair for row in rows for pair in row.observed),
    )
