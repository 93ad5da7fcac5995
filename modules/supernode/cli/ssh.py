"""`supernode ssh`: a login under the pinned key."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from supernode.cli import inputs
from supernode.cli.output import emit, errors_end_the_process
from supernode.errors import CouldNotRun

if TYPE_CHECKING:
    from supernode.workspace import EnvironmentFolder

# What stands behind the device is the command's, dashes and all.
CONTEXT = {"allow_interspersed_args": False, "ignore_unknown_options": False}


def _environments(incomplete: str) -> list[str]:
    from supernode import workspace

    return sorted(p.parent.name for p in (workspace.root() / "inventories").glob(f"{incomplete}*/environment.yml"))


def _devices(ctx: typer.Context, incomplete: str) -> list[str]:
    from supernode import workspace
    from supernode.errors import SupernodeError

    try:
        computed = inputs.design(workspace.find(str(ctx.params.get("environment") or "")))
    except SupernodeError:
        return []
    return [name for name in computed.slots.values() if name.startswith(incomplete)]


def ssh(
    environment: Annotated[
        str, typer.Argument(help="a folder under inventories/, or a path", autocompletion=_environments)
    ],
    device: Annotated[str, typer.Argument(help="a host or switch, its slot or address", autocompletion=_devices)],
    command: Annotated[list[str] | None, typer.Argument(help="what runs there, else a shell")] = None,
    anyway: Annotated[bool, typer.Option("--anyway", help="also into one that is quarantined")] = False,
    as_text: Annotated[bool, typer.Option("--print", help="print the ssh command instead of starting it")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print it as JSON, as words")] = False,
) -> None:
    """Log in to a host or switch, with the operator's key, under the host key that is pinned for it and no other.

    Options come before the environment; what follows the device is the command: one word is a line for the shell there,
    more are taken word by word. No agent, no X11 and no password go
    along, and nothing is learnt: a device that shows another key is refused. The exit code is ssh's (255: no login).

    Example: supernode ssh lab gpu-001
    Example: supernode ssh lab su01-leaf0 sudo vtysh -c 'show bgp summary'
    Example: supernode ssh lab gpu-002 'journalctl -k | tail'
    Example: supernode ssh --print lab r01u05
    """
    folder, locate = inputs.find(environment)
    with errors_end_the_process(locate):
        command = command or []
        command = command[1:] if command[:1] == ["--"] else command  # as many tools want it between the two
        words = _words(folder, device, command, anyway=anyway)
        if not (as_text or as_json):
            _become(words)
    emit({"command": words}, as_json=as_json, text=lambda: shlex.join(words))


def _words(folder: EnvironmentFolder, device: str, command: list[str], *, anyway: bool) -> list[str]:
    from contextlib import suppress

    from supernode import workspace
    from supernode.bringup import login

    design, outputs = inputs.design(folder), None
    with suppress(CouldNotRun):  # nothing provisioned yet: a switch's key comes with its delivery
        outputs = workspace.read_outputs(folder)
    target = login.target(design, outputs, device, anyway=anyway)
    return login.command(target, login.private_key(folder), login.known_hosts_files(folder, design, outputs), command)


def _become(words: list[str]) -> None:
    try:
        os.execvp(words[0], words)  # noqa: S606 - words, no shell
    except FileNotFoundError:
        raise CouldNotRun(words[0], "is not on PATH", "install openssh-client") from None
