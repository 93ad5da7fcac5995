"""Phases in order against one deadline, with evidence when one does not end well."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from supernode.clients.answer import MISSHAPEN, misshapen
from supernode.clients.redfish import Ambiguous, Unreachable
from supernode.errors import CouldNotRun
from supernode.provider import evidence
from supernode.provider.job import Job, PhaseFailedError, RefusedError, told
from supernode.provider.phases import bios, boot, contact, deploy, eject, firmware, login, power
from supernode.provider.timing import LateError

Phase = Callable[[Job], Awaitable[None]]
PHASES: Mapping[str, Phase] = {
    "contact": contact.run,
    "power": power.run,
    "bios": bios.run,
    "firmware": firmware.run,
    "boot": boot.run,
    "deploy": deploy.run,
    "eject": eject.run,
    "login": login.run,
}
# Share of the machine's deadline that a phase may use; deploy and login may use what is left.
SHARE: Mapping[str, float] = {"contact": 0.3, "power": 0.3, "bios": 0.6, "firmware": 0.2, "boot": 0.4, "eject": 0.2}


@dataclass(frozen=True)
class Outcome:
    """How far a machine came.

    Attributes:
        status: ready, late or failed.
        phase, reason: where and why it stopped; empty when ready.
        refused: the reason is that the machine is in service.
    """

    status: str = "ready"
    phase: str = ""
    reason: str = ""
    evidence: tuple[str, ...] = ()
    refused: bool = False


async def run(job: Job, names: Sequence[str]) -> Outcome:
    """Run the phases named, in order; contact always comes first.

    Nothing that a machine does or fails to do raises.
    """
    for name in ["contact", *(n for n in names if n != "contact")]:
        try:
            await _one(job, name)
        except RefusedError as error:
            return Outcome("failed", name, str(error), refused=True)
        except (LateError, TimeoutError) as error:
            return await _ended(job, "late", name, str(error) or f"not done within {job.phase_deadline.seconds:.0f} s")
        except (PhaseFailedError, CouldNotRun) as error:
            return await _ended(job, "failed", name, told(error))
        except MISSHAPEN as error:
            return await _ended(job, "failed", name, f"{job.redfish.address}: {misshapen(error)}")
        except asyncio.CancelledError:
            return Outcome("failed", name, "cancelled")
    return Outcome()


async def _one(job: Job, name: str) -> None:
    job.phase_deadline = job.deadline.part(job.deadline.seconds * SHARE.get(name, 1.0))
    # Each phase can be done again from its beginning, as after a run that was killed.
    # The phase keeps its own deadline; this one catches a request that hangs beyond it.
    async with asyncio.timeout(job.phase_deadline.left + 1):
        try:
            await PHASES[name](job)
        except (Unreachable, Ambiguous) as error:
            if not job.contacted:
                raise
            job.scene.say(name, f"the controller went silent ({error.what}): waiting for it, and once more")
            await job.bmc.answers(job.phase_deadline)
            await PHASES[name](job)


async def _ended(job: Job, status: str, phase: str, reason: str) -> Outcome:
    lines = await evidence.gather(job)
    return Outcome(status, phase, reason, tuple(lines))
