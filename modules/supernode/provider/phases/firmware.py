"""Firmware: the baseline is a condition, not a wish: what differs is reported, nothing is flashed here."""

from __future__ import annotations

from collections.abc import Mapping

from supernode.clients.redfish import Json
from supernode.provider.job import Job, PhaseFailedError


async def run(job: Job) -> None:
    """See the module.

    Raises:
        PhaseFailedError: a component is missing or has another version; all of them are named.
    """
    if not job.wanted.firmware:
        return
    job.scene.say("firmware", f"comparing {len(job.wanted.firmware)} components with the baseline")
    job.seen.firmware = await read(job)
    contradiction = await _contradiction(job) if differences(job.wanted.firmware, job.seen.firmware) else ""
    if contradiction and await job.bmc.reset_itself(job.phase_deadline):
        job.scene.say("firmware", f"{contradiction}: the inventory was stale; read again after the BMC was reset")
        job.seen.firmware = await read(job)
        contradiction = await _contradiction(job)
    if problems := differences(job.wanted.firmware, job.seen.firmware):
        stale = f" (the inventory contradicts itself: {contradiction})" if contradiction else ""
        raise PhaseFailedError("not at the baseline: " + "; ".join(problems) + stale)


def differences(wanted: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    """Return one sentence with both versions for each component that is not as wanted."""
    return [
        f"{name}: baseline {version}, found {found[name]}"
        if name in found
        else f"{name}: baseline {version}, not listed"
        for name, version in wanted.items()
        if found.get(name) != version
    ]


async def _contradiction(job: Job) -> str:
    """Say where the firmware inventory and the resource that runs the firmware disagree; "" when nowhere.

    ComputerSystem.BiosVersion and Manager.FirmwareVersion are what runs; the inventory is what was collected once.
    """
    manager = (await job.redfish.find(job.bmc.manager)) or {} if job.bmc.manager else {}
    runs = {"BIOS": (await job.bmc.read()).get("BiosVersion"), "BMC": manager.get("FirmwareVersion")}
    listed = job.seen.firmware or {}
    lines = [
        f"FirmwareInventory lists {name} {listed[name]}, {version} runs"
        for name, version in runs.items()
        if version and name in listed and listed[name] != version
    ]
    return "; ".join(lines)


async def read(job: Job) -> dict[str, str]:
    """Return the wanted components' versions; a component is found by the Id or Name of its SoftwareInventory."""
    root = await job.redfish.get("/redfish/v1/")
    service_path = str((root.get("UpdateService") or {}).get("@odata.id") or "/redfish/v1/UpdateService")
    service: Json = await job.redfish.find(service_path) or {}
    collection = str((service.get("FirmwareInventory") or {}).get("@odata.id") or f"{service_path}/FirmwareInventory")
    versions: dict[str, str] = {}
    for entry in await job.redfish.members(collection):
        for key in ("Name", "Id"):
            if entry.get(key) in job.wanted.firmware and entry.get("Version"):
                versions[str(entry[key])] = str(entry["Version"])
    return versions
