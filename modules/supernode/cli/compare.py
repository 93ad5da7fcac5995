"""`supernode compare`: designs side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from supernode.cli import inputs
from supernode.cli.output import emit, errors_end_the_process

if TYPE_CHECKING:
    from rich.table import Table

    from supernode.design import Design

SKIPPED = {"name", "digest"}


def compare(
    environments: Annotated[list[str], typer.Argument(help="two or more: folders under inventories/, or paths")],
    as_json: Annotated[bool, typer.Option("--json", help="print the summaries as JSON")] = False,
) -> None:
    """Put designs side by side: accelerators, switches, cables, hops, bisection, power.

    Power is what the catalogue knows of; `unknown` names the kinds that no source tells the power of.

    Example: supernode compare inventories/examples/rack64-torus-chords inventories/examples/rack64-hyperx
    """
    if len(environments) < 2:
        raise typer.BadParameter("name two environments at least", param_hint="environments")
    rows = []
    for environment in environments:
        folder, locate = inputs.find(environment)
        with errors_end_the_process(locate):
            rows.append(figures(inputs.design(folder)))
    emit(rows if as_json else None, as_json=as_json, text=lambda: table(rows))


def figures(design: Design) -> dict[str, Any]:
    """Return the summary of a design, and what its racks draw in watts."""
    from supernode.design import physical, power, summary

    racks = power.racks(design, physical.fitted(design))
    unknown = sorted({name for rack in racks for name in rack.unknown})
    drawn = {"watts": round(sum(rack.total_w for rack in racks)), **({"unknown": unknown} if unknown else {})}
    return {**summary.build(design), "power": drawn}


def table(rows: list[dict[str, Any]]) -> Table:
    """Return a column a design; what one does not have is empty there."""
    from rich.table import Table

    found = Table(box=None, pad_edge=False, header_style="bold")
    found.add_column("")
    for row in rows:
        found.add_column(row["name"], justify="right", overflow="fold")
    flat = [dict(_flat(row)) for row in rows]
    for key in dict.fromkeys(key for row in flat for key in row):
        found.add_row(key, *(_said(row.get(key, "")) for row in flat))
    return found


def _flat(row: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in row.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key} ")
        elif prefix or key not in SKIPPED:
            yield prefix + key, value


def _said(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(value)
    return f"{value:,}" if isinstance(value, int | float) else str(value)
