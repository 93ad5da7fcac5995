"""`supernode engine`: find, fetch or build the Pulumi engine, and say which and why."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from supernode.cli.output import emit, errors_end_the_process, say


def engine(
    as_json: Annotated[bool, typer.Option("--json", help="print path, version, source and reason as JSON")] = False,
    only_find: Annotated[
        bool, typer.Option("--find", help="neither fetch nor build: exit 3 when there is none")
    ] = False,
) -> None:
    """Find the Pulumi engine, or fetch it, or build it from the pinned Go modules; says which one is used and why.

    The order: `pulumi` on PATH when new enough and with its Python language host; the cache; the official release, or
    the mirror that SUPERNODE_ENGINE_MIRROR names; a build. SUPERNODE_CACHE moves the cache.

    Example: supernode engine
    """
    from supernode import engine as engines
    from supernode.errors import CouldNotRun

    with errors_end_the_process():
        found = engines.find() if only_find else engines.ensure(say)
        if found is None:
            raise CouldNotRun("pulumi", "no engine on PATH or in the cache", "run `supernode engine`")
    data = {**dataclasses.asdict(found), "path": str(found.path)}
    emit(data, as_json=as_json, text=lambda: f"pulumi {found.version} ({found.source})\n{found.path}\n{found.why}")
