"""`supernode tune`: what the collective library of each pool is told, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from supernode.cli import inputs
from supernode.cli.output import emit, errors_end_the_process
from supernode.errors import WrongInput

if TYPE_CHECKING:
    from rich.console import RenderableType

    from supernode.design import Design
    from supernode.design.rows import Host


def tune(
    environment: Annotated[str, typer.Argument(help="a folder under inventories/, or a path")],
    explain: Annotated[
        bool, typer.Option("--explain", help="for each line the reason, where it comes from, who owns it")
    ] = False,
    host: Annotated[str | None, typer.Option(help="this host alone, not the first of each pool")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print everything as JSON")] = False,
) -> None:
    """Say what the collective library (NCCL, HCCL) is told on the hosts of each pool, and what it is not told.

    Nothing is contacted or written: the role `collectives` places these files. A line of yours goes under
    `collectives.settings` in environment.yml, where it is checked.

    Example: supernode tune lab --explain
    """
    folder, locate = inputs.find(environment)
    with errors_end_the_process(locate):
        design = inputs.design(folder)
        rows = [_row(design, one) for one in _hosts(design, host)]
    emit(rows, as_json=as_json, text=lambda: _text(rows, explain=explain))


def _hosts(design: Design, name: str | None) -> list[Host]:
    """Return whom to speak of: one host, or the first of each pool that has a library.

    Raises:
        WrongInput: no such host, or none that has a library.
    """
    from supernode.design import collectives

    if name is not None and not design.is_host(name):
        raise WrongInput(name, f"no host of {design.name}", f"supernode design {design.name} lists them")
    asked = [design.host(name)] if name is not None else list(design.hosts)
    concerned = [one for one in asked if collectives.applies(design, one)]
    if not concerned:
        hint = "add `collectives: {library: nccl, version: ...}` to environment.yml"
        raise WrongInput(name or design.name, "no collective library is configured there", hint)
    return list({one.pool: one for one in reversed(concerned)}.values())[::-1]


def _row(design: Design, host: Host) -> dict[str, Any]:
    from supernode.design import collectives

    found = collectives.tuning(design, host)
    return {
        "pool": host.pool,
        "host": host.name,
        **asdict(found),
        "files": [{"path": file.path, "content": file.content} for file in collectives.files(design, host)],
    }


def _text(rows: Iterable[dict[str, Any]], *, explain: bool) -> RenderableType:
    from rich.console import Group

    return Group(*(part for row in rows for part in _parts(row, explain=explain)))


def _parts(row: dict[str, Any], *, explain: bool) -> Iterator[RenderableType]:
    from rich.padding import Padding
    from rich.text import Text

    paths = ", ".join(file["path"] for file in row["files"])
    yield Text(f"pool {row['pool']} ({row['host']}): {row['library']} from {row['version']} on; {paths}", style="bold")
    for one in row["settings"]:
        yield Text(f"  {one['name']}={one['value']}")
        if explain:
            mark = "" if one["kind"] == "system" else f" [{one['kind']}]"
            yield Padding(Text(one["reason"]), (0, 0, 0, 6))
            yield Padding(Text(f"from {one['source']}; {one['owner']}{mark}", style="dim"), (0, 0, 0, 6))
    if not explain:
        return
    yield Text("not written:", style="bold")
    for one in row["left"]:
        yield Text(f"  {one['name']}" + (f" ({one['owner']})" if one["owner"] else ""))
        yield Padding(Text(one["reason"]), (0, 0, 0, 6))
