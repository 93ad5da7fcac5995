"""Which cables carry what they should.

The port's own report where hardware gives one, else what the flows over the cables say together.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from supernode.records import Finding, Verdict
from supernode.units import MbitPerS, format_rate
from supernode.verify import marks
from supernode.verify.expected import Cable, End, Wanted
from supernode.verify.facts.device import Facts
from supernode.verify.facts.flows import Measured
from supernode.verify.marks import Mark

_HALF = (0.45, 0.515)
Half = tuple[str, str]
"""One direction of a cable: its id, and "up" (from a to b) or "down"."""


@dataclass(frozen=True)
class Slow:
    """Halves that together explain some slow flows; more than one when no other flow tells them apart."""

    suspects: tuple[Half, ...]
    flows: tuple[Measured, ...]

    @property
    def sure(self) -> bool:
        """One cable and no other can be at fault."""
        return len({cable for cable, _ in self.suspects}) == 1


def is_slow(row: Measured, floor: float) -> bool:
    """Tell whether a measured flow stays below the floor's share of its declared rate."""
    return row.rate is not None and row.rate < floor * row.flow.rate


def is_half(reason: Slow, rate: MbitPerS) -> bool:
    """Tell whether every slow flow shows half of a cable's rate, headers off: lost lanes, not a poor contact."""
    return all(row.rate is not None and _HALF[0] * rate <= row.rate <= _HALF[1] * rate for row in reason.flows)


def intersect(flows: Iterable[Measured], floor: float) -> list[Slow]:
    """Explain all slow flows by the fewest cable directions.

    A direction that carried any good flow is innocent. What remains is covered greedily: the direction that explains
    most slow flows first; directions that explain the very same flows stay suspects side by side.
    """
    measured = [row for row in flows if row.rate is not None]
    innocent = {half for row in measured if not is_slow(row, floor) for half in row.flow.cables}
    open_flows = [row for row in measured if is_slow(row, floor)]
    found: list[Slow] = []
    while open_flows:
        by_half: dict[Half, list[Measured]] = {}
        for row in open_flows:
            for half in row.flow.cables:
                if half not in innocent:
                    by_half.setdefault(half, []).append(row)
        if not by_half:  # every direction of these flows carried another flow well: the flow was slow, no cable
            found.append(Slow((), tuple(open_flows)))
            break
        most = max(len(rows) for rows in by_half.values())
        explained = next(rows for rows in by_half.values() if len(rows) == most)
        suspects = tuple(half for half, rows in by_half.items() if rows == explained)
        found.append(Slow(suspects, tuple(explained)))
        open_flows = [row for row in open_flows if row not in explained]
    return found


def gate(wanted: Wanted, facts: Facts) -> list[Finding]:
    """Judge every cable's rate against the mark, the cohort's median and the error counters of its ports."""
    slow: dict[str, list[Slow]] = {}
    for row in intersect(facts.flows, wanted.rate_floor):
        for cable in {cable for cable, _ in row.suspects}:
            slow.setdefault(cable, []).append(row)
    crossing: dict[str, list[Measured]] = {}
    for flow in facts.flows:
        for cable, _ in flow.flow.cables:
            crossing.setdefault(cable, []).append(flow)
    cables = wanted.cables()
    carried = {name: _carried(cables[name], rows) for name, rows in crossing.items() if name in cables}
    medians = marks.medians({name: rate for name, rate in carried.items() if rate is not None}, cables)
    return [
        _counted(
            cable,
            facts,
            _hardware(cable, facts)
            or _flows(cable, slow.get(cable.id, []), crossing.get(cable.id, []), wanted.mark, medians),
        )
        for cable in cables.values()
    ]


def _hardware(cable: Cable, facts: Facts) -> Finding | None:
    """Judge by what the ports negotiated; None when neither end is hardware that knows its speed."""
    speeds = {end: speed for end in (cable.a, cable.b) if (speed := _speed(end, facts)) is not None}
    if not speeds:
        return None
    want, least = f"at least {format_rate(cable.rate)}", min(speeds.values())
    lines = tuple(f"{end[0]}:{end[1]} reports {format_rate(speed)}" for end, speed in speeds.items())
    if least < cable.rate:
        return Finding("rate", cable.id, Verdict.FAIL, want, format_rate(least), cables=(cable.id,), evidence=lines)
    return Finding("rate", cable.id, Verdict.PASS, want, format_rate(least), evidence=lines)


