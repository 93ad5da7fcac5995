"""BIOS: set what differs, restart, read again, until it holds.

Resources: Bios with its Settings object (`@Redfish.Settings`), and the attribute registry that it names (DSP0268). Some
attributes appear only after another was set, hence the cycles.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from supernode.clients.redfish import Json
from supernode.errors import CouldNotRun
from supernode.provider import guard
from supernode.provider.bmc import GRACE_S
from supernode.provider.job import Job, PhaseFailedError
from supernode.provider.timing import Deadline, LateError, until

CYCLES = 3


async def run(job: Job) -> None:
    """See the module.

    Raises:
        PhaseFailedError: a name or value that the machine's registry does not know, or that will not stay.
    """
    wanted = job.wanted.bios
    if not wanted:
        return
    for cycle in range(1, CYCLES + 1):
        bios = await _bios(job)
        different = differences(wanted, bios.get("Attributes") or {})
        job.seen.bios = {k: (bios.get("Attributes") or {}).get(k) for k in wanted}
        if not different:
            return
        if cycle == 1:
            await _check_names(job, bios)
        await guard.permit(job, "restarting")
        job.scene.say("bios", f"setting {', '.join(sorted(different))} (restart {cycle} of at most {CYCLES})")
        await _stage(job, bios, different)
        await _restart(job, different)
    bios = await _bios(job)
    job.seen.bios = {k: (bios.get("Attributes") or {}).get(k) for k in wanted}
    if left := differences(wanted, bios.get("Attributes") or {}):
        found = bios.get("Attributes") or {}
        lines = [f"{k}: set {v!r}, found {found.get(k)!r}" for k, v in left.items()]
        raise PhaseFailedError(f"not applied after {CYCLES} restarts: {'; '.join(lines)}{_messages(bios)}")


def differences(wanted: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the wanted attributes that are otherwise; whole numbers may come as floats."""
    return {k: v for k, v in wanted.items() if k not in found or found[k] != v}


def wrong_names(wanted: Mapping[str, Any], attributes: list[Json]) -> list[str]:
    """Hold the wanted attributes against a registry's; return one sentence for each that does not fit.

    Args:
        wanted: name to value.
        attributes: `RegistryEntries.Attributes` of the registry.
    """
    known = {str(a.get("AttributeName")): a for a in attributes}
    problems = []
    for name, value in wanted.items():
        if name not in known:
            close = difflib.get_close_matches(name, known, 3)
            problems.append(f"there is no attribute {name}" + (f" (close: {', '.join(close)})" if close else ""))
        elif known[name].get("ReadOnly"):
            problems.append(f"{name} is read-only")
        else:
            problems += _wrong_value(name, value, known[name])
    return problems


def _wrong_value(name: str, value: Any, attribute: Json) -> list[str]:
    kind = str(attribute.get("Type", ""))
    if kind == "Enumeration":
        allowed = [str(v.get("ValueName")) for v in attribute.get("Value") or ()]
        return [] if value in allowed else [f"{name} may be {', '.join(allowed)}, not {value!r}"]
    types: Mapping[str, type] = {"Integer": int, "String": str, "Boolean": bool, "Password": str}
    if kind in types and type(value) is not types[kind]:
        return [f"{name} takes a value of type {kind}, not {value!r}"]
    low, high = attribute.get("LowerBound"), attribute.get("UpperBound")
    if kind == "Integer" and ((low is not None and value < low) or (high is not None and value > high)):
        return [f"{name} may be {low} to {high}, not {value!r}"]
    return []


async def read(job: Job) -> dict[str, Any]:
    """Return the wanted attributes as they are now."""
    attributes = (await _bios(job)).get("Attributes") or {}
    return {k: attributes.get(k) for k in job.wanted.bios}


async def _bios(job: Job) -> Json:
    path = ((await job.bmc.read()).get("Bios") or {}).get("@odata.id")
    if not path:
        raise PhaseFailedError("the controller offers no BIOS settings")
    return await job.redfish.get(str(path))


