"""`SwitchConfig`: the files of one switch, placed all or none, checked first and read back after.

Delete gives back what was there before: a switch as it was when it was handed over.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from supernode.errors import CouldNotRun
from supernode.provider import check, importing, schema, switch_plan
from supernode.provider.check import Failure
from supernode.provider.pace import Pace
from supernode.provider.phases.run import Outcome
from supernode.provider.placing import ENDS, carry_out, ended, opened, prepare
from supernode.provider.resource import Difference, Found, InitFailedError, Properties, Scene
from supernode.provider.switch_plan import RUNNING
from supernode.provider.switch_session import Switch
from supernode.provider.timing import LateError

LIMIT_S = 240.0
REACH_S = 60.0


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
            async with opened(scene, known, self._reach_s) as switch:
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
            async with opened(scene, old, self._reach_s) as switch:
                await switch.restore(paths, switch_plan.commands(paths))
        except (CouldNotRun, LateError) as error:
            if old.get("strict") is True:
                raise CouldNotRun(str(old.get("name")), f"cannot be given back: {error}") from error
            scene.warn(f"{old.get('name')}: let go without being given back: {error}")

    async def _apply(self, scene: Scene, inputs: Properties, old: Properties) -> Properties:
        applied: dict[str, str] = dict(old.get("applied") or {})
        outcome = Outcome()
        try:
            async with (
                asyncio.timeout(scene.limit_s or LIMIT_S) as limit,
                opened(scene, inputs, self._reach_s) as switch,
            ):
                todo = await prepare(switch, scene, inputs, old)
                if todo.stops:
                    async with self._turn(scene, inputs, limit):
                        await carry_out(switch, scene, inputs, todo)
                else:
                    await carry_out(switch, scene, inputs, todo)
                await switch.remember()
                applied = await switch.applied([str(f["path"]) for f in inputs["files"]])
        except ENDS as error:
            outcome = ended(error, "reload", scene.limit_s or LIMIT_S)
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
