"""Files on a device, placed all or none: checked first, brought into force, read back, and taken back on failure.

What a switch's configuration and a gateway's have in common; which commands follow from a file is switch_plan's.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from supernode.clients import secrets, ssh
from supernode.errors import CouldNotRun
from supernode.provider import switch_plan
from supernode.provider.pace import NotTouchedError
from supernode.provider.phases.run import Outcome
from supernode.provider.resource import Properties, Scene
from supernode.provider.switch_plan import FRR_CONF, FRR_DAEMONS, RUNNING
from supernode.provider.switch_session import Switch
from supernode.provider.timing import Deadline, LateError, until


class StoppedError(Exception):
    """The apply stopped in a phase; the message says why."""

    def __init__(self, phase: str, reason: str, evidence: Sequence[str] = ()) -> None:
        super().__init__(reason)
        self.phase, self.evidence = phase, tuple(evidence)


ENDS = (StoppedError, NotTouchedError, LateError, TimeoutError, asyncio.CancelledError, CouldNotRun)
"""What ends an apply before its time; `ended` says of each what it means."""


def ended(error: BaseException, doing: str, limit_s: float) -> Outcome:
    """Say how far an apply came that one of ENDS ended.

    Args:
        error: what ended it.
        doing: the phase of what was not done in time, cancelled or left alone.
        limit_s: the time that it had.
    """
    match error:
        case StoppedError():
            return Outcome("failed", error.phase, str(error), error.evidence)
        case LateError():
            return Outcome("late", "contact", str(error))
        case TimeoutError():
            return Outcome("late", doing, f"not done within {limit_s:.0f} s")
        case asyncio.CancelledError():
            return Outcome("failed", doing, "cancelled")
        case NotTouchedError():
            return Outcome("failed", doing, str(error))
        case _:
            return Outcome("failed", "contact", str(error))


@asynccontextmanager
async def opened(scene: Scene, inputs: Properties, reach_s: float) -> AsyncIterator[Switch]:
    """Log in, waiting for a device that is not up yet; `inputs` has address, hostKey, sshUser and sshKey."""
    key = await secrets.resolve(str(inputs["sshKey"]), scene.base)
    host, _, port = str(inputs["address"]).partition(":")
    deadline = Deadline(min(reach_s, scene.limit_s or reach_s))
    trouble = ""

    async def look() -> ssh.Ssh | None:
        nonlocal trouble
        try:
            return await ssh.open_session(
                host, str(inputs["sshUser"]), key, [str(inputs["hostKey"])], port=int(port or 22)
            )
        except ssh.NoAnswer as error:
            trouble = str(error)
            return None

    scene.say("contact", f"logging in to {inputs['address']}")
    try:
        session = await until(look, deadline, "no login", longest_s=3.0)
    except LateError as error:
        raise LateError(f"no login ({trouble})", deadline.seconds) from error
    try:
        yield Switch(session)
    finally:
        await asyncio.shield(session.close())


@dataclass(frozen=True)
class Todo:
    """What an apply does to a device: files to place (brought and checked), to give back, and what follows of it."""

    changed: Sequence[str]
    dropped: Sequence[str]
    commands: Sequence[switch_plan.Command]

    @property
    def stops(self) -> bool:
        """Whether the switch may stop carrying traffic for a while."""
        return any(c.stops for c in (*self.commands, *switch_plan.commands(self.dropped)))


async def prepare(switch: Switch, scene: Scene, inputs: Properties, old: Properties) -> Todo:
    """Find out what is to be done; the files are brought and checked, and nothing is changed yet."""
    files: Sequence[Mapping[str, Any]] = inputs["files"]
    paths = [str(f["path"]) for f in files]
    changed, forced = await _changed(switch, files, old)
    dropped = [str(f["path"]) for f in old.get("files") or () if f["path"] not in paths]
    if changed:
        scene.say("check", f"{len(changed)} of {len(files)} files differ: {', '.join(sorted(changed))}")
        await _upload_checked(switch, [f for f in files if f["path"] in changed])
    return Todo(changed, dropped, switch_plan.commands([*changed, *forced]))


async def carry_out(switch: Switch, scene: Scene, inputs: Properties, todo: Todo) -> None:
    """Place what was brought, bring it into force, give back what is no longer listed, and read back.

    Raises:
        StoppedError: a command failed, and the former files are in force again if that could be done; or what was
            placed reads back otherwise or does not run.
    """
    if todo.changed:
        await switch.place(todo.changed)
    for command in todo.commands:
        scene.say("reload", command.about)
    try:
        await switch.enforce(todo.commands)
    except ssh.CommandFailed as error:
        await _take_back(switch, todo.changed, error)
    if todo.dropped:
        await switch.restore(todo.dropped, switch_plan.commands(todo.dropped))
    await _verify(switch, inputs["files"])


async def _changed(switch: Switch, files: Sequence[Mapping[str, Any]], old: Properties) -> tuple[list[str], list[str]]:
    """Return the paths to place, and those that stand right and are not in force."""
    paths = [str(f["path"]) for f in files]
    found, modes = await switch.digests(paths), await switch.modes(paths)
    wrong_mode = [str(f["path"]) for f in files if modes.get(str(f["path"])) != switch_plan.mode(str(f["mode"]))]
    changed = list(dict.fromkeys([*switch_plan.outdated(files, found), *wrong_mode]))
    forced = [p for p in await switch.pending() if p in paths]
    if FRR_CONF in paths and FRR_CONF not in changed and await _left_the_file(switch, old):
        forced.append(FRR_CONF)
    return changed, forced


async def _left_the_file(switch: Switch, old: Properties) -> bool:
    """Say whether FRR runs something else than was last applied; unknown counts as yes, for a reload is harmless."""
    known = (old.get("applied") or {}).get(RUNNING) or switch_plan.digest(await switch.remembered())
    return bool(known != switch_plan.digest(await switch.running()))


async def _upload_checked(switch: Switch, files: Sequence[Mapping[str, Any]]) -> None:
    try:
        await switch.upload(files)
        await switch.check([str(f["path"]) for f in files])
    except ssh.CommandFailed as error:
        raise StoppedError("check", f"refused before anything was changed: {error}", _tail(error)) from error


async def _take_back(switch: Switch, changed: Sequence[str], error: ssh.CommandFailed) -> None:
    """Put the former files back into force after a command failed.

    Raises:
        StoppedError: always; it says whether the former state holds again.
    """
    note = "nothing had been replaced"
    if changed:
        try:
            await switch.back(changed, switch_plan.commands(changed))
            note = "the former files are in force again"
        except CouldNotRun as second:
            note = f"and the former files could not be brought back: {second}"
    raise StoppedError("reload", f"{error}; {note}", _tail(error)) from error


async def _verify(switch: Switch, files: Sequence[Mapping[str, Any]]) -> None:
    paths = [str(f["path"]) for f in files]
    if wrong := switch_plan.outdated(files, await switch.digests(paths)):
        raise StoppedError("verify", f"placed, and reads back otherwise: {', '.join(wrong)}")
    if down := await switch.failed_units(paths):
        raise StoppedError("verify", f"does not run: {', '.join(down)}")
    daemons = next((str(f["content"]) for f in files if f["path"] == FRR_DAEMONS), "")
    if daemons and (missing := await _missing_daemons(switch, daemons)):
        raise StoppedError("verify", f"FRR does not run {', '.join(missing)}")


async def _missing_daemons(switch: Switch, daemons: str) -> list[str]:
    """Ask for some seconds: after a restart the daemons come up one by one."""
    missing: list[str] = []

    async def look() -> bool | None:
        nonlocal missing
        missing = await switch.missing_daemons(daemons)
        return True if not missing else None

    try:
        await until(look, Deadline(15), "daemons")
    except LateError:
        return missing
    return []


def _tail(error: ssh.CommandFailed) -> list[str]:
    text = f"{error.result.stdout}\n{error.result.stderr}"
    return [line[:200] for line in text.splitlines() if line.strip() and "unable to resolve host" not in line][-8:]
