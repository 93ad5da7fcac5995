"""The virtual drive: found, filled with an image whose server is verified, and emptied; each step read back."""

from __future__ import annotations

import re
from typing import Any

from supernode.clients.redfish import Json, RedfishError
from supernode.errors import CouldNotRun
from supernode.provider.job import Job, PhaseFailedError
from supernode.provider.phases import arming

_PEM = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
# Parameters that some controllers ask for, and what to give them; added one by one as they are asked for.
ASKED_FOR = {"TransferProtocolType": "HTTPS", "TransferMethod": "Stream", "Inserted": True, "WriteProtected": True}


async def drive(job: Job) -> Json:
    """Find the drive that takes a CD image by URL: the system's own, else its manager's.

    VirtualMedia moved from the Manager to the ComputerSystem with Redfish 2021.1; newer controllers list it at both.
    """
    for owner in filter(None, (job.bmc.system, job.bmc.manager)):
        path = ((await job.redfish.find(owner)) or {}).get("VirtualMedia") or {}
        if not path.get("@odata.id"):
            continue
        devices = await job.redfish.members(str(path["@odata.id"]))
        fit = [d for d in devices if _takes_cd(d) and d.get("Id") not in job.bmc.quirks.media_ids_skipped]
        if fit:
            # One that holds an image of ours already, else an empty one, else the first.
            ours = [d for d in fit if is_ours(job, d)]
            return (ours or [d for d in fit if not d.get("Inserted")] or fit)[0]
    raise PhaseFailedError("the controller offers no virtual drive that takes a CD image")


def is_ours(job: Job, device: Json) -> bool:
    """Tell whether a drive holds an image that our server serves for this machine, of whatever Design.

    An image's address ends in its digest; what comes before that is the machine's own (docs/contracts.md, section 5).
    A drive that does not say what it holds is ours only if this job filled it.
    """
    image, url = str(device.get("Image") or ""), str(job.wanted.media.get("url") or "")
    if not image:
        return bool(device.get("Inserted")) and job.booted
    return bool(url) and image.rpartition("/")[0] == url.rpartition("/")[0]


def _takes_cd(device: Json) -> bool:
    kinds = {str(k).upper() for k in device.get("MediaTypes") or ()}
    return not kinds or bool(kinds & {"CD", "DVD"})


async def insert(job: Job, device: Json) -> None:
    """Put the deploy ISO in, afresh when it is there already: what a controller kept of it has the token of then.

    Raises:
        PhaseFailedError: the controller cannot verify the image's server, or says that it did and did not.
    """
    url, path = str(job.wanted.media["url"]), str(device["@odata.id"])
    if device.get("Inserted") or device.get("Image"):
        await eject(job, device)
    await _trust(job, device)
    await _insert(job, device, url)
    found = await job.redfish.get(path)
    # Some report the image under a name of their own, but none may say that nothing is in.
    if not found.get("Inserted") or (str(found.get("Image") or url) != url):
        seen = f"Inserted={found.get('Inserted')!r} Image={found.get('Image')!r}"
        raise PhaseFailedError(arming.shown(f"the drive was filled and reads back {seen}, not {url}"))


async def _insert(job: Job, device: Json, url: str) -> None:
    action = ((device.get("Actions") or {}).get("#VirtualMedia.InsertMedia") or {}).get("target")
    if not action:
        # Older controllers take the image by PATCH.
        await job.redfish.patch(str(device["@odata.id"]), {"Image": url, "Inserted": True, "WriteProtected": True})
        return
    body: dict[str, Any] = {"Image": url}
    for _ in range(len(ASKED_FOR) + 1):
        try:
            await job.redfish.post(str(action), body)
            return
        except RedfishError as error:
            lacking = asked_for(error, body)
            if not lacking:
                raise
            body[lacking] = ASKED_FOR[lacking]


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
        raise PhaseFailedError(
            "the controller cannot verify the server of an image (no VirtualMedia.VerifyCertificate); "
            "update its firmware, or set media.verify to false and keep its network to itself"
        )
    await upload_ca(job, store)
    if device.get("VerifyCertificate") is not True:
        await job.redfish.get(path)  # brings the ETag
        await job.redfish.patch(path, {"VerifyCertificate": True})
    if (await job.redfish.get(path)).get("VerifyCertificate") is not True:
        raise PhaseFailedError("VerifyCertificate was set and reads back otherwise")


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
            raise


def _squeeze(pem: str) -> str:
    return "".join(pem.split())


async def eject(job: Job, device: Json) -> None:
    """Empty the drive and read it back."""
    action = ((device.get("Actions") or {}).get("#VirtualMedia.EjectMedia") or {}).get("target")
    path = str(device["@odata.id"])
    if action:
        await job.redfish.post(str(action), {})
    else:
        await job.redfish.patch(path, {"Image": None, "Inserted": False})
    if (await job.redfish.get(path)).get("Inserted"):
        raise CouldNotRun(job.redfish.address, "the virtual drive was emptied and still reports a medium")
