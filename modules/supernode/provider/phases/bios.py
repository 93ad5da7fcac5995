"""BIOS: set what differs, restart, read again, until it holds.

Resources: Bios with its Settings object (`@Redfish.Settings`), and the attribute registry that it names (DSP0268). Some
attributes appear only after another was set, hence the cycles.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from supernode.clients.redfish import Answer, Json
from supernode.provider import guard, life, readback
from supernode.provider.bmc import GRACE_S
from supernode.provider.job import Job, PhaseFailedError
from supernode.provider.phases import cooled
from supernode.provider.readback import Change
from supernode.provider.timing import Deadline, LateError, until

CYCLES = 3
PATIENT = 2  # restarts that may leave settings pending
SETTLED_S = 90.0  # what still waits so long after POST was over is left waiting; inventories come late


async def run(job: Job) -> None:
    """See the module.

    Raises:
        PhaseFailedError: a name or value that the machine's registry does not know, or that will not stay.
    """
    wanted = job.wanted.bios
    if not wanted:
        return
    waiting = 0
    for cycle in range(1, CYCLES + 1):
        bios = await _bios(job)
        different = differences(wanted, bios.get("Attributes") or {})
        job.seen.bios = {k: (bios.get("Attributes") or {}).get(k) for k in wanted}
        if not different:
            return
        if cycle == 1:
            await _check_names(job, bios)
        await guard.permit(job, "restarting")
        await cooled.permit(job)  # what is staged and cannot be applied would come with anybody's next restart
        job.scene.say("bios", f"setting {', '.join(sorted(different))} (restart {cycle} of at most {CYCLES})")
        await _stage(job, bios, different)
        waiting += not await _restart(job, different, job.phase_deadline.part(_share(job, cycle)))
        if waiting == PATIENT:
            await _give_up(job, different)
    bios = await _bios(job)
    job.seen.bios = {k: (bios.get("Attributes") or {}).get(k) for k in wanted}
    if left := differences(wanted, bios.get("Attributes") or {}):
        found = bios.get("Attributes") or {}
        lines = [f"{k}: set {v!r}, found {found.get(k)!r}" for k, v in left.items()]
        raise PhaseFailedError(f"not applied after {CYCLES} restarts: {'; '.join(lines)}{_messages(bios)}")


def _share(job: Job, cycle: int) -> float:
    """Return the seconds that one restart may take, so that a second one fits in, and the reason after it."""
    left = job.phase_deadline.left
    return left * 0.45 if cycle == 1 else left * 0.8


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
    path = _settings_path(bios)
    before = (await job.redfish.get(path)).get("Attributes") or {}
    if not differences(different, before):
        return  # pending since an earlier attempt; iDRACs refuse to take it twice
    body: dict[str, Any] = {"Attributes": dict(different)}
    supported = (bios.get("@Redfish.Settings") or {}).get("SupportedApplyTimes") or ()
    if apply := job.bmc.quirks.bios_apply_time or ("OnReset" if "OnReset" in supported else ""):
        body["@Redfish.SettingsApplyTime"] = {"ApplyTime": apply}

    async def send() -> Answer:
        await job.redfish.get(path)  # brings the ETag
        return await job.redfish.patch(path, body)

    async def missing() -> str:
        pending = (await job.redfish.get(path)).get("Attributes") or {}
        lost = differences(different, pending)
        lines = [f"{k}: set {v!r}, pending {pending.get(k)!r}" for k, v in lost.items()]
        return f"the change is not pending ({'; '.join(lines)})" if lines else ""

    change = Change("the BIOS settings", send, missing)
    await readback.make(job.redfish, change, job.phase_deadline, job.bmc.say)


def _settings_path(bios: Json) -> str:
    settings = (bios.get("@Redfish.Settings") or {}).get("SettingsObject") or {}
    return str(settings.get("@odata.id") or f"{bios.get('@odata.id')}/Settings")


async def _restart(job: Job, different: Mapping[str, Any], deadline: Deadline) -> bool:
    """Go through POST: a running system is asked first, and forced when it does not go down.

    Returns:
        whether nothing is pending any more.
    """
    if await job.bmc.ask_restart():
        try:
            await _applied(job, different, deadline.part(min(2 * GRACE_S, deadline.left / 2)))
            return True
        except LateError:
            job.scene.say("bios", "the system does not restart by itself: forcing it")
    job.traces = await life.traces(job)
    await job.bmc.restart(deadline)
    try:
        await _applied(job, different, deadline, fresh=True)
        return True
    except LateError as error:
        job.scene.say("bios", f"{error}; they are still pending")
        return False


async def _give_up(job: Job, different: Mapping[str, Any]) -> None:
    """Say why settings are pending still: the machine does nothing, does not get through POST, or POST ignores them.

    Raises:
        PhaseFailedError, LateError: as it is.
    """
    if dead := await life.missing(job):
        raise PhaseFailedError(f"{dead}, in two starts")
    if stuck := await life.in_post(job):
        raise LateError(f"POST did not apply {', '.join(sorted(different))}: {stuck}", job.phase_deadline.seconds)
    raise PhaseFailedError(f"BIOS settings stay pending after two restarts: {await _pending(job, different)}")


async def _applied(job: Job, different: Mapping[str, Any], deadline: Deadline, fresh: bool = False) -> None:
    """Wait until POST took the pending values; one that it dropped shows in the next cycle.

    A machine that was switched on just now (`fresh`) shows an early boot progress and then a late one: POST is over.

    Raises:
        LateError: they are still pending, at the deadline or well after POST was seen to end.
    """
    early, over = False, Deadline(deadline.left)

    async def look() -> bool | None:
        nonlocal early, over
        bios = await _bios(job)
        if not differences(different, bios.get("Attributes") or {}):
            return True
        pending = (await job.redfish.get(_settings_path(bios))).get("Attributes") or {}
        # Nothing pending any more: POST is through, and what still differs was refused.
        if not set(different) & set(pending):
            return True
        if fresh:
            through = life.progress_of(await job.bmc.read()) in life.THROUGH
            if not (early and through):
                over = Deadline(SETTLED_S)
            early = early or not through
            if early and through and over.left <= 0:
                raise LateError(what, deadline.seconds - deadline.left)
        return None

    what = f"POST did not apply {', '.join(sorted(different))}"
    await until(look, deadline, what)


async def _pending(job: Job, different: Mapping[str, Any]) -> str:
    """Say of each setting what was set, what holds and what is pending."""
    bios = await _bios(job)
    found = bios.get("Attributes") or {}
    pending = (await job.redfish.get(_settings_path(bios))).get("Attributes") or {}
    lines = [f"{k}: set {v!r}, found {found.get(k)!r}, pending {pending.get(k)!r}" for k, v in different.items()]
    return "; ".join(lines) + _messages(bios)


def _messages(bios: Json) -> str:
    entries = (bios.get("@Redfish.Settings") or {}).get("Messages") or ()
    texts = [str(m.get("Message")) for m in entries if m.get("Message")]
    return f" ({'; '.join(texts[:3])})" if texts else ""
