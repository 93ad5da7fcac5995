"""`supernode report`: show a run again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from supernode.cli.output import emit, errors_end_the_process, say

if TYPE_CHECKING:
    from supernode.design import Design
    from supernode.records import Run
    from supernode.workspace import EnvironmentFolder


def report(
    environment: Annotated[str, typer.Argument(help="a folder under inventories/, or a path")],
    run: Annotated[str | None, typer.Argument(help="a run's id, or how it begins or ends; default: the last")] = None,
    html: Annotated[Path | None, typer.Option(help="write the page here; default: report.html beside the run")] = None,
    junit: Annotated[Path | None, typer.Option(help="write a JUnit file here")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print the run's record as JSON")] = False,
) -> None:
    """Print what a run did and found, and write its page anew.

    Exit code 0 whatever the run ended with: the report is about the run, and this command only reads. 3: no such run.

    Example: supernode report lab
    """
    from rich.console import Group

    from supernode.cli import inputs, runs
    from supernode.report import html as page
    from supernode.report import json as run_json
    from supernode.report import junit as xml
    from supernode.report import text
    from supernode.verify import checks
    from supernode.workspace import write_atomically

    folder, locate = inputs.find(environment)
    with errors_end_the_process(locate):
        path, record = runs.pick(folder, run)
        target = html or path.parent / "report.html"
        write_atomically(target, page.render(record, _design(folder, record), page.Proof(*checks.proof())))
        if junit is not None:
            write_atomically(junit, xml.render(record))
    emit(run_json.to_json(record), as_json=as_json, text=lambda: Group(text.render(record), _proof(*checks.proof())))
    say(f"report: {target}")


def _proof(proven: int, modelled: int) -> str:
    return (
        f"checks: {proven} proven against recorded or live tools, {modelled} modelled on documented or composed output"
    )


def _design(folder: EnvironmentFolder, record: Run) -> Design | None:
    """Return the design of the run, or None when the documents have changed since: a picture of another would lie."""
    from supernode.cli import inputs
    from supernode.errors import SupernodeError

    try:
        design = inputs.design(folder)
    except SupernodeError:
        say("the documents no longer make a design: the page has no picture")
        return None
    if design.digest != record.design:
        say("the documents have changed since this run: the page has no picture")
        return None
    return design
