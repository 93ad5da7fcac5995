"""The controller's clock: one that stands in 1970 finds no certificate valid, so it is set before it verifies one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from supernode.clients.redfish import Answer, RedfishError
from supernode.provider import readback
from supernode.provider.job import Job
from supernode.provider.readback import Change, NotDoneError

TOLERANCE = timedelta(minutes=5)


async def right(job: Job) -> None:
    """Set the clock when it is wrong; one that cannot be set is said, and what comes of it shows by itself."""
    wrong = await _wrong(job)
    if not wrong:
        return
    job.scene.say("boot", f"{wrong}: setting it, for no certificate can be verified then")
    path = job.bmc.manager

    async def send() -> Answer:
        return await job.redfish.patch(path, {"DateTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S+00:00")})

    try:
        change = Change("DateTime", send, lambda: _wrong(job))
        await readback.make(job.redfish, change, job.phase_deadline, job.bmc.say)
    except (RedfishError, NotDoneError) as error:
        job.scene.warn(f"{job.wanted.name}: {wrong}, and it cannot be set: {error}")


async def _wrong(job: Job) -> str:
    """Say what the controller's clock reads, when that is far off; one that tells no time is not wrong."""
    told = str((await job.redfish.get(job.bmc.manager)).get("DateTime") or "") if job.bmc.manager else ""
    try:
        at = datetime.fromisoformat(told)
    except ValueError:
        return ""
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return "" if abs(at - datetime.now(UTC)) < TOLERANCE else f"the BMC's clock reads {told}"
