"""`supernode shell`: a shell in which plain `pulumi` works on an environment's stacks."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from supernode.cli.output import emit, errors_end_the_process, say
from supernode.errors import CouldNotRun

if TYPE_CHECKING:
    from supernode.design import Design
    from supernode.workspace import EnvironmentFolder


def shell(
    environment: Annotated[str, typer.Argument(help="a folder under inventories/, or a path")],
    as_text: Annotated[
        bool, typer.Option("--print", help="print lines for `eval` instead of starting a shell")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="print the variables as JSON instead of starting a shell")
    ] = False,
) -> None:
    """Start a shell in which pulumi preview, up, refresh, import and destroy work on the environment by themselves.

    Selects the environment's stacks and makes those that are missing, sets the engine's variables and its parallelism,
    and has `supernode serve` running, for machines boot from it. Leave the shell with exit.

    Example: supernode shell lab, then pulumi preview -s lab
    Example: eval "$(supernode shell lab --print)"
    """
    from supernode.bringup.provision import Session, prepare_stack
    from supernode.cli import inputs

    folder, locate = inputs.find(environment)
    with errors_end_the_process(locate):
        design = inputs.design(folder)
        session = Session.open(folder, say)
        for name in reversed(design.stacks()):  # the last one selected is the one that plain `pulumi` means
            prepare_stack(session, name)
        _serve(folder)
        variables = {**session.settings, "PULUMI_PARALLEL": str(_parallel(design))}
    if as_json:
        emit({"directory": str(session.directory), "variables": variables}, as_json=True)
    elif as_text:
        sys.stdout.write(_lines(session.directory, variables) + "\n")  # not through rich: a wrapped line breaks `eval`
    else:
        _start(folder.name, design.stacks(), session.directory, variables)


def _serve(folder: EnvironmentFolder) -> None:
    """Have the media served; without them a look, a refresh and a destroy still work, so it is said and no more."""
    from supernode.boot import server

    try:
        say(f"media and images are served at {server.ensure_running(folder)}")
    except CouldNotRun as error:
        say(f"warning: media and images are not served, so no machine can be deployed: {error}")


def _parallel(design: Design) -> int:
    from supernode.bringup.provision.run import parallel

    return max(parallel(design, name) for name in design.stacks())


def _lines(directory: Path, variables: Mapping[str, str]) -> str:
    """Write the variables for a POSIX shell; none of them is a secret: the passphrase is named by its file."""
    exports = [f"export {name}={shlex.quote(value)}" for name, value in sorted(variables.items())]
    return "\n".join([*exports, f"cd {shlex.quote(str(directory))}"])


def _start(environment: str, stacks: tuple[str, ...], directory: Path, variables: Mapping[str, str]) -> None:
    say(f"environment {environment}: stack {', '.join(stacks)}; `exit` leaves this shell")
    program = os.environ.get("SHELL") or "/bin/sh"
    os.chdir(directory)
    os.execvpe(program, [program], {**os.environ, **variables})  # noqa: S606 - the person's own shell
