"""Machines that are late or dead, and the spares that take over: computed from the documents and the Outputs alone.

Nothing is remembered between the steps, so a run that is killed between two of them is finished by the next one, and a
slot that a person quarantined is replaced like any other. In order, each written to machines.yml before it is done:

    quarantine   who was never in service and came back late or failed; unless so many did that it is the site
    fence        the Design renders their switch ports shut; a slot is fenced when every switch says so
    look         the leaves of the slots that wait and the spares are asked: an update asks nobody who needs no change
    takeover     for each fenced slot that leaves its pool short, a ready spare: its own slot becomes active
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

from supernode.design import Design, Host, parking
from supernode.plan.share import at_once
from supernode.records import DeviceOutput, Finding, Outputs, Verdict
from supernode.spec import Machines, SlotState

CHECK = "provisioned"
_NEVER_SERVED = (SlotState.NEW, SlotState.SPARE)


@dataclass(frozen=True)
class Takeover:
    """A spare that is to serve in the place of a quarantined slot."""

    spare: Host
    slot: str


def missed(design: Design, outputs: Outputs) -> list[Host]:
    """Return the designed hosts, quarantined ones left out, that are late or failed."""
    return [host for host in design.hosts if host.state != "quarantined" and not _ready(outputs, host.name)]


def to_quarantine(design: Design, outputs: Outputs) -> tuple[list[Host], str]:
    """Return who is to be quarantined; and, where too many failed for that, why nobody is.

    Who is in service or drained is never taken out by a run, nor is who was only held by the cooling of its rack; nor a
    rented host, which has no port that could be shut and no spare.
    """
    records = design.machines.slots
    bought = [host for host in design.hosts if not host.cloud]
    made = [h for h in bought if h.slot in records and records[h.slot].state in _NEVER_SERVED]
    came = [(host, outputs.devices[host.name]) for host in made if host.name in outputs.devices]
    failed = [host for host, output in came if output.state != "ready" and not _is_held(output)]
    share = design.environment.machines.quarantine_share
    if len(failed) <= at_once(share, len(made)):
        return failed, ""
    what = f"{len(failed)} of the {len(made)} machines that this run had to make are late or failed"
    return [], f"{what}, more than machines.quarantine_share ({share:g}): it is the site, so nobody is quarantined"


def quarantined(design: Design, outputs: Outputs, hosts: list[Host], run_id: str) -> Machines:
    """Return the machines with these hosts' slots quarantined, each with state, phase and reason."""
    reasons = {host.slot: _said(outputs.devices[host.name]) for host in hosts}
    return parking.park(design.machines, reasons, SlotState.QUARANTINED, run_id)


def activated(design: Design, takeovers: list[Takeover], run_id: str) -> Machines:
    """Return the machines with these spares active, each under the slot that it replaces."""
    slots = dict(design.machines.slots)
    for row in takeovers:
        update = {"state": SlotState.NEW, "reason": "", "run": run_id, "replaces": row.slot}
        slots[row.spare.slot] = slots[row.spare.slot].model_copy(update=update)
    return design.machines.model_copy(update={"slots": slots})


def unfenced(design: Design, outputs: Outputs) -> dict[str, str]:
    """Return the quarantined slots of which a switch does not say that their ports are shut, with the reason."""
    quarantined = [host for host in design.hosts if host.state == "quarantined"]
    leaves = {link.b_device for host in quarantined for link in design.links_of(host.name)}
    trouble = {name: why for name in sorted(leaves) if (why := _not_applied(design, outputs, name))}
    found = {}
    for host in quarantined:
        open_at = [name for link in design.links_of(host.name) if (name := link.b_device) in trouble]
        if open_at:
            found[host.slot] = "; ".join(trouble[name] for name in dict.fromkeys(open_at))
    return found


def _not_applied(design: Design, outputs: Outputs, switch: str) -> str:
    """Say why nobody can tell that a switch runs its designed configuration; empty when it says so itself."""
    if not design.switch_files(switch):
        return f"{switch} is an InfiniBand switch, whose ports nothing shuts: pull the cables by hand"
    output = outputs.devices.get(switch)
    if output is None:
        return f"{switch} was never configured"
    if output.state != "ready":
        return f"{switch} is {_said(output)}"
    for file in design.switch_files(switch):
        if output.applied.get(file.path) != hashlib.sha256(file.content.encode()).hexdigest():
            return f"{switch} does not show the designed {file.path}"
    return ""


def grounds(design: Design, outputs: Outputs) -> tuple[list[str], list[str]]:
    """Return on whose word takeovers rest: the leaves of the slots that wait for one, and the spares of their pools."""
    done = parking.successors(design.machines)
    waiting = [host for host in design.hosts if host.state == "quarantined" and host.slot not in done]
    pools = {host.pool for host in waiting}
    leaves = {link.b_device for host in waiting for link in design.links_of(host.name)}
    spares = [h.name for h in design.hosts if h.state == "spare" and h.pool in pools and _ready(outputs, h.name)]
    return sorted(leaves & set(outputs.devices)), spares


def unanswered(outputs: Outputs, silent: Mapping[str, str]) -> Outputs:
    """Return the Outputs with those late who did not answer a look, for that they were ready is old news."""
    devices = dict(outputs.devices)
    for name, why in silent.items():
        if _ready(outputs, name):
            devices[name] = replace(devices[name], state="late", phase="contact", reason=why)
    return replace(outputs, devices=devices)


