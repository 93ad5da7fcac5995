"""`supernode allocate`: give numbers once, and write them down."""

from __future__ import annotations

from typing import Annotated

import typer

from supernode.cli import inputs
from supernode.cli.output import emit, errors_end_the_process


def allocate(
    environment: Annotated[str, typer.Argument(help="a folder under inventories/, or a path")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="say what would be written, and write nothing")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print the allocation as JSON")] = False,
) -> None:
    """Write allocation.yml: names, addresses, ports, cable numbers and stacks of whole blocks, given once.

    What was given stays; what the environment asks for now is added. Commit the file.

    Example: supernode allocate lab
    """
    from contextlib import nullcontext

    from supernode import spec
    from supernode.bringup import lock
    from supernode.design import allocating

    folder, locate = inputs.find(environment)
    with errors_end_the_process(locate), nullcontext() if dry_run else lock.held(folder, "allocate"):
        found = inputs.read(folder)
        allocation = allocating.extend(found.environment, found.allocation)
        changed = allocation != found.allocation
        if changed and not dry_run:
            folder.write("allocation", spec.allocation_text(allocation))
    if found.allocation is None:
        said = [f"{sum(b.count for b in allocation.hosts)} hosts, {sum(b.count for b in allocation.switches)} switches"]
    else:
        said = allocating.describe(found.environment, found.allocation, allocation) if changed else []
    verb = "would write" if dry_run else "wrote"
    data = {
        "changed": changed,
        "written": changed and not dry_run,
        "allocation": allocation.model_dump(mode="json", by_alias=True),
    }
    path = folder.document("allocation")
    shown = path.relative_to(folder.root) if path.is_relative_to(folder.root) else path
    line = f"{verb} {shown}: {'; '.join(said)}" if changed else f"{shown} is up to date"
    emit(data, as_json=as_json, text=lambda: line)
