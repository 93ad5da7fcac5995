"""`supernode check`: whether the documents are right; with --live, whether what they name is there."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from supernode.cli import inputs
from supernode.cli.output import emit, errors_end_the_process, say, talk

if TYPE_CHECKING:
    from rich.console import RenderableType

    from supernode.design import Design
    from supernode.records import Finding
    from supernode.workspace import EnvironmentFolder

_STYLES = {"pass": "green", "fail": "red", "advice": "yellow", "unknown": "magenta"}


def check(
    environment: Annotated[str, typer.Argument(help="a folder under inventories/, or a path")],
    live: Annotated[
        bool, typer.Option("--live", help="also look at every machine and server, changing nothing")
    ] = False,
    every: Annotated[bool, typer.Option("--all", help="with --live: list what is good, too")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print the result as JSON")] = False,
) -> None:
    """Read an environment's documents and say everything that is wrong with them, in line order.

    With --live it then looks, within half a minute and at everything at once, at what a run will need: each controller
    (answers, certificate, login, which machine, clock, disks), each switch under its pinned key, names, time servers,
    the boot server's address, the mirror's packages, room on this machine. It only looks: GETs and reading commands.
    At most two passwords are tried on a controller, each once.

    Exit code 0: nothing is wrong; 1: --live found what a run would fail on; 2: each problem of the documents is on a
    line of its own, with file and line.

    Example: supernode check lab
    Example: supernode check lab --live
    """
    folder, locate = inputs.find(environment)
    with errors_end_the_process(locate):
        design = inputs.design(folder)
        found = _look(folder, design) if live else None
    data = _documents(design)
    if found is not None:
        data |= {"live": [asdict(row) for row in found], "counts": Counter(row.verdict.value for row in found)}
    emit(data, as_json=as_json, text=lambda: _both(data, found, every=every))
    if found is not None and any(row.verdict == "fail" for row in found):
        raise SystemExit(1)


def _documents(design: Design) -> dict[str, Any]:
    bought = [slot for slot, name in design.slots.items() if not (design.is_host(name) and design.host(name).cloud)]
    return {
        "environment": design.name,
        "hosts": len(design.hosts),
        "switches": len(design.switches),
        "cables": len(design.links),
        "allocation_saved": design.allocation_saved,
        "unbound_slots": [slot for slot in bought if slot not in design.machines.slots],
    }


def _look(folder: EnvironmentFolder, design: Design) -> list[Finding]:
    from rich.progress import Progress

    from supernode.bringup import live

    with Progress(console=talk, transient=True) as progress:
        task = progress.add_task("looking at controllers and switches", total=None)
        return live.check(
            folder,
            design,
            _others(folder, design),
            lambda done, total: progress.update(task, completed=done, total=total),
        )


def _others(folder: EnvironmentFolder, design: Design) -> dict[str, Design]:
    """Compute the designs of the project's other environments that name this one's domain."""
    from supernode import workspace
    from supernode.errors import SupernodeError

    found: dict[str, Design] = {}
    for path in sorted((folder.root / "inventories").glob("*/environment.yml")):
        if path.parent == folder.folder or design.environment.site.domain not in path.read_text(encoding="utf-8"):
            continue
        try:
            found[path.parent.name] = inputs.design(workspace.find(str(path.parent)))
        except SupernodeError:
            say(f"{path.parent.name}: its documents are wrong, so its names were not compared")
    return found


def _both(data: dict[str, Any], found: list[Finding] | None, *, every: bool) -> RenderableType:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    text = Text(_text(data))
    if found is None:
        return text
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("check", "where", "verdict", "found", "hint"):
        table.add_column(column, no_wrap=column in ("check", "where", "verdict"))
    shown: dict[tuple[str, str, str, str], list[str]] = {}
    for row in found:
        if every or row.verdict != "pass":
            shown.setdefault((row.check, row.verdict.value, row.found, row.hint), []).append(row.place)
    for (check_name, verdict, what, hint), places in shown.items():
        table.add_row(check_name, _where(places), Text(verdict, style=_STYLES[verdict]), Text(what), Text(hint))
    parts: list[Any] = [text, Text(""), *([table, Text("")] if shown else []), Text(_counts(found))]
    return Group(*parts)


def _where(places: list[str]) -> str:
    return ", ".join(places[:2]) + (f" and {len(places) - 2} more" if len(places) > 2 else "")


def _counts(found: list[Finding]) -> str:
    """Write how many of each check passed, and how many of each verdict there are."""
    checks = dict.fromkeys(row.check for row in found)
    good = {check: [row.verdict == "pass" for row in found if row.check == check] for check in checks}
    verdicts = Counter(row.verdict.value for row in found)
    told = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
    return f"looked at: {', '.join(f'{check} {sum(rows)}/{len(rows)}' for check, rows in good.items())}\n{told}"


def _text(data: dict[str, Any]) -> str:
    unbound = data["unbound_slots"]
    counts = f"{data['hosts']} hosts, {data['switches']} switches, {data['cables']} cables"
    lines = [f"{data['environment']}: {counts}; nothing is wrong with the documents"]
    if not data["allocation_saved"]:
        lines.append(
            f"not saved: `supernode allocate {data['environment']}` writes the numbers that were computed here"
        )
    if unbound:
        lines.append(
            f"not bound: {len(unbound)} slots have no machine yet; `supernode assign` binds what was delivered"
        )
    return "\n".join(lines)