def takeovers(design: Design, outputs: Outputs) -> list[Takeover]:
    """Return which ready spare takes over for which fenced slot, where a pool has fewer machines than it asks for.

    A spare of the same scalable unit comes first, then the lowest ordinal. The gap that an unfenced slot leaves stays.
    """
    unsafe = set(unfenced(design, outputs))
    done = parking.successors(design.machines)
    found: list[Takeover] = []
    for pool in design.environment.pools:
        hosts = [host for host in design.hosts if host.pool == pool.name]
        waiting = [host for host in hosts if host.state == "quarantined" and host.slot not in done]
        spares = [host for host in hosts if host.state == "spare" and _ready(outputs, host.name)]
        short = pool.count - sum(host.state == "active" for host in hosts)
        short -= sum(host.slot in unsafe for host in waiting)
        for host in [host for host in waiting if host.slot not in unsafe][: max(0, short)]:
            spare = min(spares, key=lambda s: (s.su != host.su, s.ordinal), default=None)
            if spare is not None:
                spares.remove(spare)
                found.append(Takeover(spare, host.slot))
    return found


def findings(design: Design, outputs: Outputs, site: str = "") -> list[Finding]:
    """Return how each designed host came out of provisioning, and which pools have too few to go on.

    A quarantined slot that was replaced, or that its pool does not need, is advice; one that is missed is a failure.

    Args:
        design: as provisioned.
        outputs: of it.
        site: why nobody was quarantined; it is the cause of every machine that never was in service.
    """
    open_slots, done = unfenced(design, outputs), parking.successors(design.machines)
    full = {pool.name for pool in design.environment.pools if _active(design, pool.name) >= pool.count}
    rows = []
    for host in design.hosts:
        output = outputs.devices.get(host.name)
        if host.state == "quarantined":
            fate = _fate(design, host, done, open_slots, full)
            rows.append(_parked(design, host, output, fate, bad=not (host.slot in done or host.pool in full)))
        else:
            rows.append(_made(design, host, output, site))
    return [*rows, *too_few(design, outputs)]


def too_few(design: Design, outputs: Outputs) -> list[Finding]:
    """Return a failure for each pool with fewer ready machines than its minimum."""
    found = []
    for pool in design.environment.pools:
        hosts = [host for host in design.hosts if host.pool == pool.name and host.state == "active"]
        ready = sum(_ready(outputs, host.name) for host in hosts)
        if ready < pool.minimum:
            cause = f"pool {pool.name} has {ready} of {pool.count} machines ready and cannot go on with fewer than"
            cause += f" {pool.minimum}: the run ended after provisioning"
            wanted = f"at least {pool.minimum} ready (pools[].minimum)"
            found.append(Finding(CHECK, pool.name, Verdict.FAIL, wanted, f"{ready} ready", cause))
    return found


def _fate(design: Design, host: Host, done: Mapping[str, str], open_slots: Mapping[str, str], full: set[str]) -> str:
    """Say what became of a quarantined slot's place."""
    if host.slot in done:
        return f"{design.slots[done[host.slot]]} ({done[host.slot]}) took over"
    if host.slot in open_slots:
        return f"not fenced, so not replaced: {open_slots[host.slot]}"
    if host.pool in full:
        return f"pool {host.pool} has all the machines that it asks for"
    return "no spare is ready to take over"


def _parked(design: Design, host: Host, output: DeviceOutput | None, fate: str, *, bad: bool) -> Finding:
    reason = design.machines.slots[host.slot].reason or "no reason given"
    return Finding(
        CHECK,
        host.name,
        Verdict.FAIL if bad else Verdict.ADVICE,
        "ready",
        f"quarantined: {reason}",
        f"{host.name} ({host.slot}) is quarantined: {reason}; {fate}",
        evidence=output.evidence if output else (),
        hint=f"mend or exchange the machine, then `supernode release {design.name} {host.slot}`",
    )


def _made(design: Design, host: Host, output: DeviceOutput | None, site: str) -> Finding:
    if output is not None and output.state == "ready":
        return _ready_finding(host, output)
    said = _said(output) if output else "not provisioned"
    record = design.machines.slots.get(host.slot)
    own = f"{host.name} ({host.slot}) is {said}"
    held = output is not None and _is_held(output)
    cause = site if site and not held and record is not None and record.state in _NEVER_SERVED else own
    evidence = output.evidence if output else ()
    hint = "see to the cooling and run again; or say in cooling.interlock.override why it may run" if held else ""
    return Finding(CHECK, host.name, Verdict.FAIL, "ready", said, cause, evidence=evidence, hint=hint)


def _ready_finding(host: Host, output: DeviceOutput) -> Finding:
    """Return a pass; and advice, for as long as it runs so, of a machine that was switched on against its interlock."""
    if output.cooling.get("verdict") != "overridden":
        return Finding(CHECK, host.name, Verdict.PASS, "ready", "ready")
    sensors, reason = output.cooling.get("sensors", ""), output.cooling.get("override", "")
    cause = f"{host.name} ({host.slot}) was switched on against its interlock: {sensors}; overridden: {reason}"
    hint = "take the override out of cooling.interlock once the cooling is in order"
    return Finding(CHECK, host.name, Verdict.ADVICE, "ready", f"ready; {sensors}", cause, hint=hint)


def _is_held(output: DeviceOutput) -> bool:
    """Tell whether nothing but its rack's cooling kept a machine from being switched on."""
    return output.state != "ready" and output.cooling.get("verdict") == "held"


def _active(design: Design, pool: str) -> int:
    return sum(host.pool == pool and host.state == "active" for host in design.hosts)


def _ready(outputs: Outputs, name: str) -> bool:
    output = outputs.devices.get(name)
    return output is not None and output.state == "ready"


def _said(output: DeviceOutput) -> str:
    return f"{output.state} in {output.phase or 'contact'}: {output.reason or 'no reason given'}"
