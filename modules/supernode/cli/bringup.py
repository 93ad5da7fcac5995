"""`supernode bringup`: run the stages against the clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from supernode.cli.output import emit, errors_end_the_process, say, talk

if TYPE_CHECKING:
    from supernode.bringup.run import Bringup
    from supernode.design import Design
    from supernode.workspace import EnvironmentFolder

ENVIRONMENT = typer.Argument(help="a folder under inventories/, or a path")


def bringup(
    environment: Annotated[str, ENVIRONMENT],
    only: Annotated[
        str | None,
        typer.Option(help="that stage alone: provision, configure or verify; none puts a new machine into service"),
    ] = None,
    plan: Annotated[
        str | None, typer.Option(help="the hash that `supernode plan` showed; refused when the plan has become another")
    ] = None,
    reinstall: Annotated[
        list[str] | None, typer.Option(help="slot in service that may be installed anew; repeatable")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="do not ask")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print the run's record as JSON")] = False,
) -> None:
    """Take the machines from racked to verified, against the 45-minute clock, and leave a report.

    Exit code 0: as many machines in service as the environment asks for, nothing failing; 1: finished, with findings or
    fewer machines; 2: wrong input, nothing touched; 3: could not run; 130: interrupted. A cut run is resumed by
    the same command.

    Example: supernode bringup lab --yes
    """
    from supernode.bringup.run import STAGES, Bringup, Options
    from supernode.cli import inputs
    from supernode.cli.board import Board

    if only is not None and only not in STAGES:
        raise typer.BadParameter(f"{only!r} is none of {', '.join(STAGES)}")
    folder, locate = inputs.find(environment)
    with errors_end_the_process(locate):
        design = inputs.design(folder)
        shown = plan or _show_plan(folder, design, tuple(reinstall or ()), yes=yes or as_json)
        budgets = {stage: float(getattr(design.environment.budgets, f"{stage}_s")) for stage in STAGES}
        with Board(folder.name, budgets) as board:
            run = Bringup(folder, Options(only, shown, tuple(reinstall or ())), board.show)
            try:
                record = run.run()
            except KeyboardInterrupt:
                say(f"resume: {_again(environment, only, reinstall or [])}")
                raise
    _close(run, as_json=as_json)
    raise SystemExit(record.exit_code)


def _again(environment: str, only: str | None, reinstall: list[str]) -> str:
    """Write the command that goes on where this one was stopped, with the environment as it was given."""
    import shlex

    words = ["supernode", "bringup", environment, *(["--only", only] if only else [])]
    return shlex.join([*words, *(word for slot in reinstall for word in ("--reinstall", slot))])


def _show_plan(folder: EnvironmentFolder, design: Design, reinstall: tuple[str, ...], *, yes: bool) -> str:
    from supernode.bringup.planned import load_plan
    from supernode.cli.plan import as_text

    plan = load_plan(folder, design, reinstall)
    talk.print(as_text(plan))
    if not yes and talk.is_terminal:
        typer.confirm("run this plan?", abort=True, err=True)
    return plan.hash


def _close(run: Bringup, *, as_json: bool) -> None:
    from supernode.report import json as run_json
    from supernode.report import text

    emit(run_json.to_json(run.record), as_json=as_json, text=lambda: text.render(run.record))
    say(f"report: {run.report_path}")
