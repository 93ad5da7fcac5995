"""Deploy: wait until the machine itself reports that the image is written and its first boot is over."""

from __future__ import annotations

from dataclasses import dataclass

from supernode.clients import enrolment
from supernode.clients.enrolment import Enrolment
from supernode.errors import CouldNotRun
from supernode.provider import guard, life
from supernode.provider.job import Job, PhaseFailedError
from supernode.provider.phases import arming, boot, carrier
from supernode.provider.timing import Deadline, LateError, until

REASON_S = 15.0  # kept back to find out why
FIRST_REPORT = 0.4  # share of the phase's time after which a machine that reported nothing is looked at


async def run(job: Job) -> None:
    """See the module.

    Raises:
        PhaseFailedError: the machine reports a failure, or another image.
        LateError: no complete report by the deadline.
    """
    record = await enrolment.fetch(job.wanted.enrolment, await job.media_tls())
    if not job.booted and not _arrived(job, record):
        # Resumed where it stopped, and nobody has reported since: what was booted then is not coming.
        await boot.run(job)
    job.scene.say("deploy", "waiting for the machine's report")
    record = await _awaited(job, _Watch(job))
    # Where the report names no image, the login that follows asks the host.
    if record.image and record.image != job.wanted.image:
        raise PhaseFailedError(f"the machine reports image {record.image!r}, wanted {job.wanted.image!r}")
    if job.booted or not job.pinned:
        job.seen.host_keys = record.host_keys


async def _awaited(job: Job, watch: _Watch) -> Enrolment:
    """Return the complete report; what did not come by then is told with what the controller shows."""
    left = job.phase_deadline.left
    deadline = job.phase_deadline.part(max(left - REASON_S, left * 0.8))
    try:
        if job.booted:
            await _begun(job, watch, deadline)
        return await _complete(watch, deadline)
    except (LateError, PhaseFailedError) as error:
        await _let_go(job)
        if isinstance(error, PhaseFailedError):
            raise
        raise LateError(await _silent(job, watch), job.phase_deadline.seconds) from error


async def _let_go(job: Job) -> None:
    """Take back an override that holds for every boot: a machine given up on may not deploy itself for ever."""
    try:
        if job.booted and await job.bmc.override() == "Continuous":
            await job.bmc.clear_override(job.phase_deadline)
    except CouldNotRun as error:
        job.scene.warn(f"{job.wanted.name}: every start may boot the deploy medium from now on: {error}")


def _arrived(job: Job, record: Enrolment | None) -> bool:
    return record is not None and record.complete and record.image in ("", job.wanted.image)


@dataclass
class _Watch:
    """The machine's reports, followed.

    Attributes:
        said: the last one, for a person.
        trouble: why it could not be asked for, in parentheses.
    """

    job: Job
    said: str = ""
    trouble: str = ""

    async def look(self) -> Enrolment | None:
        """Return a report that was not there before this boot."""
        try:
            record = await enrolment.fetch(self.job.wanted.enrolment, await self.job.media_tls())
        except CouldNotRun as error:
            self.trouble = f" ({error})"  # the server may come back; the deadline ends it
            return None
        self.trouble = ""
        if record is None or record == self.job.before:
            return None
        if record.failed:
            raise PhaseFailedError(f"the machine reports {record.phase} {record.state}: {record.detail}")
        if (line := f"{record.phase} {record.state} {record.detail}".strip()) != self.said:
            self.said = line
            self.job.scene.say("deploy", line)
        return record


async def _begun(job: Job, watch: _Watch, deadline: Deadline) -> None:
    """Wait for the first report, and see then that this boot was the only one from the medium.

    A machine that reports nothing for long is started once more where that may help.
    """
    try:
        await _reported(watch, deadline.part(deadline.left * FIRST_REPORT))
    except LateError:
        await _again(job)
        await _reported(watch, deadline)
    await job.bmc.clear_override(deadline)


async def _reported(watch: _Watch, deadline: Deadline) -> None:
    await until(watch.look, deadline, "no report", first_s=0.25, longest_s=2.0)


async def _again(job: Job) -> None:
    """Start a machine once more that did not begin: one that shows no life, or from another carrier than the last."""
    if why := await life.missing(job):
        job.scene.say("deploy", f"{why}: switching it off and on once more")
        await guard.permit(job, "restarting")
        await job.bmc.restart(job.phase_deadline)
    elif not await life.in_post(job) and (why := await _unfetched(job)):
        job.scene.say("deploy", why)
        job.unfit[job.carrier] = f"{carrier.NAMES[job.carrier]} brings nothing ({why})"
        try:
            await boot.run(job)
        except (PhaseFailedError, CouldNotRun) as error:
            job.scene.say("deploy", f"nothing else can carry the medium: {error}")


async def _unfetched(job: Job) -> str:
    """Say that nobody fetched the medium that this boot was to come from; "" when it was fetched.

    The boot server takes the mark of an armed machine away when it hands out the medium.
    """
    if not await arming.armed(job):
        return ""
    if job.carrier == "virtual-media":
        return "the BMC says that the medium is inserted and never fetched it from the boot server"
    return "the machine's firmware never fetched the medium from the boot server"


async def _complete(watch: _Watch, deadline: Deadline) -> Enrolment:
    async def look() -> Enrolment | None:
        record = await watch.look()
        return record if record is not None and record.complete else None

    return await until(look, deadline, "no complete report", first_s=0.25)


async def _silent(job: Job, watch: _Watch) -> str:
    """Say what is known of a machine that did not report in time."""
    text = f"no complete report (last: {watch.said or 'none'}){watch.trouble}"
    if watch.said or not job.booted:
        return text
    try:
        why = await life.missing(job) or await life.in_post(job)
        why = why or "; ".join(filter(None, [*job.unfit.values(), await _unfetched(job)]))
    except CouldNotRun as error:
        why = f"the controller does not say why: {error}"
    return f"{why}; {text}" if why else text
