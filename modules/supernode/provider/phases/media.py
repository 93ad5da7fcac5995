"""The virtual drive: found, filled with an image whose server is verified, and emptied; each step read back."""

from __future__ import annotations

import re
from typing import Any

from supernode.clients.redfish import Answer, Json, RedfishError
from supernode.provider import readback
from supernode.provider.job import CannotCarryError, Job, PhaseFailedError
from supernode.provider.phases import arming
from supernode.provider.readback import Change, NotDoneError

_PEM = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
# Parameters that some controllers ask for, and what to give them; added one by one as they are asked for.
ASKED_FOR = {"TransferProtocolType": "HTTPS", "TransferMethod": "Stream", "Inserted": True, "WriteProtected": True}


async def drive(job: Job) -> Json:
    """Find the drive that takes a CD image by URL: one that holds an image of ours already, else an empty one.

    Raises:
        CannotCarryError: there is none, or each holds what somebody else put there, which stays.
    """
    fit = [d for d in await _drives(job) if _takes_cd(d) and d.get("Id") not in job.bmc.quirks.media_ids_skipped]
    if not fit:
        raise CannotCarryError("the controller offers no virtual drive that takes a CD image")
    ours = [d for d in fit if is_ours(job, d)]
    free = [d for d in fit if _is_empty(d)]
    if not ours and not free:
        held = " and ".join(arming.shown(str(d.get("Image") or "a medium of no name")) for d in fit)
        which = "the only virtual drive holds" if len(fit) == 1 else "all virtual drives hold media that are not ours:"
        raise CannotCarryError(f"{which} {held}" + (", which is not ours" if len(fit) == 1 else ""))
    return (ours or free)[0]


async def ours(job: Job) -> Json | None:
    """Return the drive that holds an image of ours, if any does."""
    return next((d for d in await _drives(job) if d.get("Inserted") and is_ours(job, d)), None)


async def foreign(job: Job) -> list[str]:
    """Name the media that are not ours."""
    held = [d for d in await _drives(job) if d.get("Inserted") and not is_ours(job, d)]
    return [arming.shown(str(d.get("Image") or "of no name")) for d in held]


async def _drives(job: Job) -> list[Json]:
    """Return the virtual drives: the system's own, else its manager's.

    VirtualMedia moved from the Manager to the ComputerSystem with Redfish 2021.1; newer controllers list it at both.
    """
    for owner in filter(None, (job.bmc.system, job.bmc.manager)):
        path = ((await job.redfish.find(owner)) or {}).get("VirtualMedia") or {}
        if path.get("@odata.id") and (devices := await job.redfish.members(str(path["@odata.id"]))):
            return devices
    return []


def is_ours(job: Job, device: Json) -> bool:
    """Tell whether a drive holds an image that our server serves for this machine, of whatever Design.

    An image's address ends in its digest; what comes before that is the machine's own (docs/contracts.md, section 5).
    A drive that does not say what it holds is ours only if this job filled it.
    """
    image, url = str(device.get("Image") or ""), str(job.wanted.media.get("url") or "")
    if not image:
        return bool(device.get("Inserted")) and job.booted
    return bool(url) and image.rpartition("/")[0] == url.rpartition("/")[0]


def _is_empty(device: Json) -> bool:
    """Tell whether a drive is free; Supermicro's show an image that is not connected (community.general#7470)."""
    return not device.get("Inserted") or device.get("ConnectedVia") == "NotConnected"


def _takes_cd(device: Json) -> bool:
    kinds = {str(k).upper() for k in device.get("MediaTypes") or ()}
    return not kinds or bool(kinds & {"CD", "DVD"})


async def insert(job: Job, device: Json) -> None:
    """Put the deploy ISO in, afresh when it is there already: what a controller kept of it has the token of then.

    Raises:
        CannotCarryError: the controller cannot verify the image's server, or says that it took the image and did not.
        RedfishError: it refused the image, and indeed does not hold it.
    """
    url, path = str(job.wanted.media["url"]), str(device["@odata.id"])
    if device.get("Inserted") or device.get("Image"):
        await eject(job, device)
    await _trust(job, device)

    async def missing() -> str:
        return _otherwise(await job.redfish.get(path), url)

    change = Change("InsertMedia", lambda: _insert(job, device, url), missing)
    try:
        await readback.make(job.redfish, change, job.phase_deadline, job.bmc.say)
    except NotDoneError as error:
        raise CannotCarryError(error.what) from error


