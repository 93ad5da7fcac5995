"""`supernode verify`: look at every machine and say what is not as designed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from supernode.cli.output import emit, errors_end_the_process, say

ENVIRONMENT = typer.Argument(help="a folder under inventories/, or a path")


def verify(
    environment: Annotated[str, ENVIRONMENT],
    junit: Annotated[Path | None, typer.Option(help="write pytest's JUnit file here")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print the findings as JSON")] = False,
) -> None:
    """Gather facts from every host and switch once, compare them with the design, and name the causes.

    Nothing is changed on any machine. Exit code 0: everything was seen and is as designed; 1: finished, with
    findings, or with something that could not be seen; 2: wrong input; 3: could not run.

    Example: supernode verify lab --junit verify.xml
    """
    from supernode import workspace
    from supernode.bringup import lock
    from supernode.cli import inputs
    from supernode.cli.board import Board
    from supernode.records import Verdict
    from supernode.report import json as run_json
    from supernode.report import text
    from supernode.verify import checks
    from supernode.verify import run as verifying

    folder, locate = inputs.find(environment)
    with errors_end_the_process(locate), lock.held(folder, "verify"):
        design = inputs.design(folder)
        outputs = workspace.read_outputs(folder)
        with Board(folder.name, {"verify": float(design.environment.budgets.verify_s)}) as board:
            findings = verifying.verify(folder, design, outputs, board.show, junit=junit)
    proven, modelled = checks.proof()
    document = {
        "environment": folder.name,
        "findings": [run_json.finding_to_json(row) for row in findings],
        "checks": {"proven": proven, "modelled": modelled},
    }
    emit(document, as_json=as_json, text=lambda: text.findings(findings))
    say(f"{proven} kinds of check are proven against the real tool, {modelled} are modelled")
    raise SystemExit(int(any(row.verdict in (Verdict.FAIL, Verdict.UNKNOWN) for row in findings)))
