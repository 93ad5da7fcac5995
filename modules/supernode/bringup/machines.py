"""What a run says about the machines it touched: the next machines.yml, computed, never edited."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from supernode.design import Design, Host
from supernode.records import DeviceOutput, Finding, Outputs, Verdict
from supernode.spec import Machines, SlotRecord


class Counted(Protocol):
    """What the playbooks counted for one host."""

    @property
    def good(self) -> bool:
        """Whether the host ran to its end."""


_AGAINST = (Verdict.FAIL, Verdict.UNKNOWN)  # what was not seen is not healthy


def hosts_concerned(design: Design, finding: Finding) -> set[str]:
    """Return the hosts that a finding stands against: by its place, the cables that it names, or what cools them."""
    names = {host.name for host in design.hosts}
    racks = {rack for unit in design.cooling if unit.name == finding.place for rack in unit.racks}
    by_cable = {link.cable: {link.a_device, link.b_device} & names for link in design.links}
    found = {finding.place.split(":")[0]} & names | {host.name for host in design.hosts if host.rack in racks}
    for cable in (*finding.cables, finding.place):
        found |= by_cable.get(cable, set())
    return found


def after(
    machines: Machines,
    design: Design,
    outputs: Outputs,
    findings: Iterable[Finding],
    run_id: str,
    unconfigured: Mapping[str, str] | None = None,
) -> Machines:
    """Return the machines as they stand after a verified run.

    A designed host goes into service when it is ready, configured, and nothing failing or unseen stands against it. One
    that is in service stays so: a finding is reported, and taking a machine out is a decision of its own. A spare stays
    a spare. A record that does not change keeps the run that it had.

    Args:
        machines: as they stood when the run began.
        design: what was brought up.
        outputs: what the engine said of each device.
        findings: what the checks said.
        run_id: is written into the records that change.
        unconfigured: hosts on which the playbooks did not run to their end, with the reason.
    """
    trouble = dict(unconfigured or {})
    for finding in findings:
        if finding.verdict in _AGAINST:
            for name in hosts_concerned(design, finding):
                trouble.setdefault(name, _said(finding))
    slots = dict(machines.slots)
    for host in design.hosts:
        old = slots.get(host.slot) or SlotRecord()
        slots[host.slot] = _record(old, host, outputs.devices.get(host.name), trouble.get(host.name), run_id)
    return machines.model_copy(update={"slots": slots})


def merge(before: Machines, after: Machines, now: Machines) -> tuple[Machines, tuple[str, ...]]:
    """Lay what a run changed over the document as it is now; a slot that somebody else changed meanwhile is left alone.

    Args:
        before: what the run read when it began.
        after: what it would write.
        now: what lies there.

    Returns:
        The machines to write, and the slots that were left alone.
    """
    changed = {slot: record for slot, record in after.slots.items() if record != before.slots.get(slot)}
    left = tuple(sorted(slot for slot in changed if now.slots.get(slot) != before.slots.get(slot)))
    kept = {slot: record for slot, record in changed.items() if slot not in left}
    return now.model_copy(update={"slots": {**now.slots, **kept}}), left


def unconfigured(design: Design, outputs: Outputs, stats: Mapping[str, Counted]) -> dict[str, str]:
    """Return the ready hosts on which the playbooks did not run to their end, with the reason."""
    ready = [name for name, device in outputs.devices.items() if device.kind == "machine" and device.state == "ready"]
    wanted = {host.name for host in design.hosts if host.state != "quarantined"} & set(ready)
    return {name: "the playbooks did not run to their end" for name in sorted(wanted) if not _good(stats.get(name))}


def never_served(design: Design) -> dict[str, str]:
    """Return the hosts that a run without configuration puts into no service, with the reason: nobody configured them.

    What was the matter with one before stays its reason.
    """
    records = {host.name: design.machines.slots.get(host.slot) or SlotRecord() for host in design.hosts}
    return {
        host.name: records[host.name].reason or "was not configured by this run"
        for host in design.hosts
        if host.state == "active" and records[host.name].state == "new"
    }


def _good(counted: Counted | None) -> bool:
    return counted is not None and counted.good


def in_service(machines: Machines) -> int:
    """Count the machines in service."""
    return sum(record.state == "in_service" for record in machines.slots.values())


def _said(finding: Finding) -> str:
    return finding.cause or f"{finding.check}: wanted {finding.wanted}, found {finding.found or 'nothing'}"


def _record(old: SlotRecord, host: Host, output: DeviceOutput | None, trouble: str | None, run_id: str) -> SlotRecord:
    old = _pinned(old, output)
    if host.state == "quarantined" or old.state in ("quarantined", "drained"):
        return old
    if output is None or output.state != "ready":
        reason = f"{output.state} in {output.phase}: {output.reason}" if output else "not provisioned"
    else:
        reason = trouble or ""
    state = "spare" if host.state == "spare" else "in_service" if not reason or old.state == "in_service" else "new"
    if (state, reason) == (old.state, old.reason):
        return old
    return old.model_copy(update={"state": state, "reason": reason, "run": run_id})


def _pinned(old: SlotRecord, output: DeviceOutput | None) -> SlotRecord:
    """Note the host key that the engine's state pinned: a state that is lost is made again under it, and no other."""
    keys = output.host_keys if output is not None and output.state == "ready" else ()
    plain = [" ".join(key.split()[:2]) for key in keys]
    if not plain or old.identity.ssh_host_key in plain:
        return old
    return old.model_copy(update={"identity": old.identity.model_copy(update={"ssh_host_key": plain[0]})})
