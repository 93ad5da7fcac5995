"""Answers that do not say what happened: nothing done and told done, done and told refused, done later or never."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from supernode.lab.bmc.controller import Bmc
from supernode.lab.bmc.messages import RedfishError
from supernode.lab.bmc.resources import bios, managers, sessions, systems, updates
from supernode.lab.bmc.routes import Call, Reply
from supernode.lab.bmc.state import FirmwareTask

Run = Callable[[], Awaitable[Reply]]
SHOWN_S = 0.5  # how long a task is seen before the BMC resets

_REQUESTS = {
    ("POST", systems.RESET): "power",
    ("PATCH", systems.SYSTEM): "boot",
    ("PATCH", bios.SETTINGS): "bios",
    ("POST", managers.INSERT): "insert",
    ("POST", managers.EJECT): "eject",
    ("POST", sessions.SESSIONS): "login",
}


def request_of(call: Call) -> str:
    """Return which of the changes that a rollout makes this is; "" for any other request."""
    return _REQUESTS.get((call.method, call.path), "")


async def answer(bmc: Bmc, call: Call, run: Run) -> Reply:
    """Answer one request, truly or as the faults that stand have it."""
    request = request_of(call)
    if request in ("", "login"):
        return await (_login(bmc, call, run) if request else run())
    if bmc.faults.strikes("bmc-no-effect", request):
        return Reply()
    if bmc.faults.strikes("bmc-400-applied", request):
        await run()
        raise RedfishError("GeneralError")
    if lost := bmc.faults.strikes("bmc-task-lost", request):
        return _task(bmc, call, lambda task: _lose(bmc, task, run if lost["happens"] else None))
    stuck = bmc.faults.get("bmc-pending-forever")
    if request == "insert" and stuck is not None and stuck["what"] == "task":
        return _task(bmc, call, None)
    if request in bmc.habits.tasks:
        return _task(bmc, call, lambda task: _finish(bmc, task, run))
    return await run()


async def _login(bmc: Bmc, call: Call, run: Run) -> Reply:
    if bmc.faults.get("bmc-sessions-full") is None:
        return await run()
    await bmc.access.check(str(call.body.get("UserName", "")), str(call.body.get("Password", "")))
    raise RedfishError("SessionLimitExceeded", status=bmc.habits.session_limit_status)


def _task(bmc: Bmc, call: Call, work: Callable[[FirmwareTask], Awaitable[None]] | None) -> Reply:
    """Begin a task and answer 202 with its monitor; without work it runs for ever."""
    task = bmc.updates.begin(f"{call.method} {call.path}")
    if work is not None:
        bmc.later(_run(work, task))
    return updates.accepted(bmc, task)


async def _run(work: Callable[[FirmwareTask], Awaitable[None]], task: FirmwareTask) -> None:
    await work(task)


async def _finish(bmc: Bmc, task: FirmwareTask, run: Run) -> None:
    try:
        await run()
    except RedfishError as error:
        bmc.updates.end(task, "Exception", str(error))
    else:
        bmc.updates.end(task, "Completed", "done")


async def _lose(bmc: Bmc, task: FirmwareTask, run: Run | None) -> None:
    await asyncio.sleep(SHOWN_S)
    if run is not None:
        await run()
    bmc.state.tasks.remove(task)
    await bmc.restart()
