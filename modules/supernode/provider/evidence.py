"""What the controller shows when a phase failed: bounded, and without secrets."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable

from supernode.clients.answer import MISSHAPEN, misshapen
from supernode.clients.exchange import printable
from supernode.clients.redfish import Json, RedfishError
from supernode.errors import CouldNotRun
from supernode.provider.job import Job
from supernode.provider.phases import arming

LIMIT_S = 10.0
LINES, WIDTH = 24, 200
CONSOLE_LINES, LOG_LINES, EXCHANGES = 6, 6, 3
_COUNTS = re.compile(r"[A-Za-z]*\d{1,18}([-_.]\d{1,18})*")
_NUMBER = re.compile(r"\d{1,18}")
EVENT_LOGS = ("sel", "eventlog", "event", "iml", "log1")


async def gather(job: Job) -> list[str]:
    """Collect what there is; a controller that answers no more leaves the last exchanges only."""
    lines: list[str] = []
    exchanges = list(job.redfish.exchanges)
    if job.contacted:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LIMIT_S):
                for source in (_progress, _logs):
                    await _safely(lines, source, job)
    lines += [f"exchange: {e.line()}" for e in exchanges[-EXCHANGES:]]
    return [printable(arming.shown(line)[:WIDTH]) for line in lines[:LINES]]


async def _safely(lines: list[str], source: Callable[[Job], Awaitable[list[str]]], job: Job) -> None:
    try:
        lines += await source(job)
    except CouldNotRun as error:
        lines.append(f"evidence: {error}")
    except MISSHAPEN as error:
        lines.append(f"evidence: {misshapen(error)}")


async def _progress(job: Job) -> list[str]:
    """Boot progress (ComputerSystem.BootProgress) and HPE's POST state, which is the same by another name."""
    system = await job.bmc.read()
    progress = system.get("BootProgress") or {}
    lines = [f"power: {system.get('PowerState')}"]
    if progress.get("LastState"):
        parts = (progress.get("LastState"), progress.get("OemLastState"), progress.get("LastStateTime"))
        lines.append("boot progress: " + " ".join(str(p) for p in parts if p))
    state = ((system.get("Oem") or {}).get("Hpe") or {}).get("PostState")
    return lines + ([f"POST state: {state}"] if state else [])


async def _logs(job: Job) -> list[str]:
    lines: list[str] = []
    for service in await log_services(job):
        name = str(service.get("Id", "")).lower()
        found = await entries(job, service)
        if "post" in name:
            lines += [f"POST code: {_text(e)}" for e in found[-1:]]
        elif name in ("hostlogger", "console"):
            lines += [f"console: {_text(e)}" for e in found[-CONSOLE_LINES:]]
        elif is_event_log(name):
            fresh = [e for e in found if _entry_id(e) not in job.seen.log_ids]
            lines += [f"event log: {e.get('Created', '')} {_text(e)}" for e in fresh[-LOG_LINES:]]
    return lines


def is_event_log(name: str) -> bool:
    """Say whether a log service of this id is the system event log."""
    return name.lower() in EVENT_LOGS


async def log_services(job: Job) -> list[Json]:
    """Return the log services of the system and of its manager."""
    found: list[Json] = []
    for owner in filter(None, (job.bmc.system, job.bmc.manager)):
        collection = ((await job.redfish.find(owner)) or {}).get("LogServices") or {}
        if path := collection.get("@odata.id"):
            with contextlib.suppress(RedfishError):
                found += await job.redfish.members(str(path))
    return found


async def remember_log(job: Job) -> None:
    """Note which entries the event log has already, so that evidence shows the new ones alone."""
    with contextlib.suppress(CouldNotRun):
        for service in await log_services(job):
            if is_event_log(str(service.get("Id", ""))):
                job.seen.log_ids |= {_entry_id(e) for e in await entries(job, service)}


async def entries(job: Job, service: Json) -> list[Json]:
    """Return a log's entries, oldest first by their numbers, which a wrong clock does not touch.

    Only the page that the controller gives first, for logs are long.
    """
    path = (service.get("Entries") or {}).get("@odata.id")
    if not path:
        return []
    try:
        page = await job.redfish.get(str(path))
    except RedfishError:
        return []
    members = [m for m in page.get("Members") or () if set(m) > {"@odata.id"}]
    return sorted(members, key=_order)


def _order(entry: Json) -> tuple[tuple[int, ...], str]:
    """Return the numbers of an entry's id, "B12-3" as (12, 3); the time where the id does not count."""
    name = str(entry.get("Id", ""))
    numbers = tuple(int(n) for n in _NUMBER.findall(name)) if _COUNTS.fullmatch(name) else ()
    return numbers, "" if numbers else str(entry.get("Created", ""))


def _entry_id(entry: Json) -> str:
    return f"{entry.get('Id')}@{entry.get('Created')}"


def _text(entry: Json) -> str:
    message = str(entry.get("Message") or "")
    arguments = entry.get("MessageArgs") or ()
    missing = [str(a) for a in arguments if str(a) not in message]
    return " ".join([message.strip(), *missing]).strip()
