"""One server behind its management controller: finding it, its identity, its power and its boot override."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from supernode.clients.redfish import ROOT, Ambiguous, Json, Redfish, RedfishError
from supernode.errors import CouldNotRun
from supernode.provider import quirks
from supernode.provider.quirks import Quirks
from supernode.provider.timing import Deadline, LateError, until

GRACE_S = 60.0  # how long a system may take to go down by itself
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


@dataclass
class Bmc:
    """A controller that was logged in to; made by `find`.

    Attributes:
        system: path of the ComputerSystem.
        manager, chassis: paths of what manages and what holds it; empty when it names none.
    """

    redfish: Redfish
    quirks: Quirks
    system: str
    manager: str
    chassis: str

    async def read(self) -> Json:
        """Fetch the ComputerSystem."""
        return await self.redfish.get(self.system)

    async def power(self) -> str:
        """Return PowerState: On, Off, PoweringOn or PoweringOff."""
        return str((await self.read()).get("PowerState") or "Unknown")

    async def turn(self, wanted: str, deadline: Deadline) -> None:
        """Switch On or Off and see that it came to pass; nothing when it is so already.

        Raises:
            LateError: the power state did not follow.
        """
        system = await self.read()
        if system.get("PowerState") == wanted:
            return
        if wanted == "Off" and _listens(system) and "GracefulShutdown" in await self._reset_types(system):
            await self._reset("GracefulShutdown")
            with contextlib.suppress(LateError):
                await self._wait_power(wanted, deadline.part(min(GRACE_S, deadline.left / 2)))
                return
        await self._reset("On" if wanted == "On" else "ForceOff")
        await self._wait_power(wanted, deadline)

    async def ask_restart(self) -> bool:
        """Ask a running system to restart itself; False when none runs or the controller cannot ask."""
        system = await self.read()
        if not _listens(system) or "GracefulRestart" not in await self._reset_types(system):
            return False
        await self._reset("GracefulRestart")
        return True

    async def restart(self, deadline: Deadline) -> None:
        """Start the machine anew from its firmware: power on, or a hard restart, and see that it is on."""
        system = await self.read()
        if system.get("PowerState") != "On":
            await self.turn("On", deadline)
            return
        allowed = await self._reset_types(system)
        if "ForceRestart" in allowed:
            await self._reset("ForceRestart")
        elif "PowerCycle" in allowed:
            await self._reset("PowerCycle")
        else:
            await self.turn("Off", deadline)
        await self.turn("On", deadline)

    async def override_boot(self, boot: Mapping[str, Any]) -> None:
        """Set the boot override and read it back.

        Raises:
            CouldNotRun: the controller says it did, and did not.
        """
        await self.redfish.patch(self.system, {"Boot": dict(boot)})
        found = (await self.read()).get("Boot") or {}
        different = [f"{k}: set {v!r}, found {found.get(k)!r}" for k, v in boot.items() if found.get(k) != v]
        if different:
            raise CouldNotRun(
                self.redfish.address, f"the boot override was accepted and does not hold: {'; '.join(different)}"
            )

    async def _reset(self, kind: str) -> None:
        system = await self.read()
        allowed = await self._reset_types(system)
        if kind == "On" and "On" not in allowed and "ForceOn" in allowed:
            kind = "ForceOn"
        action = _action(system, "#ComputerSystem.Reset")
        if not action:
            raise CouldNotRun(
                self.redfish.address, "offers no ComputerSystem.Reset", "does the account have the Operator role?"
            )
        try:
            await self.redfish.post(action["target"], {"ResetType": kind})
        except Ambiguous:
            pass  # whoever asked for it reads the power state back
        except RedfishError as error:
            # Some answer 409 to an "On" that came true in the meantime; the reading back decides.
            if error.status != 409:
                raise

    async def _reset_types(self, system: Json) -> Sequence[str]:
        action = _action(system, "#ComputerSystem.Reset")
        allowed = action.get("ResetType@Redfish.AllowableValues")
        if allowed is None and (info := action.get("@Redfish.ActionInfo")):
            parameters = (await self.redfish.get(str(info))).get("Parameters") or ()
            allowed = next((p.get("AllowableValues") for p in parameters if p.get("Name") == "ResetType"), None)
        return allowed or ("On", "ForceOff", "ForceRestart")

    async def _wait_power(self, wanted: str, deadline: Deadline) -> None:
        async def look() -> bool | None:
            return True if await self.power() == wanted else None

        await until(look, deadline, f"the machine did not report power {wanted}")


def _listens(system: Json) -> bool:
    """Say whether a system runs that would hear the power button."""
    return bool(system.get("PowerState") == "On" and (system.get("BootProgress") or {}).get("LastState") == "OSRunning")


def _action(resource: Json, name: str) -> Mapping[str, Any]:
    action = (resource.get("Actions") or {}).get(name)
    return action if isinstance(action, Mapping) and action.get("target") else {}


async def find(redfish: Redfish) -> Bmc:
    """Log in and find the server that this controller manages.

    Raises:
        CouldNotRun: no server, or no answer.
    """
    root = await redfish.get(ROOT)
    vendor = str(root.get("Vendor") or next(iter(root.get("Oem") or {}), ""))
    collection = _link(root, "Systems")
    if not collection:
        raise CouldNotRun(redfish.address, "its service root names no Systems")
    systems = await redfish.members(collection)
    skipped = quirks.of(vendor).system_prefixes_skipped
    servers = [s for s in systems if not str(s.get("Id", "")).startswith(skipped)]
    if not servers:
        raise CouldNotRun(redfish.address, "manages no server", "is this the address of a server's controller?")
    system = next((s for s in servers if s.get("SystemType", "Physical") == "Physical"), servers[0])
    links = system.get("Links") or {}
    how = quirks.of(vendor, str(system.get("Manufacturer") or ""), str(system.get("Model") or ""))
    return Bmc(redfish, how, str(system["@odata.id"]), _first(links, "ManagedBy"), _first(links, "Chassis"))


def _link(resource: Json, name: str) -> str:
    return str((resource.get(name) or {}).get("@odata.id") or "")


def _first(links: Mapping[str, Any], name: str) -> str:
    entries = links.get(name) or ()
    return str(entries[0].get("@odata.id", "")) if entries else ""


async def identity(bmc: Bmc, wanted: Mapping[str, str]) -> dict[str, str]:
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
    assembly = _link(chassis, "Assembly")
    parts = ((await bmc.redfish.find(assembly)) or {}).get("Assemblies") or () if assembly else ()
    boards = [p for p in parts if p.get("PhysicalContext") == "SystemBoard"]
    return _clean(boards[0].get("SerialNumber")) if boards else ""


async def _mac(bmc: Bmc, owner: str, wanted: str) -> str:
    if not owner:
        return ""
    collection = _link((await bmc.redfish.find(owner)) or {}, "EthernetInterfaces")
    if not collection:
        return ""
    try:
        interfaces = await bmc.redfish.members(collection)
    except RedfishError:
        return ""
    macs = [_clean(i.get("PermanentMACAddress") or i.get("MACAddress")) for i in interfaces]
    known = [m for m in macs if m]
    return next((m for m in known if normal(m) == normal(wanted)), known[0] if known else "")
