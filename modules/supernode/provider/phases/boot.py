"""Boot: the deploy ISO into the virtual drive (or its address to UEFI), the next boot from it, and a restart."""

from __future__ import annotations

from typing import Any

from supernode.clients import enrolment
from supernode.clients.redfish import Json
from supernode.provider import guard
from supernode.provider.job import Job, PhaseFailedError
from supernode.provider.phases import arming, media


async def run(job: Job) -> None:
    """See the module; subject to the guard, for this is where a disk's content ends."""
    await guard.permit(job, "reinstalling")
    job.before = await enrolment.fetch(job.wanted.enrolment, await job.media_tls())
    try:
        if job.wanted.bmc.get("media") == "uefi-http":
            await _prepare_http(job)
        else:
            await _prepare_drive(job)
        await guard.permit(job, "reinstalling")  # loading an image can take minutes
    except BaseException:  # cancelled, too: what is not booted now may not be booted later
        await arming.disarm(job)
        raise
    job.scene.say("boot", "restarting from the deploy medium")
    await job.bmc.restart(job.phase_deadline)
    job.seen.power = await job.bmc.power()
    job.seen.image, job.seen.host_keys = "", ()
    job.booted = True


async def _prepare_drive(job: Job) -> None:
    device = await media.drive(job)
    job.scene.say("boot", f"inserting {arming.shown(str(job.wanted.media['url']))}")
    await arming.arm(job)
    await media.insert(job, device)
    await job.bmc.override_boot(override(await job.bmc.read(), job.bmc.quirks.cd_targets))


async def _prepare_http(job: Job) -> None:
    """Let UEFI load the ISO itself; it trusts the certificates of `Boot.Certificates` (ComputerSystem 1.16)."""
    url = str(job.wanted.media["url"])
    system = await job.bmc.read()
    store = str(((system.get("Boot") or {}).get("Certificates") or {}).get("@odata.id") or "")
    if not store:
        raise PhaseFailedError(
            "the machine's firmware takes no certificate for booting over HTTPS (no Boot.Certificates)"
        )
    job.scene.say("boot", f"HTTP boot of {arming.shown(url)}")
    await media.upload_ca(job, store)
    await arming.arm(job)
    await job.bmc.override_boot({**override(system, ("UefiHttp",)), "HttpBootUri": url})


def override(system: Json, preferred: tuple[str, ...]) -> dict[str, Any]:
    """Return the Boot properties for one boot from a target.

    Args:
        system: the ComputerSystem, for what it allows.
        preferred: the targets to try, the best first.

    Raises:
        PhaseFailedError: none of them is allowed.
    """
    boot = system.get("Boot") or {}
    allowed = boot.get("BootSourceOverrideTarget@Redfish.AllowableValues")
    target = next((t for t in preferred if allowed is None or t in allowed), None)
    if target is None:
        raise PhaseFailedError(f"cannot boot once from {' or '.join(preferred)}; allowed: {', '.join(allowed or ())}")
    wanted = {"BootSourceOverrideEnabled": "Once", "BootSourceOverrideTarget": target}
    # Setting a mode that holds already is refused by controllers whose BIOS owns it.
    return wanted if boot.get("BootSourceOverrideMode") == "UEFI" else {**wanted, "BootSourceOverrideMode": "UEFI"}
