"""`supernode plan`: what a run would change, with every file as a diff."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from supernode.cli import inputs
from supernode.cli.output import emit, errors_end_the_process, say

if TYPE_CHECKING:
    from rich.console import RenderableType

    from supernode.bringup.provision import Row
    from supernode.design import Design
    from supernode.plan import Plan
    from supernode.workspace import EnvironmentFolder

SHOWN_STEPS = 60  # more are counted by kind: a screen is for reading, --json for all
_STYLES = {
    "create": "green",
    "update": "yellow",
    "reinstall": "red",
    "replace": "red",
    "refuse": "magenta",
    "fence": "red",
    "delete": "red",
}


def plan(
    environment: Annotated[str, typer.Argument(help="a folder under inventories/, or a path")],
    reinstall: Annotated[
        list[str] | None, typer.Option(help="slot in service that may be installed anew; repeatable")
    ] = None,
    files: Annotated[bool, typer.Option("--files", help="show new files whole, too")] = False,
    live: Annotated[bool, typer.Option("--live", help="also look at every machine and switch, by the engine")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print the plan as JSON")] = False,
) -> None:
    """Compare the design with what the last run left: steps, file diffs, cables to move.

    `supernode bringup` runs exactly the plan whose hash is shown here when it is given that hash. With `--live` the
    engine's own preview follows, over all stacks, after a look at everything that exists; nothing is changed by it.

    Example: supernode plan lab
    """
    from supernode.bringup.planned import load_plan

    folder, locate = inputs.find(environment)
    with errors_end_the_process(locate):
        design = inputs.design(folder)
        found = load_plan(folder, design, tuple(reinstall or ()))
        rows = _preview(folder, design) if live else None
    data = found.to_json() if rows is None else {**found.to_json(), "live": [asdict(row) for row in rows]}
    emit(data, as_json=as_json, text=lambda: _both(as_text(found, files=files), rows))


def _preview(folder: EnvironmentFolder, design: Design) -> list[Row]:
    from supernode.boot import server
    from supernode.bringup import lock, provision

    with lock.occupied(folder, "plan --live", say):
        server.ensure_running(folder)
        return provision.preview(folder, design, lambda event: say(f"{event.host or event.stage}: {event.detail}"))


def _both(planned: RenderableType, rows: list[Row] | None) -> RenderableType:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    if rows is None:
        return planned
    table = Table(title="the engine's preview, all stacks", title_justify="left", box=None, header_style="dim")
    for name in ("op", "resource", "stack", "what"):
        table.add_column(name)
    changing = [row for row in rows if row.op != "same"]
    for row in changing:
        table.add_row(row.op, row.resource, row.stack, row.detail)
    same = Text(f"{len(rows) - len(changing)} of {len(rows)} resources stay as they are")
    return Group(planned, Text(""), table if changing else Text("live: nothing differs"), same)


def as_text(found: Plan, *, files: bool = False) -> RenderableType:
    """Return a plan for a person; new files are counted unless `files`."""
    from rich.console import Group

    return Group(*_parts(found, files=files))


def _parts(found: Plan, *, files: bool) -> Iterator[RenderableType]:
    from rich.text import Text

    from supernode.plan import cost

    if found.empty:
        yield Text(f"{found.environment}: nothing to change")
    else:
        yield from _steps(found)
        yield from _diffs(found, files=files)
        yield from _recabling(found)
    if found.reinstalls:
        yield Text(f"written anew: the disks of {', '.join(found.reinstalls)}", style="red")
    for line in cost.lines(found.costs):
        yield Text(line, style="yellow")
    yield Text(f"plan {found.hash[:12]}  design {found.design[:12]}")


def _steps(found: Plan) -> Iterator[RenderableType]:
    from rich.table import Table
    from rich.text import Text

    counts = Counter(step.kind for step in found.steps)
    yield Text(
        f"{found.environment}: " + (", ".join(f"{n} {kind}" for kind, n in counts.items()) or "no step"), style="bold"
    )
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("step", "device", "stack", "what"):
        table.add_column(name, no_wrap=name != "what")
    for step in found.steps[:SHOWN_STEPS]:
        phases = f" ({' '.join(step.phases)})" if step.phases else ""
        table.add_row(Text(step.kind, style=_STYLES[step.kind]), step.device, step.stack, step.reason + phases)
    yield table
    if len(found.steps) > SHOWN_STEPS:
        yield Text(f"… and {len(found.steps) - SHOWN_STEPS} more (--json has all)", style="dim")


def _diffs(found: Plan, *, files: bool) -> Iterator[RenderableType]:
    from rich.text import Text

    fresh = Counter(diff.device for diff in found.file_diffs if diff.change == "new")
    if fresh and not files:
        yield Text(f"{fresh.total()} new files on {len(fresh)} devices (--files shows them)", style="dim")
    for diff in found.file_diffs:
        if diff.change == "new" and not files:
            continue
        yield Text(diff.diff.rstrip() or f"{diff.device}{diff.path}: {diff.change}; the old text was not kept")


def _recabling(found: Plan) -> Iterator[RenderableType]:
    from rich.text import Text

    if found.recabling:
        yield Text("cables to move, in this order:", style="bold")
    for move in found.recabling:
        yield Text(f"  {move.action} {move.cable}  {' '.join(move.a)} - {' '.join(move.b)}")
