"""`supernode routes`: how the fabric is routed, and why that has no deadlock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from supernode.cli import inputs
from supernode.cli.output import emit, errors_end_the_process

if TYPE_CHECKING:
    from rich.console import RenderableType

    from supernode.design.routing import Routes


def routes(
    environment: Annotated[str, typer.Argument(help="a folder under inventories/, or a path")],
    as_json: Annotated[bool, typer.Option("--json", help="print it as JSON")] = False,
) -> None:
    """Say how the fabric is routed: the subnet manager's engine and lanes, or the BGP plan; and why without deadlock.

    Example: supernode routes lab
    """
    import dataclasses

    from supernode.design import routing

    folder, locate = inputs.find(environment)
    with errors_end_the_process(locate):
        found = routing.routes(inputs.design(folder))
    emit(dataclasses.asdict(found) if as_json else None, as_json=as_json, text=lambda: _text(found))


def _text(found: Routes) -> RenderableType:
    from rich.console import Group
    from rich.table import Table

    proof = f"deadlock: {' -> '.join(found.circle)}" if found.circle else "deadlock: none, no circle of channels"
    if found.manager is not None:
        told = found.manager
        lines = [f"engines: {', '.join(told.engines)}; lanes: {told.lanes}; roots: {', '.join(told.roots)}", told.why]
        return Group(f"{found.transport}: {found.why}", *lines, proof)
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("tier", "switches", "ASNs", "ways up", "ways down", "announced", "learnt", "numbered links"):
        table.add_column(column, overflow="fold")
    for row in found.bgp:
        ranges = [_range(pair) for pair in (row.asns, row.up, row.down)]
        table.add_row(row.tier, str(row.switches), *ranges, str(row.announced), str(row.learnt), str(row.connected))
    return Group(f"{found.transport}: {found.why}", "", table, "", proof)


def _range(pair: tuple[int, int]) -> str:
    return str(pair[0]) if pair[0] == pair[1] else f"{pair[0]}-{pair[1]}"
