"""`SwitchConfig`: the files of one switch, placed all or none, checked first and read back after.

Delete gives back what was there before: a switch as it was when it was handed over.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from supernode.clients import secrets, ssh
from supernode.errors import CouldNotRun
from supernode.provider import check, importing, schema, switch_plan
from supernode.provider.check import Failure
from supernode.provider.pace import NotTouchedError, Pace
from supernode.provider.phases.run import Outcome
from supernode.provider.resource import Difference, Found, InitFailedError, Properties, Scene
from supernode.provider.switch_plan import FRR_CONF, FRR_DAEMONS, RUNNING
from supernode.provider.switch_session import Switch
from supernode.provider.timing import Deadline, LateError, until

LIMIT_S = 240.0
REACH_S = 60.0


class _StoppedError(Exception):
    """The apply stopped in a phase; the message says why."""

    def __init__(self, phase: str, reason: str, evidence: Sequence[str] = ()) -> None:
        super().__init__(reason)
        self.phase, self.evidence = phase, tuple(evidence)


class SwitchConfigResource:
    """See the module.

    Args:
        reach_s: how long a switch may take to answer.
    """

    computed = tuple(schema.SWITCH_OUTPUTS)

    def __init__(self, reach_s: float = REACH_S) -> None:
        self._reach_s, self._pace = reach_s, Pace()

    def check(self, inputs: Properties) -> tuple[dict[str, Any], list[Failure]]:
        """See Resource."""
        filled = check.with_defaults(inputs, schema.SWITCH_DEFAULTS)
        return filled, check.switch_config(filled)

    def resource_id(self, inputs: Properties) -> str:
        """See Resource."""
        return str(inputs["slot"])

    def diff(self, scene: Scene, old: Properties, new: Properties) -> Difference:  # noqa: ARG002 - needs nothing of it
        """See Resource."""
        return Difference(switch_plan.differences(old, new))

    async def create(self, scene: Scene, inputs: Properties) -> Properties:
        """Apply; files that are there already are not touched."""
        return await self._apply(scene, inputs, {})

    async def update(self, scene: Scene, old: Properties, new: Properties) -> Properties:
        """Apply; files that are no longer listed are given back."""
        return await self._apply(scene, new, old)

    async def read(self, scene: Scene, resource_id: str, old: Properties, inputs: Properties) -> Found:
        """Look at the files and at FRR's running configuration; a switch that does not answer changes nothing."""
        if not old:
            inputs = await importing.switch_config(scene, resource_id)
        known = inputs or old
        try:
            async with self._open(scene, known) as switch:
                return await _read(switch, old, known)
        except (CouldNotRun, LateError) as error:
            if not old:
                raise CouldNotRun(resource_id, str(error)) from error
            scene.warn(f"{old.get('name')}: cannot be read: {error}")
            return Found(resource_id, old, inputs)

    async def delete(self, scene: Scene, old: Properties) -> None:
        """Give back what was there before the first placing."""
        paths = [str(f["path"]) for f in old.get("files") or ()]
        try:
            async with self._open(scene, old) as switch:
                await switch.restore(paths, switch_plan.commands(paths))
        except (CouldNotRun, LateError) as error:
            if old.get("strict") is True:
                raise CouldNotRun(str(old.get("name")), f"cannot be given back: {error}") from error
            scene.warn(f"{old.get('name')}: let go without being given back: {error}")

    async def _apply(self, scene: Scene, inputs: Properties, old: Properties) -> Properties:
        applied: dict[str, str] = dict(old.get("applied") or {})
        outcome = Outcome()
        try:
            async with asyncio.timeout(scene.limit_s or LIMIT_S) as limit, self._open(scene, inputs) as switch:
                todo = await _prepare(switch, scene, inputs, old)
                if todo.stops:
                    async with self._turn(scene, inputs, limit):
                        await _carry_out(switch, scene, inputs, todo)
                else:
                    await _carry_out(switch, scene, inputs, todo)
                await switch.remember()
                applied = await switch.applied([str(f["path"]) for f in inputs["files"]])
        except _StoppedError as error:
            outcome = Outcome("failed", error.phase, str(error), error.evidence)
        except NotTouchedError as error:
            outcome = Outcome("failed", "reload", str(error))
        except LateError as error:
            outcome = Outcome("late", "contact", str(error))
        except TimeoutError:
            outcome = Outcome("late", "reload", f"not done within {scene.limit_s or LIMIT_S:.0f} s")
        except asyncio.CancelledError:
            outcome = Outcome("failed", "reload", "cancelled")
        except CouldNotRun as error:
            outcome = Outcome("failed", "contact", str(error))
        return self._finish(scene, inputs, applied, outcome)

    @asynccontextmanager
    async def _turn(self, scene: Scene, inputs: Properties, limit: asyncio.Timeout) -> AsyncIterator[None]:
        """Wait for the switch's turn; waiting for others costs none of its own time, unless the engine set a limit."""
        if scene.limit_s is None:
            limit.reschedule(None)
        async with self._pace.turn(str(inputs["name"]), scene.base):
            if scene.limit_s is None:
                limit.reschedule(asyncio.get_running_loop().time() + LIMIT_S)
            yield

    def _finish(self, scene: Scene, inputs: Properties, applied: Mapping[str, str], outcome: Outcome) -> Properties:
        outputs = {
            **inputs,
            "status": outcome.status,
            "phase": outcome.phase,
            "reason": outcome.reason,
            "evidence": list(outcome.evidence),
            "applied": dict(applied),
            "drift": [],
        }
        if outcome.status != "ready":
            text = f"{inputs.get('name')}: {outcome.status} in phase {outcome.phase}: {outcome.reason}"
            if inputs.get("strict") is True:
                raise InitFailedError(self.resource_id(inputs), outputs, text)
            scene.warn(text)
        return outputs

    @asynccontextmanager
    async def _open(self, scene: Scene, inputs: Properties) -> AsyncIterator[Switch]:
        """Log in, waiting for a switch that is not up yet."""
        key = await secrets.resolve(str(inputs["sshKey"]), scene.base)
        host, _, port = str(inputs["address"]).partition(":")
        deadline = Deadline(min(self._reach_s, scene.limit_s or self._reach_s))
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
class _Todo:
    """What an apply does to a switch: files to place (brought and checked), to give back, and what follows of it."""

    changed: Sequence[str]
    dropped: Sequence[str]
    commands: Sequence[switch_plan.Command]

    @property
    def stops(self) -> bool:
        """Whether the switch may stop carrying traffic for a while."""
        return any(c.stops for c in (*self.commands, *switch_plan.commands(self.dropped)))


