"""Boot: the deploy ISO to the machine by what can carry it, the next boot from it, and a restart."""

from __future__ import annotations

from supernode.clients import enrolment
from supernode.provider import guard, life
from supernode.provider.job import Job
from supernode.provider.phases import arming, carrier, cooled


async def run(job: Job) -> None:
    """See the module; subject to the guard, for this is where a disk's content ends."""
    await guard.permit(job, "reinstalling")
    await cooled.permit(job)
    job.before = await enrolment.fetch(job.wanted.enrolment, await job.media_tls())
    try:
        job.carrier = await carrier.load(job)
        await guard.permit(job, "reinstalling")  # loading an image can take minutes
    except BaseException:  # cancelled, too: what is not booted now may not be booted later
        await arming.disarm(job)
        raise
    job.scene.say("boot", "restarting from the deploy medium")
    job.traces = await life.traces(job)
    await job.bmc.restart(job.phase_deadline)
    job.seen.power = await job.bmc.power()
    job.seen.image, job.seen.host_keys = "", ()
    job.booted = True
