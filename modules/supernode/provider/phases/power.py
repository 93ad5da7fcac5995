"""Power: on or off as wanted, and nothing else."""

from __future__ import annotations

from supernode.provider import guard
from supernode.provider.job import Job


async def run(job: Job) -> None:
    """See the module; switching off is subject to the guard."""
    if job.wanted.power == "Off" and await job.bmc.power() != "Off":
        await guard.permit(job, "switching off")
    job.scene.say("power", f"switching {job.wanted.power.lower()}")
    await job.bmc.turn(job.wanted.power, job.phase_deadline)
    job.seen.power = await job.bmc.power()
