"""What a survey may be of: an environment, controllers, a rack sheet; and how what lies there is reached."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from ipaddress import AddressValueError, IPv4Address

from supernode import catalog
from supernode.bringup import login
from supernode.bringup.survey.look import BmcAccess, DeviceAccess
from supernode.bringup.survey.observed import ControllerSeen, Placement
from supernode.bringup.survey.sheet import Row
from supernode.design import Design
from supernode.errors import WrongInput
from supernode.plan import resources
from supernode.records import Finding, Outputs, Verdict
from supernode.workspace import EnvironmentFolder

_FINGERPRINT = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Reach:
    """How everything of an environment is reached: addresses, accounts, keys. Nothing else of it is read."""

    controllers: tuple[BmcAccess, ...]
    hosts: tuple[DeviceAccess, ...]
    switches: tuple[DeviceAccess, ...]


def reach(folder: EnvironmentFolder, design: Design, outputs: Outputs | None) -> Reach:
    """Take an environment's access data.

    Args:
        folder: its folder, which references start from.
        design: for addresses and accounts.
        outputs: of the last provisioning, for pinned host keys; None where there was none.
    """
    access, devices = design.environment.access, {} if outputs is None else outputs.devices
    ca = design.environment.bmc.ca
    pem = (folder.folder / ca).read_text(encoding="utf-8") if ca and (folder.folder / ca).is_file() else None

    def device(name: str, address: IPv4Address, user: str) -> DeviceAccess:
        return DeviceAccess(str(address), user, folder.ssh_key, login.host_keys(design, devices.get(name), name))

    return Reach(
        tuple(_controller(resources.controller(design, host), pem) for host in design.hosts),
        tuple(device(row.name, row.management.ip, access.user) for row in design.hosts),
        tuple(device(row.name, row.management.ip, access.switch_user) for row in design.configured_switches),
    )


def _controller(how: dict[str, str], pem: str | None) -> BmcAccess:
    return BmcAccess(how["address"], how["username"], how["password"], how.get("pin", ""), pem)


def is_address(text: str) -> bool:
    """Tell whether a word is a controller's address, with or without a port."""
    host, colon, port = text.partition(":")
    try:
        IPv4Address(host)
    except AddressValueError:
        return "." in host and "/" not in text and not text.endswith(".csv")
    return not colon or port.isdigit()


def listed(name: str, text: str) -> list[tuple[str, str]]:
    """Read a list of controllers: an address on each line, and behind it, where it is known, its fingerprint.

    Raises:
        WrongInput: a line that is neither.
    """
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        pin = words[1].lower().replace(":", "") if len(words) > 1 else ""
        if words and (len(words) > 2 or not is_address(words[0]) or (pin and not _FINGERPRINT.fullmatch(pin))):
            hint = "an address on each line, and behind it its certificate's SHA-256 fingerprint, if it is known"
            raise WrongInput(f"{name}:{number}", f"{line.strip()!r} is no controller", hint)
        found += [(words[0], pin)] if words else []
    if not found:
        raise WrongInput(name, "lists no controller", None)
    return found


def written(row: Row) -> ControllerSeen:
    """Return what a sheet says of a machine, as if its controller had said it."""
    vendor, model = _kind(row.kind)
    place = Placement(row.rack, row.unit)
    address = row.bmc or row.slot
    return ControllerSeen(address, identity=row.identity, vendor=vendor, model=model, placement=place, label=row.name)


def _kind(text: str) -> tuple[str, str]:
    """Return vendor and model of the kind that a sheet names; the text as model where the catalogue has none such."""
    plain = re.sub(r"[^a-z0-9]", "", text.lower())
    for kind in map(catalog.server, catalog.server_kinds()):
        if plain in {
            re.sub(r"[^a-z0-9]", "", name.lower()) for name in (kind.name, kind.model, kind.vendor + kind.model)
        }:
            return kind.vendor, kind.model
    return "", text


def merge(rows: Iterable[Row], seen: dict[str, ControllerSeen]) -> tuple[list[ControllerSeen], list[Finding]]:
    """Lay what controllers say over what a sheet says of them; where both speak and differ, say so."""
    merged, findings = [], []
    for row in rows:
        told, found = written(row), seen.get(row.bmc)
        if found is None or found.why:
            merged += [told] if found is None else [replace(told, why="")]
            findings += [_silent(row, found)] if found is not None else []
            continue
        findings += _contradictions(row, found)
        place = found.placement if found.placement.slot else told.placement
        merged.append(replace(found, placement=place, label=row.name, identity={**row.identity, **found.identity}))
    return merged, findings


def _silent(row: Row, found: ControllerSeen) -> Finding:
    cause = f"controller {row.bmc} (line {row.line}) could not be read: {found.why}"
    return Finding("reach", row.bmc, Verdict.FAIL, "an answer of the controller", found.why, cause=cause)


def _contradictions(row: Row, found: ControllerSeen) -> list[Finding]:
    pairs = [(key, value, found.identity.get(key, "")) for key, value in row.identity.items()]
    pairs += [("place", row.slot, found.placement.slot)]
    differing = [(k, a, b) for k, a, b in pairs if a and b and _plain(a) != _plain(b)]
    return [
        Finding(
            "sheet", row.bmc, Verdict.FAIL, a, b, cause=f"line {row.line}: the sheet says {k} {a}, the controller {b}"
        )
        for k, a, b in differing
    ]


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())
