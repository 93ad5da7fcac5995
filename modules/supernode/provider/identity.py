"""Which machine a controller speaks of: what it says of itself, and which of several systems is ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from supernode.clients.redfish import ROOT, Json, Redfish, RedfishError
from supernode.errors import CouldNotRun
from supernode.provider import quirks
from supernode.provider.bmc import Bmc, link

# What vendors leave where no value was programmed; never an identity.
PLACEHOLDERS = {
    "",
    "none",
    "null",
    "unknown",
    "n/a",
    "not specified",
    "default string",
    "to be filled by o.e.m.",
    "0123456789",
}
PLACEHOLDER_UUIDS = {"03000200-0400-0500-0006-000700080009", "00000000-0000-0000-0000-000000000000"}


async def find(redfish: Redfish, wanted: Mapping[str, str] | None = None) -> Bmc:
    """Log in and find the server that this controller manages: the one of the wanted identity, wherever it is listed.

    Raises:
        CouldNotRun: no server, or no answer.
    """
    root = await redfish.get(ROOT)
    vendor = str(root.get("Vendor") or next(iter(root.get("Oem") or {}), ""))
    collection = link(root, "Systems")
    if not collection:
        raise CouldNotRun(redfish.address, "its service root names no Systems")
    servers = await _servers(redfish, collection, quirks.of(vendor).system_prefixes_skipped)
    if not servers:
        raise CouldNotRun(redfish.address, "manages no server", "is this the address of a server's controller?")
    system = _ours(servers, wanted or {})
    links = system.get("Links") or {}
    how = quirks.of(vendor, str(system.get("Manufacturer") or ""), str(system.get("Model") or ""))
    return Bmc(redfish, how, str(system["@odata.id"]), _first(links, "ManagedBy"), _first(links, "Chassis"))


async def _servers(redfish: Redfish, collection: str, skipped: tuple[str, ...]) -> list[Json]:
    """Fetch the systems that can be servers; a board in the server may not even answer while that is off."""
    entries = (await redfish.get(collection)).get("Members") or ()
    paths = [str(e.get("@odata.id") or "") for e in entries]
    paths = [p for p in paths if p and not p.rstrip("/").rpartition("/")[2].startswith(skipped)]
    servers: list[Json] = []
    trouble: RedfishError | None = None
    for path in paths:
        try:
            system = await redfish.find(path)
        except RedfishError as error:
            trouble = error
            continue
        servers += [{"@odata.id": path, **system}] if system else []
    if trouble is not None and not servers:
        raise trouble
    return servers


def _ours(servers: list[Json], wanted: Mapping[str, str]) -> Json:
    """Choose by identity, not by order: a chassis may list a witness or a neighbour first."""
    physical = [s for s in servers if s.get("SystemType", "Physical") == "Physical"] or servers
    for name, value in (("system_serial", "SerialNumber"), ("uuid", "UUID")):
        for server in physical:
            if wanted.get(name) and normal(str(server.get(value) or "")) == normal(wanted[name]):
                return server
    return physical[0]


def _first(links: Mapping[str, Any], name: str) -> str:
    entries = links.get(name) or ()
    return str(entries[0].get("@odata.id", "")) if entries else ""


async def read(bmc: Bmc, wanted: Mapping[str, str]) -> dict[str, str]:
    """Read what the machine says of itself, by the names of machines.yml; placeholders count as absent.

    Sources: ComputerSystem.SerialNumber and .UUID, Chassis.SerialNumber, the chassis' assembly for the board, and the
    interfaces of the manager and of the system for the MACs: the wanted one when it is among them, else the first.
    """
    system = await bmc.read()
    chassis = (await bmc.redfish.find(bmc.chassis)) or {} if bmc.chassis else {}
    found = {
        "system_serial": _clean(system.get("SerialNumber")),
        "uuid": _clean_uuid(system.get("UUID")),
        "chassis_serial": _clean(chassis.get("SerialNumber")),
        "board_serial": await _board_serial(bmc, chassis),
        "bmc_mac": await _mac(bmc, bmc.manager, wanted.get("bmc_mac", "")),
        "management_mac": await _mac(bmc, bmc.system, wanted.get("management_mac", "")),
    }
    return {k: v for k, v in found.items() if v}


def mismatches(wanted: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    """Compare identities that both sides know; return one sentence with both values for each that differs."""
    return [
        f"{name}: machines.yml has {wanted[name]!r}, the machine says {found[name]!r}"
        for name in wanted
        if name in found and normal(wanted[name]) != normal(found[name])
    ]


def agreements(wanted: Mapping[str, str], found: Mapping[str, str]) -> str:
    """Say what agrees beside what does not: one serial alone that differs may be what the controller did not get over.

    Returns:
        "" when nothing agrees, else a text that goes on from the mismatches.
    """
    same = [name for name in sorted(wanted) if name in found and normal(wanted[name]) == normal(found[name])]
    if not same:
        return ""
    return f" (but {', '.join(same)} agree: a stale inventory, or a part was exchanged; reset the controller and look)"


def normal(value: str) -> str:
    """Reduce a serial, UUID or MAC to what two sources write alike."""
    return value.strip().lower().replace("-", "").replace(":", "")


def _clean(value: Any) -> str:
    text = str(value or "").strip()
    return "" if text.lower() in PLACEHOLDERS or not text.strip("0") else text


def _clean_uuid(value: Any) -> str:
    text = _clean(value)
    return "" if text.lower() in PLACEHOLDER_UUIDS or not text.strip("fF-") else text


async def _board_serial(bmc: Bmc, chassis: Json) -> str:
    """Find the system board among the chassis' assemblies (Redfish Assembly, PhysicalContext SystemBoard)."""
    assembly = link(chassis, "Assembly")
    parts = ((await bmc.redfish.find(assembly)) or {}).get("Assemblies") or () if assembly else ()
    boards = [p for p in parts if p.get("PhysicalContext") == "SystemBoard"]
    return _clean(boards[0].get("SerialNumber")) if boards else ""


async def _mac(bmc: Bmc, owner: str, wanted: str) -> str:
    if not owner:
        return ""
    collection = link((await bmc.redfish.find(owner)) or {}, "EthernetInterfaces")
    if not collection:
        return ""
    try:
        interfaces = await bmc.redfish.members(collection)
    except RedfishError:
        return ""
    macs = [_clean(i.get("PermanentMACAddress") or i.get("MACAddress")) for i in interfaces]
    known = [m for m in macs if m]
    return next((m for m in known if normal(m) == normal(wanted)), known[0] if known else "")
