"""Deploy: wait until the machine itself reports that the image is written and its first boot is over."""

from __future__ import annotations

from supernode.clients import enrolment
from supernode.clients.enrolment import Enrolment
from supernode.errors import CouldNotRun
from supernode.provider.job import Job, PhaseFailedError
from supernode.provider.phases import boot
from supernode.provider.timing import until


async def run(job: Job) -> None:
    """See the module.

    Raises:
        PhaseFailedError: the machine reports a failure, or another image.
        LateError: no complete report by the deadline.
    """
    context = await job.media_tls()
    url = job.wanted.enrolment
    if not job.booted and not _arrived(job, await enrolment.fetch(url, context)):
        # Resumed where it stopped, and nobody has reported since: what was booted then is not coming.
        await boot.run(job)
    said = ""
    trouble = ""

    async def look() -> Enrolment | None:
        nonlocal said, trouble
        try:
            record = await enrolment.fetch(url, context)
        except CouldNotRun as error:
            trouble = f" ({error})"  # the server may come back; the deadline ends it
            return None
        trouble = ""
        if record is None or record == job.before:
            return None
        if record.failed:
            raise PhaseFailedError(f"the machine reports {record.phase} {record.state}: {record.detail}")
        if (line := f"{record.phase} {record.state} {record.detail}".strip()) != said:
            said = line
            job.scene.say("deploy", line)
        return record if record.complete else None

    job.scene.say("deploy", "waiting for the machine's report")
    record = await until(
        look, job.phase_deadline, f"no complete report (last: {said or 'none'}){trouble}", first_s=0.25
    )
    # Where the report names no image, the login that follows asks the host.
    if record.image and record.image != job.wanted.image:
        raise PhaseFailedError(f"the machine reports image {record.image!r}, wanted {job.wanted.image!r}")
    if job.booted or not job.pinned:
        job.seen.host_keys = record.host_keys


def _arrived(job: Job, record: Enrolment | None) -> bool:
    return record is not None and record.complete and record.image in ("", job.wanted.image)