def _otherwise(found: Json, url: str) -> str:
    """Say what the drive holds instead of an image; some report that under a name of their own."""
    if not found.get("Inserted"):
        return "the drive holds no medium" if not found.get("Image") else "the drive names the image, not inserted"
    other = str(found.get("Image") or url) != url
    return f"the drive holds {arming.shown(str(found['Image']))}, not {arming.shown(url)}" if other else ""


async def _insert(job: Job, device: Json, url: str) -> Answer:
    action = ((device.get("Actions") or {}).get("#VirtualMedia.InsertMedia") or {}).get("target")
    if not action:
        # Older controllers take the image by PATCH.
        body: dict[str, Any] = {"Image": url, "Inserted": True, "WriteProtected": True}
        return await job.redfish.patch(str(device["@odata.id"]), body)
    body = {"Image": url}
    while True:
        try:
            return await job.redfish.post(str(action), body)
        except RedfishError as error:
            lacking = asked_for(error, body)
            if not lacking:
                raise
            body[lacking] = ASKED_FOR[lacking]  # each once, so this ends


def asked_for(error: RedfishError, body: dict[str, Any]) -> str:
    """Return the parameter that a refusal names as missing and that can be given; "" when there is none."""
    missing = any(i.endswith(("ActionParameterMissing", "PropertyMissing", "GeneralError")) for i in error.message_ids)
    text = " ".join(error.messages)
    return next((p for p in ASKED_FOR if missing and p in text and p not in body), "")


async def _trust(job: Job, device: Json) -> None:
    """Give the drive the CA of the image's server and make it verify (VirtualMedia 1.4)."""
    if job.wanted.media.get("verify", True) is False:
        return
    path, store = str(device["@odata.id"]), str((device.get("Certificates") or {}).get("@odata.id") or "")
    if not store or "VerifyCertificate" not in device:
        raise CannotCarryError(
            "the controller cannot verify the server of an image (no VirtualMedia.VerifyCertificate); "
            "update its firmware, or set media.verify to false and keep its network to itself"
        )
    await upload_ca(job, store)
    if device.get("VerifyCertificate") is True:
        return

    async def missing() -> str:
        found = (await job.redfish.get(path)).get("VerifyCertificate")  # brings the ETag, too
        return "" if found is True else f"VerifyCertificate reads {found}"

    async def send() -> Answer:
        await job.redfish.get(path)
        return await job.redfish.patch(path, {"VerifyCertificate": True})

    change = Change("VerifyCertificate", send, missing)
    await readback.make(job.redfish, change, job.phase_deadline, job.bmc.say)


async def upload_ca(job: Job, store: str) -> None:
    """Add the boot server's CA to a collection of certificates; each certificate once."""
    there = {_squeeze(str(c.get("CertificateString") or "")) for c in await job.redfish.members(store)}
    for pem in _PEM.findall(await job.media_ca()):
        if _squeeze(pem) not in there:
            await _upload(job, store, pem)


async def _upload(job: Job, store: str, pem: str) -> None:
    try:
        await job.redfish.post(store, {"CertificateString": pem, "CertificateType": "PEM"})
    except RedfishError as error:
        # Stores that do not show their certificates answer so when it is there already.
        if error.status != 409:
            raise PhaseFailedError(f"the certificate of the boot server was not taken: {error.what}") from error


def _squeeze(pem: str) -> str:
    return "".join(pem.split())


async def eject(job: Job, device: Json) -> None:
    """Empty the drive and read it back.

    Raises:
        NotDoneError: it says that it did, and still reports a medium.
    """
    action = ((device.get("Actions") or {}).get("#VirtualMedia.EjectMedia") or {}).get("target")
    path = str(device["@odata.id"])

    async def missing() -> str:
        found = await job.redfish.get(path)
        held = arming.shown(str(found.get("Image") or "a medium"))
        return f"the virtual drive still reports {held}" if found.get("Inserted") else ""

    async def send() -> Answer:
        if action:
            return await job.redfish.post(str(action), {})
        return await job.redfish.patch(path, {"Image": None, "Inserted": False})

    await readback.make(job.redfish, Change("EjectMedia", send, missing), job.phase_deadline, job.bmc.say)
