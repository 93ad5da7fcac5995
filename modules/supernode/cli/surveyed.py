"""What a survey came to, as JSON and as tables."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from supernode.report import json as run_json
from supernode.report import problems

if TYPE_CHECKING:
    from supernode.bringup.survey.observed import ControllerSeen
    from supernode.bringup.survey.operations import Operation
    from supernode.bringup.survey.run import Survey

_STYLES = {"yes": "green", "no": "red", "unknown": "yellow", "fail": "bold red"}
_TABLES = 3  # of operations; of more controllers only what differs


def document(found: Survey) -> dict[str, Any]:
    """Return everything as a JSON document."""
    concluded = found.conclusion
    return {
        "environment": concluded.proposal.name,
        "design": concluded.design.digest if concluded.design else None,
        "differs": None if found.differs is None else list(found.differs),
        "requests": found.counts,
        "looks": found.looks,
        "controllers": [_controller(seen, rows) for seen, rows in found.controllers],
        "documents": concluded.documents(),
        "sources": [dataclasses.asdict(row) for row in concluded.proposal.sources],
        "lacking": list(concluded.proposal.lacking),
        "notes": list(concluded.notes),
        "findings": [run_json.finding_to_json(row) for row in found.findings],
    }


def _controller(seen: ControllerSeen, rows: tuple[Operation, ...]) -> dict[str, Any]:
    own = dataclasses.asdict(seen)
    own.pop("placement")
    return {**own, "slot": seen.placement.slot, "operations": [dataclasses.asdict(row) for row in rows]}


def text(found: Survey, *, proposed: bool) -> RenderableType:
    """Return it for a person; what of the proposal was not observed only where one was asked for."""
    parts: list[RenderableType] = []
    for seen, rows in found.controllers[:_TABLES] if found.differs is None else ():
        parts += [_operations(seen, rows), Text("")]
    if found.differs is None and len(found.controllers) > _TABLES:
        parts += [Text(f"and {len(found.controllers) - _TABLES} controllers more: --json has them all"), Text("")]
    parts += [_sources(found), Text("")] if proposed else []
    parts += [_problems(found), Text(""), Text(_summary(found, proposed=proposed))]
    return Group(*parts)


def _operations(seen: ControllerSeen, rows: tuple[Operation, ...]) -> RenderableType:
    name = " ".join(filter(None, (seen.address, seen.vendor, seen.model, seen.placement.slot)))
    if seen.why:
        return Text(f"{name}: {seen.why}", style="red")
    title = Text(name, style="table.title")  # no markup: the controller wrote it
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="dim")
    for column in ("operation", "supported", "how"):
        table.add_column(column)
    table.add_row("certificate", "", f"SHA-256 {seen.fingerprint}")
    for key, value in seen.identity.items():
        table.add_row(key, "", Text(value))
    for row in rows:
        table.add_row(row.name, Text(row.supported, style=_STYLES[row.supported]), Text(row.how))
    return table


def _sources(found: Survey) -> RenderableType:
    rows = [row for row in found.conclusion.proposal.sources if row.origin != "observed"]
    table = Table(title="not observed", title_justify="left", box=None, pad_edge=False, header_style="dim")
    for column in ("what", "taken from", "why"):
        table.add_column(column)
    for row in rows:
        origin = {"nobody": "nobody: fill it in"}.get(row.origin, row.origin)
        table.add_row(row.path, Text(origin, style="red" if row.origin == "nobody" else ""), Text(row.how))
    for note in found.conclusion.notes:
        table.add_row("machines", "", Text(note))
    return table


def _problems(found: Survey) -> RenderableType:
    rows = problems.group(found.findings)
    if not rows:
        return Text("nothing is wrong", style="green")
    table = Table(title="what is wrong", title_justify="left", box=None, pad_edge=False, header_style="dim")
    for column in ("", "cause", "evidence"):
        table.add_column(column)
    for row in rows:
        more = f" (+{len(row.follows)} that follow)" if row.follows else ""
        told = "\n".join((*row.head.evidence, *((f"hint: {row.head.hint}",) if row.head.hint else ())))
        style = _STYLES.get(row.verdict.value, "")
        table.add_row(Text(row.verdict.value, style=style), Text(row.cause + more), Text(told))
    return table


def _summary(found: Survey, *, proposed: bool) -> str:
    concluded = found.conclusion
    observed = sum(row.origin == "observed" for row in concluded.proposal.sources)
    counts = ", ".join(f"{count} {method}" for method, count in found.counts.items()) or "nothing"
    values = f"; {observed} values observed, {len(concluded.proposal.sources) - observed} not"
    lines = [f"sent: {counts}{values if proposed else ''}"]
    if found.differs is not None:
        same = "the design of the proposal is the environment's own"
        lines.append(f"its design differs in {', '.join(found.differs[:5])}" if found.differs else same)
    elif proposed and concluded.proposal.lacking:
        lines.append(f"the proposal is not whole: fill in {', '.join(concluded.proposal.lacking)}")
    return "\n".join(lines)
