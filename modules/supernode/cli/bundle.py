"""`supernode bundle`: what to send to whoever helps."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from supernode.cli import inputs
from supernode.cli.output import emit, errors_end_the_process, say

if TYPE_CHECKING:
    from rich.console import RenderableType

    from supernode.bringup.bundle import Item
    from supernode.design import Design
    from supernode.workspace import EnvironmentFolder


def bundle(
    environment: Annotated[str, typer.Argument(help="a folder under inventories/, or a path")],
    out: Annotated[Path | None, typer.Option(help="the archive; default: <environment>-<time>.tar.gz here")] = None,
    last: Annotated[int, typer.Option(min=0, help="how many runs go in")] = 5,
    live: Annotated[bool, typer.Option("--live", help="also each device's journal: warnings since its boot")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print the list of contents as JSON")] = False,
) -> None:
    """Pack what another engineer needs to understand an environment and its last runs, without a secret in it.

    In it: the documents, the last runs, state, plan, decrypted stacks, versions and facts of this machine. Before it is
    written, every file is searched for every secret that the environment knows (references resolved, keys, passphrase,
    tokens; also in base64, hexadecimal, JSON and URL form); if one is found there is no archive, and the file is named.
    Wrong documents do not stop it. Exit code 0: written; 3: refused, or could not be written.

    Example: supernode bundle lab --out /tmp/lab.tar.gz
    """
    from supernode.bringup import bundle as bundling

    folder, locate = inputs.find(environment)
    with errors_end_the_process(locate):
        design = _design(folder)
        items = [*bundling.gather(folder, design, last), *_lab(folder)]
        items += bundling.journals(folder, design) if live and design else []
        secrets = bundling.known(folder, design)
        target = out or Path(f"{folder.name}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}.tar.gz")
        bundling.write(target, folder.name, items, secrets, folder.state)
    for name, why in secrets.unknown.items():
        say(f"warning: not searched for {name}: {why}")
    files = [{"name": item.name, "bytes": len(item.data), "note": item.note} for item in items]
    data = {
        "bundle": str(target),
        "files": files,
        "searched_for": len(secrets.forms),
        "not_searched_for": secrets.unknown,
    }
    emit(data, as_json=as_json, text=lambda: _table(data))


def _design(folder: EnvironmentFolder) -> Design | None:
    from supernode.errors import SupernodeError

    try:
        return inputs.design(folder)
    except SupernodeError as error:
        say(f"warning: the documents make no design, so the bundle has no plan: {error}")
        return None


def _lab(folder: EnvironmentFolder) -> list[Item]:
    """Add the lab's own word, where one of this name runs."""
    import json

    from supernode.bringup.bundle import Item
    from supernode.errors import SupernodeError
    from supernode.lab import control
    from supernode.lab.places import Places

    try:
        answer = control.ask(Places.of(folder.name).control, {"do": "status"}, timeout_s=10)
    except (SupernodeError, OSError):
        return []
    return [Item("lab.json", (json.dumps(answer, indent=1, default=str) + "\n").encode())]


def _table(data: dict[str, Any]) -> RenderableType:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("bytes", justify="right")
    table.add_column("file")
    table.add_column("")
    for row in data["files"]:
        table.add_row(f"{row['bytes']}", row["name"], row["note"])
    total = sum(row["bytes"] for row in data["files"])
    end = f"{len(data['files'])} files, {total} bytes, searched for {data['searched_for']} secrets: {data['bundle']}"
    return Group(table, Text(end))
