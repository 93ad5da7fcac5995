"""Eject: empty the virtual drive, or forget the address that UEFI booted, and see that the next boot is from disk."""

from __future__ import annotations

from supernode.provider.job import Job
from supernode.provider.phases import arming, media


async def run(job: Job) -> None:
    """See the module; an override that was to hold once and still stands is taken back."""
    if job.wanted.bmc.get("media") != "uefi-http":
        device = await media.drive(job)
        if device.get("Inserted") and not media.is_ours(job, device):
            job.scene.say("eject", f"a medium that is not ours stays in: {device.get('Image') or 'of no name'}")
        elif device.get("Inserted"):
            job.scene.say("eject", "emptying the virtual drive")
            await media.eject(job, device)
    await arming.disarm(job)
    boot = (await job.bmc.read()).get("Boot") or {}
    if job.wanted.bmc.get("media") == "uefi-http" and boot.get("HttpBootUri"):
        job.scene.say("eject", "clearing the address of the HTTP boot")
        await job.bmc.override_boot({"HttpBootUri": ""})
    if boot.get("BootSourceOverrideEnabled") not in ("Disabled", None):
        await job.bmc.override_boot({"BootSourceOverrideEnabled": "Disabled"})
