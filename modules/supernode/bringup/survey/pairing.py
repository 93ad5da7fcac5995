"""Which controller, which host and which slot are one machine; what kind it is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from supernode import catalog
from supernode.bringup.survey.observed import ControllerSeen, HostSeen, Observations
from supernode.catalog import ServerKind
from supernode.design import assigning
from supernode.records import Finding, Verdict

_NAME = re.compile(r"([a-z][a-z0-9]*(?:-[a-z0-9]+)*?)-(\d{3,})")
CLOCK_S = 300.0  # a BMC keeps time by itself, worse than a host
_TELLING = ("system_serial", "uuid", "board_serial", "chassis_serial", "bmc_mac", "management_mac")


@dataclass(frozen=True)
class Machine:
    """One server, from either side.

    Attributes:
        kind: the catalogue's name, "" where it is none that is known.
    """

    controller: ControllerSeen | None
    host: HostSeen | None
    kind: str = ""

    @property
    def name(self) -> str:
        """What the host calls itself, else what a sheet calls it, else ""."""
        label = self.controller.label if self.controller is not None else ""
        return self.host.hostname if self.host is not None else label

    @property
    def slot(self) -> str:
        """Where its chassis says that it stands, else ""."""
        return self.controller.placement.slot if self.controller is not None else ""

    @property
    def at(self) -> str:
        """The address of its controller, else its own."""
        row = self.controller or self.host
        return row.address if row is not None else "?"

    @property
    def place(self) -> str:
        """How findings call it."""
        return self.name or self.slot or self.at

    @property
    def pool(self) -> str:
        """The pool that its name says, else ""."""
        match = _NAME.fullmatch(self.name)
        return match[1] if match else ""

    @property
    def ordinal(self) -> int:
        """The number that its name says, else 0."""
        match = _NAME.fullmatch(self.name)
        return int(match[2]) if match else 0


def machines(seen: Observations) -> tuple[Machine, ...]:
    """Pair controllers with the hosts that show the same serial number or UUID."""
    hosts = [host for host in seen.hosts if not host.why]
    free = {id(host) for host in hosts}
    found = []
    for controller in seen.controllers:
        if controller.why:
            continue
        host = next((h for h in hosts if id(h) in free and _same(controller, h)), None)
        free.discard(id(host))
        found.append(Machine(controller, host, _kind(controller, host)))
    return (*found, *(Machine(None, host, _kind(None, host)) for host in hosts if id(host) in free))


def _same(controller: ControllerSeen, host: HostSeen) -> bool:
    pairs = (
        (controller.identity.get("system_serial", ""), host.serial),
        (controller.identity.get("uuid", ""), host.uuid),
    )
    keys = ("system_serial", "uuid")
    known = [(a, b) for key, (a, b) in zip(keys, pairs, strict=True) if _tells(key, a) and _tells(key, b)]
    return bool(known) and all(a.lower() == b.lower() for a, b in known)


def _tells(key: str, value: str) -> bool:
    return bool(value) and not assigning.value_problems(key, value)


def _kind(controller: ControllerSeen | None, host: HostSeen | None) -> str:
    """Match vendor and model against the catalogue; where no name fits, the GPUs and the ports' PCI addresses."""
    known = [kind for name in catalog.server_kinds() if (kind := catalog.server(name)).cloud is None]
    says = [(row.vendor, row.model) for row in (controller, host) if row is not None and row.model]
    named = [k for k in known if any(_called(k, *row) for row in says)]
    if not named and controller is not None and host is not None:
        named = [k for k in known if controller.gpus == k.gpus and k.nics and _ports(k) <= host.nics.keys()]
    return named[0].name if len(named) == 1 else ""


def _called(kind: ServerKind, vendor: str, model: str) -> bool:
    return kind.model.lower() == model.lower() and kind.vendor.lower() in (vendor.lower(), vendor.lower().split(" ")[0])


def _ports(kind: ServerKind) -> set[str]:
    return {nic.pci for nic in kind.nics}


def identity(machine: Machine) -> dict[str, str]:
    """Return what tells a machine from others, by the names of machines.yml; what says nothing is left out."""
    found = dict(machine.controller.identity) if machine.controller else {}
    if machine.controller is not None and machine.controller.fingerprint:
        found["bmc_fingerprint"] = machine.controller.fingerprint
    if machine.host is not None:
        found.setdefault("system_serial", machine.host.serial)
        found.setdefault("uuid", machine.host.uuid)
        port = machine.host.management_port()
        found["management_mac"] = port.mac if port is not None and port.mac else found.get("management_mac", "")
        found["ssh_host_key"] = machine.host.host_key
    return {key: assigning.plain_value(key, value) for key, value in found.items() if _tells(key, value)}


