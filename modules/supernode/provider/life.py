"""Signs of life: what a machine leaves at its controller when it starts, and what it means when it leaves nothing."""

from __future__ import annotations

import asyncio
import contextlib

from supernode.clients.redfish import Json
from supernode.errors import CouldNotRun
from supernode.provider import evidence
from supernode.provider.job import Job

LOGS = ("postcodes", "hostlogger", "console")
NOWHERE = {"", "None"}  # BootProgress of a machine that is off, or did nothing yet
THROUGH = {"SystemHardwareInitializationComplete", "SetupEntered", "OSBootStarted", "OSRunning"}


async def traces(job: Job) -> tuple[str, ...] | None:
    """Return the last entry of each log that a starting machine writes; None where the controller keeps none."""
    found = []
    with contextlib.suppress(CouldNotRun, TimeoutError):
        async with asyncio.timeout(evidence.LIMIT_S):
            for service in await evidence.log_services(job):
                if str(service.get("Id", "")).lower() in LOGS:
                    entries = await evidence.entries(job, service)
                    found.append(_last(entries))
            return tuple(found) or None
    return None


def _last(entries: list[Json]) -> str:
    return f"{len(entries)} {entries[-1].get('Id')} {entries[-1].get('Message')}" if entries else ""


async def missing(job: Job) -> str:
    """Say that a machine with power shows nothing since it was started; "" when it does, or nobody can tell."""
    system = await job.bmc.read()
    power, progress = system.get("PowerState"), progress_of(system)
    if power != "On" or progress not in NOWHERE:
        return ""
    now = await traces(job)
    if now is None or job.traces is None or now != job.traces:
        return ""
    return "the machine has power and shows no sign of life: PowerState On, BootProgress None, no POST code, no console"


async def in_post(job: Job) -> str:
    """Say that a machine is still in POST; "" when it is past that, did not begin, or its controller does not tell."""
    progress = progress_of(await job.bmc.read())
    return "" if progress in NOWHERE | THROUGH else f"the machine is still in POST ({progress})"


def progress_of(system: Json) -> str:
    """Return BootProgress.LastState, "" where the controller does not tell."""
    return str((system.get("BootProgress") or {}).get("LastState") or "")
