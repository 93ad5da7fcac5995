"""What a sheet has otherwise than the design: which cable, on which lines, and what to change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from supernode.design import Design
from supernode.units import Milliseconds
from supernode.verify import recable
from supernode.verify.cabling import Observed, text
from supernode.verify.expected import Cable, End, HostWanted, PortWanted, SwitchWanted, Wanted
from supernode.verify.marks import Mark
from supernode.verify.recable import Miscabling
from supernode.verify.sheets.names import Names
from supernode.verify.sheets.rows import Row
from supernode.verify.sheets.table import ColumnMap


@dataclass(frozen=True)
class Difference:
    """One thing that the sheet has otherwise.

    Attributes:
        kind: unknown (a name), twice (a port), swapped, wrong-rail, shifted, misplaced, missing, extra, length.
        lines: of the sheet, from 1; none where the sheet lacks something.
        what: one sentence.
        fix: what to change in the sheet, "" where `what` says it.
        cables: the designed cables concerned.
    """

    kind: str
    lines: tuple[int, ...]
    what: str
    fix: str = ""
    cables: tuple[str, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """The differences in the order of the sheet, what is missing last; and how many cables agree of how many."""

    differences: tuple[Difference, ...]
    agreeing: int
    designed: int
    rows: int


def compare(design: Design, rows: Iterable[Row], wanted: ColumnMap | None = None) -> Comparison:
    """Compare a sheet with a design; which end of a cable the sheet calls A does not matter."""
    listed = list(rows)
    names = Names(design, wanted)
    found: list[Difference] = []
    joined: list[tuple[Row, End, End]] = []
    half: set[End] = set()
    for row in listed:
        ends, unknown = _ends(names, row)
        found += unknown
        if len(ends) == 2:
            joined.append((row, ends[0], ends[1]))
        half.update(ends)
    found += _twice(joined)
    expected = _wanted(design)
    lines = _lines(joined)
    seen = _seen(expected, joined)
    rails = {switch.name: switch.rail for switch in design.switches}
    placed, off = _misplaced(expected, seen, lines, rails)
    found += placed
    cables = expected.cables()
    found += _missing(cables, half, off)
    found += _extra(expected, joined)
    pairs = {frozenset((a, b)): row for row, a, b in joined}
    right = {name: pairs[frozenset((cable.a, cable.b))] for name, cable in cables.items() if _has(pairs, cable)}
    found += _lengths(design, right)
    order = sorted(found, key=lambda row: (not row.lines, row.lines, row.cables))
    return Comparison(tuple(order), len(right), len(cables), len(listed))


def _has(pairs: Mapping[frozenset[End], Row], cable: Cable) -> bool:
    return frozenset((cable.a, cable.b)) in pairs


def _ends(names: Names, row: Row) -> tuple[list[End], list[Difference]]:
    """Return the ends that are known, and what is not."""
    ends: list[End] = []
    unknown: list[Difference] = []
    for device, port in ((row.a_device, row.a_port), (row.b_device, row.b_port)):
        known = names.device(device)
        if known is None:
            what = f"{device!r} is no device of the design" if device else "a device is missing"
            unknown.append(Difference("unknown", row.lines, what, names.near(device) if device else ""))
            continue
        found = names.port(known, port)
        if found is None:
            what = f"{port!r} is no port of {known}" if port else f"the port of {known} is missing"
            unknown.append(Difference("unknown", row.lines, what))
            continue
        ends.append((known, found))
    return ends, unknown


def _lines(joined: Iterable[tuple[Row, End, End]]) -> dict[End, tuple[int, ...]]:
    found: dict[End, tuple[int, ...]] = {}
    for row, a, b in joined:
        for end in (a, b):
            found[end] = tuple(sorted({*found.get(end, ()), *row.lines}))
    return found


def _twice(joined: list[tuple[Row, End, End]]) -> list[Difference]:
    uses = Counter(end for _, a, b in joined for end in (a, b))
    lines = _lines(joined)
    return [
        Difference("twice", lines[end], f"{text(end)} has {count} cables", "a port takes one plug")
        for end, count in uses.items()
        if count > 1
    ]


def _wanted(design: Design) -> Wanted:
    """Return every designed cable, those of quarantined slots too: they are bought and laid all the same."""
    ports: dict[str, dict[str, PortWanted]] = {}
    for link in design.links:
        a, b = (link.a_device, link.a_port), (link.b_device, link.b_port)
        for (device, port), (far, far_port) in ((a, b), (b, a)):
            row = PortWanted(far, far_port, link.mtu, link.rate, link.cable, kind=link.kind)
            ports.setdefault(device, {})[port] = row
    hosts = {host.name: HostWanted(host.slot, "", "", "", ports.get(host.name, {})) for host in design.hosts}
    switches = {row.name: SwitchWanted(ports.get(row.name, {}), {}) for row in design.switches}
    return Wanted(hosts, switches, Milliseconds(0), Mark(1.0, ""))


def _seen(expected: Wanted, joined: list[tuple[Row, End, End]]) -> dict[End, Observed]:
    """Return the sheet as if both ends of each of its cables had been heard; the first row of a port counts."""
    seen = {end: Observed(True) for cable in expected.cables().values() for end in (cable.a, cable.b)}
    for _, a, b in joined:
        if all(end not in seen or seen[end].partner is None for end in (a, b)):
            seen[a], seen[b] = Observed(True, b, by="self"), Observed(True, a, by="self")
    return seen


def _misplaced(
    expected: Wanted,
    seen: Mapping[End, Observed],
    lines: Mapping[End, tuple[int, ...]],
    rails: Mapping[str, int | None],
) -> tuple[list[Difference], set[str]]:
    """Return the cables that stand in each other's places, group by group, and their names."""
    found: list[Difference] = []
    names: set[str] = set()
    for row in recable.find(expected, seen):
        ends = [end for cable in row.cables for end in (cable.a, cable.b)]
        where = sorted({line for end in ends for line in lines.get(end, ())})
        cables = tuple(cable.id for cable in row.cables)
        steps = "; ".join(str(step) for step in row.steps)
        found.append(Difference(_kind(row, seen, rails), tuple(where), row.what, steps, cables))
        names.update(cables)
    return found, names


