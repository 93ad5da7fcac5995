"""Reads one unit again and again: one connection, one request under way, and a period that is missed is not made up."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from supernode.clients import cdu
from supernode.clients.cdu import Access, Reader
from supernode.clients.patience import Unreachable
from supernode.clients.trust import Untrusted
from supernode.errors import CouldNotRun
from supernode.telemetry.seen import Seen
from supernode.telemetry.settings import Unit

LEAST_BUDGET_S = 5.0  # a reading may take its period, or so long where the period is shorter
LONGEST_REST_S = 60.0  # between two tries to connect
Connect = Callable[[Access], AbstractAsyncContextManager[Reader]]
_log = logging.getLogger("supernode.telemetry")


@asynccontextmanager
async def connect(access: Access) -> AsyncIterator[Reader]:
    """Open the unit's one connection; references and files of the settings are absolute."""
    async with cdu.connect(access, Path("/"), session=True) as reader:
        yield reader


async def watch(unit: Unit, seen: Seen, connect: Connect = connect) -> None:
    """Read a unit for ever; nothing that it does or leaves undone ends this."""
    rest = unit.interval_s
    while True:
        success = seen.success_at
        try:
            async with _within(unit, connect) as reader:
                await _read_on(unit, seen, reader)
        except Exception as error:
            reason = why(error)
            seen.failed(reason)
            _log.warning("%s: %s: %s", unit.name, reason, error)
        if seen.success_at != success:
            rest = unit.interval_s  # it had been well since
        # Decorrelated jitter: a hundred agents do not knock together at a controller that has just come back.
        rest = min(LONGEST_REST_S, random.uniform(unit.interval_s, 3 * rest))  # noqa: S311 - no secret
        await asyncio.sleep(rest)


@asynccontextmanager
async def _within(unit: Unit, connect: Connect) -> AsyncIterator[Reader]:
    async with contextlib.AsyncExitStack() as stack:
        async with asyncio.timeout(max(LEAST_BUDGET_S, unit.interval_s)):
            reader = await stack.enter_async_context(connect(unit.access))
        yield reader


async def _read_on(unit: Unit, seen: Seen, reader: Reader) -> None:
    """Read once a period; the first failure ends the connection."""
    budget = max(LEAST_BUDGET_S, unit.interval_s)
    due = time.monotonic()
    while True:
        began = time.monotonic()
        async with asyncio.timeout(budget):
            reading = await reader.read()
        now = time.monotonic()
        seen.duration_s = now - began
        seen.answered(reading, now, time.time())
        due += unit.interval_s
        if now > due:
            missed = int((now - due) // unit.interval_s) + 1
            seen.overruns += missed
            due += missed * unit.interval_s
        await asyncio.sleep(due - now)


def why(error: Exception) -> str:
    """Name the reason of a failure, in one of a few words: it becomes a label."""
    if isinstance(error, TimeoutError):
        return "timeout"
    if isinstance(error, Untrusted):
        return "untrusted"
    if isinstance(error, Unreachable | OSError):
        return "unreachable"
    if isinstance(error, CouldNotRun):
        return "unreachable" if "not answer" in error.what or "no answer" in error.what else "refused"
    return "protocol"
