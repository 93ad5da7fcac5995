"""What one BMC says of itself and of its machine, read from its tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from ipaddress import IPv4Interface
from typing import Any

from supernode.bringup.survey import tree as trees
from supernode.bringup.survey.observed import ControllerSeen, OwnAddress, Placement, Tree
from supernode.bringup.survey.places import rack_name
from supernode.bringup.survey.tree import Document, follow, members
from supernode.clients.exchange import printable

_WELL = {"OK", "", "None"}


def read(
    address: str, fingerprint: str, tree: Tree, now: float, unread: Mapping[str, str] | None = None
) -> ControllerSeen:
    """Read a tree.

    Args:
        address: where the BMC was asked.
        fingerprint: of the certificate that it showed.
        tree: what it answered.
        now: seconds since the epoch when it did.
        unread: see ControllerSeen.
    """
    _, system = trees.system(tree)
    if not system:
        why = next(iter((unread or {}).values()), "manages no server")
        return ControllerSeen(address, why=why, fingerprint=fingerprint)
    manager, chassis = trees.manager(tree, system), trees.chassis(tree, system)
    bios = follow(tree, system, "Bios")
    return ControllerSeen(
        address=address,
        fingerprint=fingerprint,
        identity={name: value for name, value in _identity(tree, system, manager, chassis) if value},
        vendor=_text(system.get("Manufacturer")),
        model=_text(system.get("Model")),
        placement=placement(chassis),
        own=_own(tree, manager),
        gpus=_gpus(tree, system),
        power=str(system.get("PowerState") or ""),
        bios={k: v for k, v in (bios.get("Attributes") or {}).items() if isinstance(v, str | int | float | None)},
        bios_defaults=_defaults(tree, str(bios.get("AttributeRegistry") or "")),
        firmware=_firmware(tree),
        clock_offset_s=_offset(manager, now),
        unhealthy=_unhealthy(system, manager, chassis),
        unread=dict(unread or {}),
    )


def _identity(tree: Tree, system: Document, manager: Document, chassis: Document) -> Iterator[tuple[str, str]]:
    """Yield identities by the names of machines.yml, from the same sources as `provider.identity.read`."""
    yield "system_serial", _text(system.get("SerialNumber"))
    yield "uuid", _text(system.get("UUID")).lower()
    yield "chassis_serial", _text(chassis.get("SerialNumber"))
    parts = follow(tree, chassis, "Assembly").get("Assemblies") or ()
    boards = [part for part in parts if part.get("PhysicalContext") == "SystemBoard"]
    yield "board_serial", _text(boards[0].get("SerialNumber")) if boards else ""
    yield "bmc_mac", next(iter(_macs(tree, manager)), "")
    yield "management_mac", next(iter(_macs(tree, system)), "")


def _text(value: Any) -> str:
    return printable(str(value or "").strip())


def _macs(tree: Tree, owner: Document) -> list[str]:
    rows = (row for _, row in members(tree, owner, "EthernetInterfaces"))
    found = (_text(row.get("PermanentMACAddress") or row.get("MACAddress")).lower() for row in rows)
    return [mac for mac in found if mac]


def placement(chassis: Document) -> Placement:
    """Read Chassis.Location.Placement: the rack's name and the lowest unit, which EIA-310 and OpenU count from 1."""
    found = (chassis.get("Location") or {}).get("Placement") or {}
    unit = found.get("RackOffset")
    rack = rack_name(_text(found.get("Rack")))
    return Placement(rack, unit if isinstance(unit, int) and 0 < unit < 100 else 0)


def _own(tree: Tree, manager: Document) -> OwnAddress | None:
    """Return the controller's own address; the first that says one."""
    for _, port in members(tree, manager, "EthernetInterfaces"):
        for row in port.get("IPv4Addresses") or ():
            try:
                interface = IPv4Interface(f"{row['Address']}/{row['SubnetMask']}")
            except (KeyError, ValueError):
                continue
            gateway = _text(row.get("Gateway"))
            return OwnAddress(str(interface), "" if gateway == "0.0.0.0" else gateway)  # noqa: S104 - "none"
    return None


def _gpus(tree: Tree, system: Document) -> int | None:
    """Count the GPUs; None where the processors were not listed."""
    if not follow(tree, system, "Processors"):
        return None
    return sum(bool(row.get("ProcessorType") == "GPU") for _, row in members(tree, system, "Processors"))


def _defaults(tree: Tree, registry: str) -> dict[str, Any]:
    """Return the BIOS' defaults by its own registry, where it shows one."""
    for document in tree.values():
        entries = document.get("RegistryEntries")
        if registry and isinstance(entries, dict) and document.get("Id") == registry:
            rows = entries.get("Attributes") or ()
            return {row["AttributeName"]: row.get("DefaultValue") for row in rows if "AttributeName" in row}
    return {}


def _firmware(tree: Tree) -> dict[str, str]:
    service = follow(tree, trees.root(tree), "UpdateService")
    rows = members(tree, service, "FirmwareInventory")
    return {path.rpartition("/")[2]: _text(row.get("Version")) for path, row in rows if row.get("Version")}


def _offset(manager: Document, now: float) -> float | None:
    try:
        found = datetime.fromisoformat(_text(manager.get("DateTime")))
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() - now


def _unhealthy(*documents: Document) -> dict[str, str]:
    found = {str(d.get("@odata.id")): _text((d.get("Status") or {}).get("Health")) for d in documents if d}
    return {path: health for path, health in found.items() if health not in _WELL}
