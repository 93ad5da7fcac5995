"""`supernode check`: whether the documents are right."""

from __future__ import annotations

from typing import Annotated

import typer

from supernode.cli import inputs
from supernode.cli.output import emit, errors_end_the_process


def check(
    environment: Annotated[str, typer.Argument(help="a folder under inventories/, or a path")],
    as_json: Annotated[bool, typer.Option("--json", help="print the result as JSON")] = False,
) -> None:
    """Read an environment's documents and say everything that is wrong with them, in line order.

    Exit code 0: nothing is; 2: each problem is on a line of its own, with file and line. Nothing is touched.

    Example: supernode check lab
    """
    folder, locate = inputs.find(environment)
    with errors_end_the_process(locate):
        design = inputs.design(folder)
    unbound = [slot for slot in design.slots if slot not in design.machines.slots]
    data = {
        "environment": design.name,
        "hosts": len(design.hosts),
        "switches": len(design.switches),
        "cables": len(design.links),
        "allocation_saved": design.allocation_saved,
        "unbound_slots": unbound,
    }
    emit(data, as_json=as_json, text=lambda: _text(data))


def _text(data: dict[str, object]) -> str:
    unbound = data["unbound_slots"]
    counts = f"{data['hosts']} hosts, {data['switches']} switches, {data['cables']} cables"
    lines = [f"{data['environment']}: {counts}; nothing is wrong"]
    if not data["allocation_saved"]:
        lines.append(
            f"not saved: `supernode allocate {data['environment']}` writes the numbers that were computed here"
        )
    if isinstance(unbound, list) and unbound:
        lines.append(
            f"not bound: {len(unbound)} slots have no machine yet; `supernode assign` binds what was delivered"
        )
    return "\n".join(lines)
