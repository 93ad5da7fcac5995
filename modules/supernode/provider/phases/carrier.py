"""What carries the deploy medium to the machine: its virtual drive, or UEFI's own HTTP boot.

The kind's carrier in the catalogue is tried first; where the controller cannot carry it so, the other one. A drive
cannot that takes no CD, is somebody else's, or takes an address and no image; UEFI cannot without HTTP boot or a place
for the certificate of our server.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from supernode.clients.redfish import Json
from supernode.provider.job import CannotCarryError, Job, PhaseFailedError
from supernode.provider.phases import arming, clock, media

Load = Callable[[Job], Awaitable[None]]
NAMES = {"virtual-media": "virtual media", "uefi-http": "UEFI HTTP boot"}


async def load(job: Job) -> str:
    """Bring the medium to the machine and set its next boot to it; returns the carrier.

    Raises:
        PhaseFailedError: no carrier is left; the reason says of each why.
    """
    preferred = str(job.wanted.bmc.get("media") or "virtual-media")
    order = [preferred, *(name for name in CARRIERS if name != preferred)]
    for name in (name for name in order if name not in job.unfit):
        why = "; ".join(job.unfit.values()) or "as its kind asks for"
        job.scene.say("boot", f"by {NAMES[name]}: {why}")
        try:
            await CARRIERS[name](job)
            return name
        except CannotCarryError as error:
            job.unfit[name] = f"{NAMES[name]} cannot be used: {error}"
    raise PhaseFailedError("; ".join(job.unfit.values()))


async def _by_drive(job: Job) -> None:
    device = await media.drive(job)
    wanted = override(await job.bmc.read(), job.bmc.quirks.cd_targets)
    await clock.right(job)
    job.scene.say("boot", f"inserting {arming.shown(str(job.wanted.media['url']))}")
    await arming.arm(job)
    await media.insert(job, device)
    await job.bmc.override_boot(wanted, job.phase_deadline)


async def _by_http(job: Job) -> None:
    """Let UEFI load the ISO itself; it trusts the certificates of `Boot.Certificates` (ComputerSystem 1.16)."""
    url = str(job.wanted.media["url"])
    system = await job.bmc.read()
    wanted = override(system, ("UefiHttp",))
    store = str(((system.get("Boot") or {}).get("Certificates") or {}).get("@odata.id") or "")
    if not store:
        raise CannotCarryError(
            "the machine's firmware takes no certificate for booting over HTTPS (no Boot.Certificates)"
        )
    job.scene.say("boot", f"HTTP boot of {arming.shown(url)}")
    await media.upload_ca(job, store)
    await arming.arm(job)
    await job.bmc.override_boot({**wanted, "HttpBootUri": url}, job.phase_deadline)


CARRIERS: Mapping[str, Load] = {"virtual-media": _by_drive, "uefi-http": _by_http}


def override(system: Json, preferred: tuple[str, ...]) -> dict[str, Any]:
    """Return the Boot properties for one boot from a target.

    Args:
        system: the ComputerSystem, for what it allows.
        preferred: the targets to try, the best first.

    Raises:
        CannotCarryError: none of them is allowed.
    """
    boot = system.get("Boot") or {}
    allowed = boot.get("BootSourceOverrideTarget@Redfish.AllowableValues")
    target = next((t for t in preferred if allowed is None or t in allowed), None)
    if target is None:
        raise CannotCarryError(f"cannot boot once from {' or '.join(preferred)}; allowed: {', '.join(allowed or ())}")
    wanted = {"BootSourceOverrideEnabled": "Once", "BootSourceOverrideTarget": target}
    # Setting a mode that holds already is refused by controllers whose BIOS owns it.
    return wanted if boot.get("BootSourceOverrideMode") == "UEFI" else {**wanted, "BootSourceOverrideMode": "UEFI"}