def doubts(seen: Observations, found: Iterable[Machine]) -> Iterator[Finding]:
    """Yield what is wrong with the machines as such: not reached, of no known kind, placeholders, duplicates."""
    listed = list(found)
    yield from _unreached(seen)
    for machine in listed:
        yield from _unknown(machine)
        for key, value in (machine.controller.identity if machine.controller else {}).items():
            for what, hint in assigning.value_problems(key, value):
                yield Finding(
                    "identity", machine.place, Verdict.FAIL, f"a {key} of its own", value, cause=what, hint=hint or ""
                )
        if machine.controller is not None:
            yield from _health(machine, machine.controller)
    yield from _twice(listed)


def _unreached(seen: Observations) -> Iterator[Finding]:
    for what, rows in (("controller", seen.controllers), ("host", seen.hosts), ("switch", seen.switches)):
        for row in rows:
            if row.why:
                cause = f"{what} {row.address} could not be read: {row.why}"
                yield Finding("reach", row.address, Verdict.FAIL, f"an answer of the {what}", row.why, cause=cause)


def _unknown(machine: Machine) -> Iterator[Finding]:
    controller, host = machine.controller, machine.host
    if not machine.kind and not (host is None and controller is not None and _from_a_sheet(controller)):
        row = controller or host
        found = f"{row.vendor} {row.model}".strip() if row is not None else ""
        kinds = f"known kinds: {', '.join(catalog.server_kinds())}"
        yield Finding("kind", machine.place, Verdict.FAIL, "a kind of the catalogue", found or "no model", hint=kinds,
                      cause=f"{machine.place} is of no known kind: {found or 'it names no model'}")  # fmt: skip
    elif (
        machine.kind
        and host is not None
        and (lacking := sorted(_ports(catalog.server(machine.kind)) - host.nics.keys()))
    ):
        cause = f"{machine.place} shows no network port at {', '.join(lacking)}, where a {machine.kind} has one"
        yield Finding("kind", machine.place, Verdict.FAIL, "every port of its kind", "ports missing", cause=cause)
    if controller is not None and not controller.placement.slot and not controller.unread:
        cause = f"the chassis behind {controller.address} does not say where it stands (Location.Placement)"
        hint = "set rack and unit on the BMC, or give them by a rack sheet"
        yield Finding("place", machine.place, Verdict.FAIL, "rack and unit", "none", cause=cause, hint=hint)
    if controller is None and host is not None:
        cause = f"no controller that was read shows the serial number or UUID of {machine.place}"
        yield Finding("pair", machine.place, Verdict.UNKNOWN, "its controller", "none", cause=cause)


def _lacking(machine: Machine) -> list[str]:
    """Return the PCI addresses at which a machine of its kind has a port and this one shows none."""
    if machine.host is None or not machine.kind:
        return []
    return sorted(_ports(catalog.server(machine.kind)) - machine.host.nics.keys())


def _from_a_sheet(controller: ControllerSeen) -> bool:
    """Tell what was only written down from what was looked at: a sheet may well name no model."""
    return not controller.fingerprint and not controller.model


def _health(machine: Machine, controller: ControllerSeen) -> Iterator[Finding]:
    if controller.unread:
        cause = f"{machine.place}: {len(controller.unread)} resources of its BMC could not be read"
        evidence = tuple(controller.unread.values())[:5]
        yield Finding("reach", machine.place, Verdict.UNKNOWN, "an answer", "an error", cause=cause, evidence=evidence)
    for path, health in controller.unhealthy.items():
        cause = f"{machine.place}: {path} is {health}"
        yield Finding("health", machine.place, Verdict.FAIL, "OK", health, cause=cause)
    if controller.clock_offset_s is not None and abs(controller.clock_offset_s) > CLOCK_S:
        off = f"{controller.clock_offset_s:+.0f} s"
        cause = f"the clock of the BMC of {machine.place} is off by {off}: its logs and certificates are told wrongly"
        yield Finding("clock", machine.place, Verdict.FAIL, f"within {CLOCK_S:g} s", off, cause=cause)


def _twice(found: list[Machine]) -> Iterator[Finding]:
    claims: dict[tuple[str, str], Machine] = {}
    for machine in found:
        rows: Mapping[str, str] = {k: v for k, v in identity(machine).items() if k in _TELLING}
        told = [("mac" if key.endswith("_mac") else key, value, key) for key, value in rows.items()]
        told += [("slot", machine.slot, "slot")] if machine.slot else []
        told += [("name", machine.name, "name")] if machine.name else []
        for space, value, key in told:
            first = claims.setdefault((space, value), machine)
            if first is not machine:
                cause = f"{first.place} ({first.at}) and {machine.place} ({machine.at}) both show {key} {value}"
                yield Finding("identity", machine.place, Verdict.FAIL, f"a {key} of its own", value, cause=cause)
