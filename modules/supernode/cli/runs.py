"""`supernode runs`: what has been run on an environment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from supernode.cli.output import emit, errors_end_the_process, say

if TYPE_CHECKING:
    from supernode.records import Run
    from supernode.workspace import EnvironmentFolder


def runs(
    environment: Annotated[str, typer.Argument(help="a folder under inventories/, or a path")],
    last: Annotated[int, typer.Option(help="how many to show")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="print them as JSON, without events and findings")] = False,
) -> None:
    """List the runs of an environment, the newest last, with how each ended.

    Example: supernode runs lab --last 5
    """
    from supernode.cli import inputs
    from supernode.report import json as run_json
    from supernode.report import text

    folder, locate = inputs.find(environment)
    with errors_end_the_process(locate):
        rows = [record for path in run_files(folder) if (record := read(path)) is not None][-last:]
    summaries = [
        {key: value for key, value in run_json.to_json(record).items() if key not in ("events", "findings")}
        for record in rows
    ]
    emit(summaries, as_json=as_json, text=lambda: text.runs(rows) if rows else f"no run of {folder.name} yet")


def run_files(folder: EnvironmentFolder) -> list[Path]:
    """Return the run.json of every run, the oldest first: ids sort by time."""
    return sorted(folder.runs.glob("*/run.json"))


def read(path: Path) -> Run | None:
    """Read one record; one that cannot be read is said and passed over."""
    import json

    from supernode.report import json as run_json

    try:
        return run_json.from_json(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        say(f"{path}: cannot be read: {error}")
        return None


def pick(folder: EnvironmentFolder, run_id: str | None) -> tuple[Path, Run]:
    """Return one run by its id or a part of it, the last without one.

    Raises:
        WrongInput: no run, or more than one, is called so.
        CouldNotRun: there is none yet, or it cannot be read.
    """
    from supernode.errors import CouldNotRun, WrongInput

    files = run_files(folder)
    fitting = [f for f in files if run_id is None or f.parent.name.startswith(run_id) or f.parent.name.endswith(run_id)]
    if not files:
        raise CouldNotRun(str(folder.runs), "no run yet", f"supernode bringup {folder.name}")
    if not fitting:
        raise WrongInput(str(run_id), "no such run", f"`supernode runs {folder.name}` lists them")
    if run_id is not None and len(fitting) > 1:
        names = ", ".join(f.parent.name for f in fitting[-5:])
        raise WrongInput(run_id, f"fits {len(fitting)} runs", f"say more of its id: {names}")
    record = read(fitting[-1])
    if record is None:
        raise CouldNotRun(str(fitting[-1]), "cannot be read", f"`supernode runs {folder.name}` lists the others")
    return fitting[-1], record