def _kind(row: Miscabling, seen: Mapping[End, Observed], rails: Mapping[str, int | None]) -> str:
    """Return the sort of a group: what it is about matters more than how many cables it takes."""
    if "port" in row.what and ("too far" in row.what or "too near" in row.what):
        return "shifted"
    ends = [(cable, seen[cable.a].partner) for cable in row.cables if cable.kind == "rail"]
    crossed = any(end is not None and rails.get(end[0]) not in (None, rails[cable.b[0]]) for cable, end in ends)
    if crossed and len({cable.a[0] for cable, _ in ends}) == 1:
        return "wrong-rail"
    return "swapped" if any(step.kind == "exchange" for step in row.steps) else "misplaced"


def _missing(cables: Mapping[str, Cable], named: set[End], off: set[str]) -> list[Difference]:
    """Return the cables neither of whose ends the sheet names: where it names one, that has been said already."""
    return [
        Difference("missing", (), f"cable {name}: no line joins {text(cable.a)} and {text(cable.b)}", "", (name,))
        for name, cable in cables.items()
        if name not in off and cable.a not in named and cable.b not in named
    ]


def _extra(expected: Wanted, joined: list[tuple[Row, End, End]]) -> list[Difference]:
    return [
        Difference("extra", row.lines, f"the design has no cable at {text(a)}, and none at {text(b)}")
        for row, a, b in joined
        if expected.port(a) is None and expected.port(b) is None
    ]


def _lengths(design: Design, right: Mapping[str, Row]) -> list[Difference]:
    found = []
    for link in design.links:
        row = right.get(link.cable)
        if row is None or row.length_m is None or abs(row.length_m - link.length) < 0.005:
            continue
        more = "too short" if row.length_m < link.length else "longer"
        what = f"cable {link.cable} is {row.length_m:g} m in the sheet, {link.length:g} m in the design: {more}"
        found.append(Difference("length", row.lines, what, "", (link.cable,)))
    return found
