"""Arming: let the boot server put a new one-time token on a machine's medium, right before the medium is used."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from supernode.boot import enrolment
from supernode.provider.job import Job

_LOGIN = re.compile(r"//[^/@\s]*@")
_DIGEST = re.compile(r"([0-9a-f]{12})[0-9a-f]{21,}")  # also one that was cut


async def arm(job: Job) -> None:
    """Let the machine's next medium have a new token, once."""
    await asyncio.to_thread(lambda: enrolment.arm(_state(job), job.wanted.name))


async def disarm(job: Job) -> None:
    """Take that back, if no medium was made."""
    await asyncio.to_thread(lambda: enrolment.disarm(_state(job), job.wanted.name))


async def armed(job: Job) -> bool:
    """Tell whether the medium was not made yet, which it is when somebody fetches it."""
    return await asyncio.to_thread(lambda: enrolment.armed(_state(job), job.wanted.name))


def shown(url: str) -> str:
    """Return a medium's address fit for a log: who has the whole of it may ask for the medium; no login of others."""
    return _LOGIN.sub("//***@", _DIGEST.sub(r"\1", url))


def _state(job: Job) -> Path:
    return job.scene.state
