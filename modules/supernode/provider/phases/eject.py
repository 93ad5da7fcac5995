"""Eject: empty the virtual drive and forget the address that UEFI booted, and see that the next boot is from disk."""

from __future__ import annotations

from supernode.provider.job import Job
from supernode.provider.phases import arming, media


async def run(job: Job) -> None:
    """See the module; whichever carried the medium, for an earlier run may have used the other."""
    for image in await media.foreign(job):
        job.scene.say("eject", f"a medium that is not ours stays in: {image}")
    if device := await media.ours(job):
        job.scene.say("eject", "emptying the virtual drive")
        await media.eject(job, device)
    await arming.disarm(job)
    boot = (await job.bmc.read()).get("Boot") or {}
    if boot.get("HttpBootUri") and _is_ours(job, str(boot["HttpBootUri"])):
        job.scene.say("eject", "clearing the address of the HTTP boot")
        await job.bmc.override_boot({"HttpBootUri": ""}, job.phase_deadline)
    await job.bmc.clear_override(job.phase_deadline)


def _is_ours(job: Job, uri: str) -> bool:
    return uri.rpartition("/")[0] == str(job.wanted.media.get("url") or "").rpartition("/")[0]
