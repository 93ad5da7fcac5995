"""What a run says about the machines it touched: the next machines.yml, computed, never edited."""

from __future__ import annotations

from collections.abc import Iterable

from supernode.design import Design, Host
from supernode.records import DeviceOutput, Finding, Outputs, Verdict
from supernode.spec import Machines, SlotRecord


def hosts_concerned(design: Design, finding: Finding) -> set[str]:
    """Return the hosts that a failing finding stands against: by its place, or by the cables that it names."""
    names = {host.name for host in design.hosts}
    by_cable = {link.cable: {link.a_device, link.b_device} & names for link in design.links}
    found = {finding.place.split(":")[0]} & names
    for cable in (*finding.cables, finding.place):
        found |= by_cable.get(cable, set())
    return found


def after(machines: Machines, design: Design, outputs: Outputs, findings: Iterable[Finding], run_id: str) -> Machines:
    """Return the machines as they stand after a verified run.

    A designed host goes into service when it is ready and nothing failing stands against it. One that is in service
    stays so: a finding is reported, and taking a machine out is a decision of its own. A spare stays a spare. A record
    that does not change keeps the run that it had.
    """
    failing: dict[str, str] = {}
    for finding in findings:
        if finding.verdict is Verdict.FAIL:
            for name in hosts_concerned(design, finding):
                failing.setdefault(name, _said(finding))
    slots = dict(machines.slots)
    for host in design.hosts:
        slots[host.slot] = _record(
            slots.get(host.slot) or SlotRecord(), host, outputs.devices.get(host.name), failing.get(host.name), run_id
        )
    return machines.model_copy(update={"slots": slots})


def _said(finding: Finding) -> str:
    return finding.cause or f"{finding.check}: wanted {finding.wanted}, found {finding.found}"


def _record(old: SlotRecord, host: Host, output: DeviceOutput | None, trouble: str | None, run_id: str) -> SlotRecord:
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


def in_service(machines: Machines) -> int:
    """Count the machines in service."""
    return sum(record.state == "in_service" for record in machines.slots.values())
