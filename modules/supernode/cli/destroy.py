"""`supernode destroy`: forget an environment's machines and switches."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from supernode.cli.output import emit, errors_end_the_process, say

if TYPE_CHECKING:
    from supernode.records import Event


def destroy(
    environment: Annotated[str, typer.Argument(help="a folder under inventories/, or a path")],
    yes_destroy: Annotated[
        str, typer.Option(metavar="NAME", help="the environment's name, for scripts: do not ask")
    ] = "",
    stack: Annotated[list[str] | None, typer.Option(help="this stack alone; repeatable")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print the names of the destroyed stacks as JSON")] = False,
) -> None:
    """Destroy all stacks of an environment, the last first; asks for the environment's name before.

    Machines are left as they are, unless the stack's configuration says `supernode:powerOffOnDelete: true`; what the
    engine knew of them is gone.

    Example: supernode destroy lab
    """
    from supernode import workspace
    from supernode.bringup import lock, provision
    from supernode.cli import inputs

    folder, locate = inputs.find(environment)
    with errors_end_the_process(locate):
        _confirm(folder.name, yes_destroy)
    with errors_end_the_process(locate), lock.occupied(folder, "destroy", say):
        gone = provision.destroy(folder, _show, stacks=tuple(stack or ()))
        if not stack:
            workspace.outputs_file(folder).unlink(missing_ok=True)
    emit({"destroyed": gone}, as_json=as_json, text=lambda: f"destroyed: {', '.join(gone) or 'nothing was there'}")


def _confirm(name: str, given: str) -> None:
    """Ask for the name; anything else, or a script that does not give it, ends with exit code 2."""
    if not given:
        if not sys.stdin.isatty():
            raise typer.BadParameter(f"not a terminal: give --yes-destroy {name}")
        given = typer.prompt(f"this destroys every stack of {name}; type the environment's name", err=True)
    if given.strip() != name:
        raise typer.BadParameter(f"{given.strip()!r} is not {name!r}: nothing was destroyed")


def _show(event: Event) -> None:
    say(f"{event.host or event.phase}: {event.phase} {event.state} {event.detail}".rstrip())
