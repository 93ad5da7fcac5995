"""Before power-on: the word of the rack's cooling unit, noted in what the machine's outputs say."""

from __future__ import annotations

from supernode.provider.job import HeldError, Job

SHARE = 0.8  # of the phase's time that the unit's values may take to be known for fresh


async def permit(job: Job) -> None:
    """Return when the machine may be switched on now.

    Raises:
        HeldError: its unit says no, or nothing that can be believed, and nobody overrode it.
    """
    wanted = job.wanted.interlock
    if wanted is None:
        return
    limit = min(wanted.max_age_s, job.phase_deadline.left * SHARE)
    said = "; ".join(await job.doors.units.look(wanted, job.scene.base, limit))
    verdict = "clear" if not said else "overridden" if wanted.override else "held"
    told = {"unit": wanted.access.unit, "verdict": verdict, "sensors": said, "override": wanted.override}
    if verdict == "overridden" and job.seen.cooling != told:
        job.scene.warn(f"{job.wanted.name}: switched on against its interlock ({said}), overridden: {wanted.override}")
    job.seen.cooling = told
    if verdict == "held":
        raise HeldError(f"interlock: {said}; not switched on")
    job.scene.say("interlock", f"{wanted.access.unit}: {said or 'dry, flowing, fresh'}")
