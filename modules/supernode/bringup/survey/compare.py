"""The design of a proposal against what was seen: where a cluster is not what most of it says that it is. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from supernode.bringup.survey.observed import Observations, SwitchSeen
from supernode.bringup.survey.pairing import Machine
from supernode.design import Design, Host, Switch, expectations
from supernode.design import artefacts as sheets
from supernode.records import Finding, Verdict
from supernode.verify import cabling, expected, gates, localise
from supernode.verify.facts.device import DeviceFacts, Facts

_GATES = ("reach", "rails", "ports", "cabling", "fib", "time")


def compare(design: Design, seen: Observations, found: tuple[Machine, ...]) -> list[Finding]:
    """Return everything that is not a pass, each with its cause, cables by both their ends.

    Args:
        design: of the proposal.
        seen: what was observed.
        found: the servers among it.
    """
    rows = [*_hosts(design, found), *_strays(design, found), *_switches(design, seen)]
    return [*rows, *(row for row in judged(design, seen, found) if row.verdict is not Verdict.PASS)]


def judged(design: Design, seen: Observations, found: tuple[Machine, ...]) -> list[Finding]:
    """Run the gates of `verify` that need no traffic of their own, and name the causes."""
    wanted = expected.read(expectations.build(design))
    facts = Facts(_facts(design, seen, found))
    rows = [row for name in _GATES for row in gates.GATES[name](wanted, facts)]
    return localise.explain(wanted, facts, rows)


def unsettled(design: Design, seen: Observations, found: tuple[Machine, ...]) -> frozenset[tuple[str, str, str]]:
    """Return what LLDP says of cables that are not as designed; what it heard before a plug moved lingers a while."""
    wanted = expected.read(expectations.build(design))
    rows = cabling.gate(wanted, Facts(_facts(design, seen, found)))
    return frozenset((row.place, str(row.verdict), row.found) for row in rows if row.verdict is not Verdict.PASS)


def _facts(design: Design, seen: Observations, found: tuple[Machine, ...]) -> dict[str, DeviceFacts]:
    """Return the facts of each designed device: of the host that bears the name, else of what stands in the slot."""
    hosts = {host.hostname: host for host in seen.hosts if host.hostname}
    at = {str(host.address): host for host in seen.hosts}
    standing = {machine.slot: machine.host for machine in found if machine.slot and machine.host}
    rows: dict[str, DeviceFacts] = {}
    for row in design.hosts:
        host = hosts.get(row.name) or standing.get(row.slot) or at.get(str(row.management.ip))
        if host is not None:
            rows[row.name] = host.facts(row.name, host.clock)
    switches = {switch.hostname or switch.address: switch for switch in seen.switches}
    for device in design.switches:
        switch = switches.get(device.name) or switches.get(str(device.management.ip))
        if switch is not None:
            rows[device.name] = switch.facts(device.name)
    return rows


def _hosts(design: Design, found: tuple[Machine, ...]) -> Iterator[Finding]:
    by_slot = {machine.slot: machine for machine in found if machine.slot}
    by_name = {machine.name: machine for machine in found if machine.name}
    for host in design.hosts:
        machine = by_slot.get(host.slot)
        if machine is None and host.name not in by_name:
            cause = f"no machine was seen in {host.slot}, where {host.name} would stand"
            yield Finding("place", host.slot, Verdict.FAIL, host.name, "nothing", cause=cause)
        elif machine is not None:
            yield from _host(host, machine)


def _host(host: Host, machine: Machine) -> Iterator[Finding]:
    if machine.name and machine.name != host.name:
        cause = f"{machine.name} stands in {host.slot}, where the design of the proposal has {host.name}"
        hint = "by its number a host stands in its pool's n-th place: was a machine moved, or allocation.yml left out?"
        yield Finding("place", host.slot, Verdict.FAIL, host.name, machine.name, cause=cause, hint=hint)
    if machine.controller is not None:
        yield from _differs("bmc", host.name, str(host.bmc), machine.controller.address.partition(":")[0])
    port = machine.host.management_port() if machine.host is not None else None
    if port is not None and not {str(host.management)} & set(port.addresses):
        shown = next((a for a in port.addresses if ":" not in a), "none")
        yield from _differs("management", host.name, str(host.management), shown)


def _strays(design: Design, found: Iterable[Machine]) -> Iterator[Finding]:
    """Yield machines for which the design of the proposal has no slot."""
    for machine in found:
        if machine.slot and machine.slot not in design.slots:
            cause = f"{machine.place} stands in {machine.slot}, where the design of the proposal has nothing"
            hint = "do the machines below it have another height, or is a place below it empty?"
            yield Finding("place", machine.slot, Verdict.FAIL, "nothing", machine.place, cause=cause, hint=hint)


def _switches(design: Design, seen: Observations) -> Iterator[Finding]:
    by_name = {switch.hostname: switch for switch in seen.switches if switch.hostname}
    at = {switch.address.partition(":")[0] for switch in seen.switches if switch.why}
    for row in design.configured_switches:
        switch = by_name.pop(row.name, None)
        if switch is not None:
            yield from _switch(row, switch)
        elif str(row.management.ip) not in at:
            cause = f"no switch calls itself {row.name}"
            yield Finding("switch", row.name, Verdict.FAIL, row.name, "nothing", cause=cause)
    for name, switch in by_name.items():
        cause = f"the switch {name} at {switch.address} has no place in the design of the proposal"
        yield Finding("switch", name, Verdict.FAIL, "no such switch", name, cause=cause)


def _switch(row: Switch, switch: SwitchSeen) -> Iterator[Finding]:
    if switch.asn:
        yield from _differs("asn", row.name, str(row.asn), str(switch.asn))
    if switch.loopback:
        yield from _differs("loopback", row.name, str(row.loopback), switch.loopback)
    port = switch.management_port()
    if port is not None and str(row.management) not in port.addresses:
        shown = next((a for a in port.addresses if ":" not in a), "none")
        yield from _differs("management", row.name, str(row.management), shown)


def _differs(check: str, place: str, want: str, have: str) -> Iterator[Finding]:
    if want != have:
        cause = f"{place} has another {check} address or number than the design of the proposal: {have}, not {want}"
        hint = "were numbers given before, by an allocation.yml that this proposal does not have?"
        yield Finding(check, place, Verdict.FAIL, want, have, cause=cause, hint=hint)


def artefacts(design: Design) -> dict[str, str]:
    """Return everything that leaves a design, by name, for comparing two of them."""
    found = {sheet.name: "".join(sheet.lines(design)) for sheet in sheets.of(design, sheets.SHEETS)}
    for host in design.hosts:
        found |= {f"{host.name}{file.path}": file.content for file in design.files(host.name)}
    for switch in design.switches:
        found |= {f"{switch.name}{file.path}": file.content for file in design.switch_files(switch.name)}
    return found


def differences(one: Design, other: Design) -> tuple[str, ...]:
    """Return the names of the artefacts in which two designs differ."""
    left, right = artefacts(one), artefacts(other)
    return tuple(name for name in sorted({*left, *right}) if left.get(name) != right.get(name))