def _speed(end: End, facts: Facts) -> MbitPerS | None:
    port = (facts.of(end[0]).ports or {}).get(end[1])
    return port.speed if port is not None and port.hardware else None


def _flows(
    cable: Cable, slow: list[Slow], flows: list[Measured], mark: Mark, medians: Mapping[str, MbitPerS]
) -> Finding:
    want = f"at least {shown(mark.share * cable.rate)} each way ({mark.source})"
    median = medians.get(marks.cohort(cable))
    beside = (f"the median of its cohort ({marks.cohort(cable)}): {shown(median)}",) if median is not None else ()
    if slow:
        rows = [flow for reason in slow for flow in reason.flows]
        least = min(row.rate for row in rows if row.rate is not None)
        evidence, verdict = (*map(line, rows), *beside), mark.below(least, cable.rate)
        return Finding("rate", cable.id, verdict, want, shown(least), cables=(cable.id,), evidence=evidence)
    carried = _carried(cable, flows)
    if carried is None:
        lines = tuple(dict.fromkeys(line(row) for row in flows if row.rate is None))
        return Finding(
            "rate", cable.id, Verdict.UNKNOWN, want, "not measured", evidence=lines or ("no flow crossed it",)
        )
    if median is not None and carried < marks.BESIDE * median:
        evidence = (*beside, f"it carries less than {marks.BESIDE:.0%} of that")
        return Finding("rate", cable.id, Verdict.ADVICE, want, shown(carried), cables=(cable.id,), evidence=evidence)
    return Finding("rate", cable.id, Verdict.PASS, want, shown(carried))


def _counted(cable: Cable, facts: Facts, row: Finding) -> Finding:
    """Hold a finding against the error counters of both ports: which of them hears what the other does not send well.

    Drops are no errors: a port drops what nobody asked for.
    """
    counted = tuple(
        f"{device}:{port} counted {count} {what} since it started"
        for device, port in (cable.a, cable.b)
        for what, count in _errors(facts, device, port).items()
    )
    if row.verdict is Verdict.PASS and counted:
        found = f"{row.found}, with errors at its ports"
        hint = "clean or reseat the plug at the port that counts receive errors, or the one at the other end"
        return dataclasses.replace(
            row, verdict=Verdict.ADVICE, found=found, cables=(cable.id,), evidence=(*row.evidence, *counted), hint=hint
        )
    if row.verdict in (Verdict.FAIL, Verdict.ADVICE):
        return dataclasses.replace(row, evidence=(*row.evidence, *(counted or ("no port of it counted an error",))))
    return row


def _errors(facts: Facts, device: str, port: str) -> Mapping[str, int]:
    seen = (facts.of(device).ports or {}).get(port)
    return {what: n for what, n in seen.errors.items() if what.endswith("errors")} if seen is not None else {}


def _carried(cable: Cable, flows: list[Measured]) -> MbitPerS | None:
    """Return what a cable carried the slower way; None where a way was not measured."""
    best = _best(cable, flows)
    rates = [best.get(way) for way in ("up", "down")]
    return MbitPerS(min(rate for rate in rates if rate is not None)) if None not in rates else None


def _best(cable: Cable, flows: list[Measured]) -> Mapping[str, float | None]:
    """Return the fastest flow each way: one good flow shows that the cable can."""
    best: dict[str, float | None] = {}
    for row in flows:
        for crossed, way in row.flow.cables:
            if crossed == cable.id and row.rate is not None:
                best[way] = max(best.get(way) or 0.0, row.rate)
    return best


def shown(rate: float) -> str:
    """Write a measured rate: three digits are all that a few windows can say."""
    return format_rate(MbitPerS(float(f"{rate:.3g}")))


def line(row: Measured) -> str:
    """Write a flow for a person."""
    found = shown(row.rate) if row.rate else "0" if row.rate is not None else f"not measured: {row.why}"
    return f"{row.flow.key} {found} of {format_rate(row.flow.rate)}"
