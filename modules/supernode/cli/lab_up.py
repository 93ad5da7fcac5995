"""`supernode lab up`: the rehearsal in one command, each step a verb that a person could have typed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from supernode.cli import inputs
from supernode.cli.allocate import allocate
from supernode.cli.assign import assign
from supernode.cli.bringup import bringup
from supernode.cli.output import errors_end_the_process, say

if TYPE_CHECKING:
    from supernode.workspace import EnvironmentFolder


def up(
    environment: Annotated[str, typer.Argument(help="a folder under inventories/, or a path")],
    as_json: Annotated[bool, typer.Option("--json", help="print the run's record as JSON")] = False,
) -> None:
    """Start the lab, bind its delivery, bring the environment up, and say where the report is. Needs root.

    A lab that runs already is entered again: nothing is created, everything is verified afresh. A lab that is started
    anew is new hardware: what was known of the old one (stacks, machines.yml, host keys, passwords) is dropped first.

    Example: sudo supernode lab up lab
    """
    import sys
    from contextlib import redirect_stdout

    from supernode import workspace

    folder, locate = inputs.find(environment)
    with errors_end_the_process(locate):
        _start(folder)
    try:
        with redirect_stdout(sys.stderr):  # data on stdout is the run's alone
            allocate(environment)
            assign(environment, sheet=folder.folder / "delivery")
        bringup(environment, yes=True, as_json=as_json)
    finally:
        workspace.hand_over(folder)


def _start(folder: EnvironmentFolder) -> None:
    """Start the lab or enter it again; new hardware makes what was known of the old one worthless.

    A mark is set before the lab starts and taken away once the old state is dropped: a kill in between is made good.
    """
    from supernode.boot import server
    from supernode.bringup import lock
    from supernode.cli.lab import begin

    unsettled = folder.state / "lab-unsettled"
    _refuse_real_machines(folder)
    with lock.occupied(folder, "lab up", say):
        cut = unsettled.exists()
        unsettled.touch()
        started = begin(folder, inputs.design(folder))
        if cut or not started.unchanged:
            _forget(folder)
            _forget_passwords(folder)
            server.stop(folder)
        unsettled.unlink()
    say(f"lab {folder.name}: {'runs already' if started.unchanged else f'started in {started.seconds:.1f} s'}")


def _refuse_real_machines(folder: EnvironmentFolder) -> None:
    """Refuse an environment that knows machines which no lab made: they are not a lab's to forget."""
    from supernode import workspace
    from supernode.cli.lab import MADE_HERE
    from supernode.errors import WrongInput

    known = [p for p in (folder.document("machines"), workspace.outputs_file(folder)) if p.exists()]
    marks = (folder.folder / "delivery" / MADE_HERE, folder.state / MADE_HERE)  # the second: of former times
    if known and not any(mark.exists() for mark in marks):
        hint = f"a rehearsal wants an environment of its own; or remove {' and '.join(map(str, known))} yourself"
        raise WrongInput(folder.name, "this environment knows machines that no `lab up` made", hint)


def _forget(folder: EnvironmentFolder) -> None:
    """Drop what is known of machines that are no longer there."""
    import shutil

    from supernode import workspace
    from supernode.bringup import provision
    from supernode.bringup.planned import last_design
    from supernode.verify import baselines

    for name in provision.forget(folder):
        say(f"stack {name}: dropped, its machines are gone")
    shutil.rmtree(folder.state / "enrolled", ignore_errors=True)
    if folder.document("machines").exists():
        folder.document("machines").replace(folder.state / "machines.before.yml")
    for file in (workspace.outputs_file(folder), last_design(folder), folder.state / baselines.NAME):
        file.unlink(missing_ok=True)


def _forget_passwords(folder: EnvironmentFolder) -> None:
    """Drop the passwords that were given to the controllers before: those of now come from the factory."""
    from pathlib import Path

    from supernode.plan import resources

    design = inputs.design(folder)
    if design.environment.bmc.factory is None:
        return  # a password that a person keeps
    for host in design.hosts:
        scheme, _, rest = resources.controller(design, host)["password"].partition(":")
        if scheme == "file":
            (folder.folder / Path(rest.strip()).expanduser()).unlink(missing_ok=True)