async def _check_names(job: Job, bios: Json) -> None:
    registry = await _registry(job, str(bios.get("AttributeRegistry") or ""))
    if registry is None:
        # Without a registry the attributes that the machine lists are all there is to go by.
        attributes: list[Json] = [{"AttributeName": k} for k in bios.get("Attributes") or {}]
    else:
        attributes = list((registry.get("RegistryEntries") or {}).get("Attributes") or ())
    if problems := wrong_names(job.wanted.bios, attributes):
        raise PhaseFailedError("; ".join(problems))


async def _registry(job: Job, name: str) -> Json | None:
    if not name:
        return None
    file = await job.redfish.find(f"/redfish/v1/Registries/{name}")
    if file is None:
        # Some name the file by the registry without its version.
        file = await job.redfish.find(f"/redfish/v1/Registries/{name.split('.')[0]}")
    places = (file or {}).get("Location") or ()
    english = [p for p in places if str(p.get("Language", "en")).startswith("en")] or list(places)
    uri = next((str(p["Uri"]) for p in english if p.get("Uri")), "")
    return await job.redfish.find(uri) if uri else None


async def _stage(job: Job, bios: Json, different: Mapping[str, Any]) -> None:
    """Write the pending values and read them back."""
    settings = (bios.get("@Redfish.Settings") or {}).get("SettingsObject") or {}
    path = str(settings.get("@odata.id") or f"{bios.get('@odata.id')}/Settings")
    before = (await job.redfish.get(path)).get("Attributes") or {}  # brings the ETag, too
    if not differences(different, before):
        return  # pending since an earlier attempt; iDRACs refuse to take it twice
    body: dict[str, Any] = {"Attributes": dict(different)}
    supported = (bios.get("@Redfish.Settings") or {}).get("SupportedApplyTimes") or ()
    if apply := job.bmc.quirks.bios_apply_time or ("OnReset" if "OnReset" in supported else ""):
        body["@Redfish.SettingsApplyTime"] = {"ApplyTime": apply}
    await job.redfish.patch(path, body)
    pending = (await job.redfish.get(path)).get("Attributes") or {}
    if lost := differences(different, pending):
        lines = [f"{k}: set {v!r}, pending {pending.get(k)!r}" for k, v in lost.items()]
        raise CouldNotRun(job.redfish.address, f"the change was accepted and is not pending: {'; '.join(lines)}")


async def _restart(job: Job, different: Mapping[str, Any]) -> None:
    """Go through POST: a running system is asked first, and forced when it does not go down."""
    if await job.bmc.ask_restart():
        try:
            patience = min(2 * GRACE_S, job.phase_deadline.left / 2)
            await _applied(job, different, job.phase_deadline.part(patience))
            return
        except LateError:
            job.scene.say("bios", "the system does not restart by itself: forcing it")
    await job.bmc.restart(job.phase_deadline)
    await _applied(job, different, job.phase_deadline)


async def _applied(job: Job, different: Mapping[str, Any], deadline: Deadline) -> None:
    """Wait until POST took the pending values; one that it dropped shows in the next cycle."""

    async def look() -> bool | None:
        bios = await _bios(job)
        if not differences(different, bios.get("Attributes") or {}):
            return True
        path = ((bios.get("@Redfish.Settings") or {}).get("SettingsObject") or {}).get("@odata.id")
        pending = (await job.redfish.get(str(path))).get("Attributes") or {} if path else different
        # Nothing pending any more: POST is through, and what still differs was refused.
        return True if not set(different) & set(pending) else None

    names = ", ".join(sorted(different))
    await until(look, deadline, f"POST did not apply {names}")


def _messages(bios: Json) -> str:
    entries = (bios.get("@Redfish.Settings") or {}).get("Messages") or ()
    texts = [str(m.get("Message")) for m in entries if m.get("Message")]
    return f" ({'; '.join(texts[:3])})" if texts else ""
