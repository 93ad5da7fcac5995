"""What hangs on the machine in a slot, and what becomes of each when another takes its place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from supernode.design.model import Design
from supernode.design.rows import Host
from supernode.spec import SlotRecord, SlotState


@dataclass(frozen=True)
class Dependant:
    """One thing that was known of, made for or expected of the machine that left.

    Attributes:
        what: its name, a few words.
        was: as it stood; a secret by its reference.
        becomes: what the next run, or a person, does about it.
        wanted: the next run cannot do its part until a person gives this.
    """

    what: str
    was: str
    becomes: str
    wanted: str = ""


def dependants(design: Design, slot: str, old: SlotRecord, new: SlotRecord) -> tuple[Dependant, ...]:
    """Return what depends on the machine in a slot, in the order in which a run meets it.

    Args:
        design: with the machine that left.
        slot: where it stood.
        old: the slot's record before.
        new: the slot's record after.
    """
    name = design.slots[slot]
    host = design.is_host(name)
    return tuple(_of_host(design, design.host(name), old, new) if host else _of_switch(design, name, old, new))


def _of_host(design: Design, host: Host, old: SlotRecord, new: SlotRecord) -> Iterator[Dependant]:
    yield _password(design, host)
    yield _certificate(design, old, new)
    yield _controller_address(host, old, new)
    yield _seed(old, new)
    yield Dependant("BIOS settings", _list(design.bios(host)), "set anew; the machine restarts for them")
    yield Dependant(
        "firmware baseline", _list(design.firmware(host)), "held against what the new one has; nothing is flashed"
    )
    yield Dependant("installed system", "that of the machine that left", "none is taken over: it is installed")
    yield _host_key(old, "dropped: the system that is installed makes its own, which is pinned then")
    yield _cables(design, host.name)
    serial = f"serial {old.identity.system_serial or 'unknown'}"
    expected = f"expect serial {new.identity.system_serial or 'unknown'}, at all places of {host.name}"
    yield Dependant("checks", serial, expected)
    yield _state(design, host, old, new)


def _password(design: Design, host: Host) -> Dependant:
    wanted = design.environment.bmc
    reference = wanted.password.replace("{slot}", host.slot)
    if wanted.factory is None:
        return Dependant("controller's password", reference, "has to open the new controller, too")
    factory = wanted.factory.password.replace("{slot}", host.slot)
    becomes = f"stays; a controller that refuses it is let in with {factory} and given it; the old one has it still"
    return Dependant("controller's password", reference, becomes)


def _certificate(design: Design, old: SlotRecord, new: SlotRecord) -> Dependant:
    was, pin, ca = old.identity.bmc_fingerprint, new.identity.bmc_fingerprint, design.environment.bmc.ca
    by_ca = f"verified by {ca}" if ca else ""
    becomes = f"pinned: {pin}" if pin else by_ca or "trusted by nothing"
    wanted = "" if pin or ca else "--bmc-fingerprint"
    return Dependant("controller's certificate", f"pinned: {was}" if was else by_ca or "unknown", becomes, wanted)


def _controller_address(host: Host, old: SlotRecord, new: SlotRecord) -> Dependant:
    was = f"{host.bmc} at {old.identity.bmc_mac or 'an unknown MAC address'}"
    whose = new.identity.bmc_mac or "its MAC address"
    return Dependant(
        "controller's address", was, f"set at the new controller, or by DHCP for {whose}; not by supernode"
    )


def _seed(old: SlotRecord, new: SlotRecord) -> Dependant:
    mac = new.identity.management_mac
    becomes = f"made anew, for {mac}" if mac else "names no management port"
    was = f"for {old.identity.management_mac or 'no known port'}"
    return Dependant("seed and deploy medium", was, becomes, "" if mac else "--management-mac")


def _host_key(old: SlotRecord, becomes: str, wanted: str = "") -> Dependant:
    return Dependant("host key", "pinned" if old.identity.ssh_host_key else "not recorded", becomes, wanted)


def _cables(design: Design, name: str) -> Dependant:
    cables = [link.cable for link in design.links_of(name)]
    shown = f"{cables[0]} to {cables[-1]}" if len(cables) > 2 else ", ".join(cables)
    return Dependant("cables", f"{len(cables)}: {shown}", "expected in the same ports as before; checked after the run")


def _state(design: Design, host: Host, old: SlotRecord, new: SlotRecord) -> Dependant:
    becomes = f"{new.state}: in service after a run with nothing against it"
    if new.state is SlotState.SPARE:
        becomes = "spare"
    if new.state is SlotState.QUARANTINED:
        becomes = f"quarantined, until `supernode release {design.name} {host.slot}`"
    return Dependant("state", str(old.state), becomes)


def _of_switch(design: Design, name: str, old: SlotRecord, new: SlotRecord) -> Iterator[Dependant]:
    given = new.identity.ssh_host_key
    yield _host_key(old, "the new switch's is pinned" if given else "dropped", "" if given else "--host-key")
    files = ", ".join(file.path for file in design.switch_files(name))
    yield Dependant("configuration", files, "placed anew, all of it")
    yield _cables(design, name)


def _list(values: object) -> str:
    rows = values.items() if isinstance(values, dict) else ()
    return ", ".join(f"{key} {value}" for key, value in rows) or "none"
