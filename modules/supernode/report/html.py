"""report.html: one file that needs nothing else, to be read by whoever gets it forwarded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources

import jinja2
from markupsafe import Markup

from supernode import catalog
from supernode.design import Design
from supernode.design.rows import Host, Switch
from supernode.records import Finding, Run, StageRecord, State, Verdict
from supernode.report import clock, picture, timeline
from supernode.report.problems import group


@dataclass(frozen=True)
class Proof:
    """How many checks are proven (a recorded sample, or the tool itself) and how many only modelled."""

    proven: int
    modelled: int


@dataclass(frozen=True)
class Budget:
    """One stage's bar: shares of its budget, in percent."""

    name: str
    took: str
    allowed: str
    share: float
    over: bool
    outcome: str
    width: float


@dataclass(frozen=True)
class Machine:
    """One row of the table of machines."""

    name: str
    role: str
    slot: str
    kind: str
    address: str
    serial: str
    last: str
    verdict: str


def render(run: Run, design: Design | None, proof: Proof | None = None) -> str:
    """Write the page.

    Args:
        run: the record.
        design: what was brought up; None when it can no longer be computed: then no picture and no table of machines.
        proof: the numbers of `verify.checks.proof()`.
    """
    drawn = picture.draw(design, run.findings) if design is not None else None
    used, allowed = clock.used(run), clock.budget(run)
    return _template().render(
        run=run,
        style=Markup(_data("style.css")),  # noqa: S704 - our own file
        verdict=clock.verdict(run),
        problems=group(run.findings),
        used=clock.span(used) if used is not None else None,
        allowed=clock.span(allowed),
        left=clock.span(allowed - used) if used is not None else None,
        started=clock.moment(run.started),
        stages=_budgets(clock.budgeted(run), allowed),
        beside=[(stage.name, clock.span(_took(stage)), stage.outcome) for stage in clock.beside(run)],
        fabric=Markup(drawn.svg) if drawn else None,  # noqa: S704 - escaped where it is made
        cables=_legend(drawn.counts) if drawn else [],
        left_out=drawn.left_out if drawn else 0,
        timeline=Markup(timeline.draw(run)),  # noqa: S704 - escaped where it is made
        checks=_checks(run.findings),
        machines=list(_machines(run, design)) if design is not None else [],
        gpus=_scale(design) if design is not None else "",
        proof=proof,
    )


def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(_data("page.html.j2"))


def _data(name: str) -> str:
    return resources.files("supernode.report").joinpath(name).read_text(encoding="utf-8")


def _took(stage: StageRecord) -> float:
    return (stage.ended if stage.ended is not None else stage.started) - stage.started


def _budgets(stages: list[StageRecord], allowed: float) -> list[Budget]:
    return [
        Budget(
            stage.name,
            clock.span(_took(stage)),
            clock.span(stage.budget_s),
            min(100 * _took(stage) / stage.budget_s, 100),
            _took(stage) > stage.budget_s,
            stage.outcome,
            100 * stage.budget_s / allowed,
        )
        for stage in stages
    ]


_CABLES = ("ok", "slow", "swapped", "missing", "fault", "unknown", "unchecked", "shut")
_ALWAYS = ("ok", "slow", "swapped", "missing")


def _legend(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return [(state, counts.get(state, 0)) for state in _CABLES if counts.get(state) or state in _ALWAYS]


def _checks(findings: Iterable[Finding]) -> list[tuple[str, list[tuple[str, int]]]]:
    rows: dict[str, dict[str, int]] = {}
    for row in findings:
        counts = rows.setdefault(row.check, {verdict.value: 0 for verdict in Verdict})
        counts[row.verdict.value] += 1
    return [(check, list(counts.items())) for check, counts in rows.items()]


def _machines(run: Run, design: Design) -> Iterable[Machine]:
    last = {event.host: event for event in sorted(run.events, key=lambda row: row.at) if event.host}
    stand = picture.standings(design, run.findings)
    devices: list[Host | Switch] = [*design.hosts, *design.switches]
    for device in devices:
        event = last.get(device.name)
        serial = device.identity.system_serial
        role = device.state if isinstance(device, Host) else device.tier
        phase = f"{event.stage}: {event.phase}" if event is not None else ""
        bad = event is not None and event.state in (State.FAILED, State.LATE)
        verdict = "fail" if bad else stand.get(device.name, "")
        yield Machine(device.name, role, device.slot, device.kind, str(device.management.ip), serial, phase, verdict)


def _scale(design: Design) -> str:
    active = [host for host in design.hosts if host.state == "active"]
    spares = sum(host.state == "spare" for host in design.hosts)
    gpus = sum(catalog.server(host.kind).gpus for host in active)
    parts = [f"{len(active)} hosts", f"{gpus} GPUs", f"{len(design.switches)} switches", f"{len(design.links)} cables"]
    return ", ".join([*parts, *([f"{spares} spare{'s' * (spares != 1)}"] if spares else [])])