async def _prepare(switch: Switch, scene: Scene, inputs: Properties, old: Properties) -> _Todo:
    """Find out what is to be done; the files are brought and checked, and nothing is changed yet."""
    files: Sequence[Mapping[str, Any]] = inputs["files"]
    paths = [str(f["path"]) for f in files]
    changed, forced = await _changed(switch, files, old)
    dropped = [str(f["path"]) for f in old.get("files") or () if f["path"] not in paths]
    if changed:
        scene.say("check", f"{len(changed)} of {len(files)} files differ: {', '.join(sorted(changed))}")
        await _upload_checked(switch, [f for f in files if f["path"] in changed])
    return _Todo(changed, dropped, switch_plan.commands([*changed, *forced]))


async def _carry_out(switch: Switch, scene: Scene, inputs: Properties, todo: _Todo) -> None:
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
        raise _StoppedError("check", f"refused before anything was changed: {error}", _tail(error)) from error


async def _take_back(switch: Switch, changed: Sequence[str], error: ssh.CommandFailed) -> None:
    """Put the former files back into force after a command failed.

    Raises:
        _StoppedError: always; it says whether the former state holds again.
    """
    note = "nothing had been replaced"
    if changed:
        try:
            await switch.back(changed, switch_plan.commands(changed))
            note = "the former files are in force again"
        except CouldNotRun as second:
            note = f"and the former files could not be brought back: {second}"
    raise _StoppedError("reload", f"{error}; {note}", _tail(error)) from error


async def _verify(switch: Switch, files: Sequence[Mapping[str, Any]]) -> None:
    paths = [str(f["path"]) for f in files]
    if wrong := switch_plan.outdated(files, await switch.digests(paths)):
        raise _StoppedError("verify", f"placed, and reads back otherwise: {', '.join(wrong)}")
    if down := await switch.failed_units(paths):
        raise _StoppedError("verify", f"does not run: {', '.join(down)}")
    daemons = next((str(f["content"]) for f in files if f["path"] == FRR_DAEMONS), "")
    if daemons and (missing := await _missing_daemons(switch, daemons)):
        raise _StoppedError("verify", f"FRR does not run {', '.join(missing)}")


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


async def _read(switch: Switch, old: Properties, inputs: Properties) -> Found:
    files: Sequence[Mapping[str, Any]] = inputs.get("files") or ()
    paths = [str(f["path"]) for f in files]
    applied = await switch.applied(paths)
    differing = set(switch_plan.outdated(files, applied))
    there = [
        {**f, "content": await switch.content(str(f["path"]))} if f["path"] in differing else dict(f)
        for f in files
        if f["path"] in applied
    ]
    before = (old.get("applied") or {}).get(RUNNING)
    drift = await switch.drift() if before and applied.get(RUNNING) != before else []
    if not old:
        there = [{**f, "content": await switch.content(str(f["path"]))} for f in there]
    outputs = {
        **{k: old.get(k) for k in ("status", "phase", "reason", "evidence") if old.get(k) is not None},
        **inputs,
        "files": there,
        # What was applied stays the measure of the running configuration until the next apply; `drift` tells of now.
        "applied": {**applied, RUNNING: before} if before else applied,
        "drift": drift,
    }
    return Found(
        str(inputs["slot"]),
        {"status": "ready", "phase": "", "reason": "", "evidence": [], **outputs},
        {**inputs, "files": there},
    )


def _tail(error: ssh.CommandFailed) -> list[str]:
    text = f"{error.result.stdout}\n{error.result.stderr}"
    return [line[:200] for line in text.splitlines() if line.strip() and "unable to resolve host" not in line][-8:]
