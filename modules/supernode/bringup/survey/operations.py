"""What supernode can do on one BMC: each operation, whether it is supported, and how. Read from its tree alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from supernode.bringup.survey import tree as trees
from supernode.bringup.survey.observed import Tree
from supernode.bringup.survey.tree import Document, action, allowed, follow, link, members

YES, NO, UNKNOWN = "yes", "no", "unknown"


@dataclass(frozen=True)
class Operation:
    """One row of the table.

    Attributes:
        supported: "yes", "no", or "unknown" where the BMC does not say.
        how: what it offers for it, in a few words.
    """

    name: str
    supported: str
    how: str


@dataclass(frozen=True)
class _Case:
    tree: Tree
    system: Document
    manager: Document

    @property
    def root(self) -> Document:
        return trees.root(self.tree)

    @property
    def boot(self) -> Document:
        found = self.system.get("Boot")
        return found if isinstance(found, dict) else {}


def of(tree: Tree) -> tuple[Operation, ...]:
    """Return every operation in the order in which a machine meets them."""
    _, system = trees.system(tree)
    case = _Case(tree, system, trees.manager(tree, system))
    return tuple(row for source in _SOURCES for row in source(case))


def _power(case: _Case) -> Iterator[Operation]:
    reset = action(case.system, "#ComputerSystem.Reset")
    kinds = allowed(case.tree, reset, "ResetType")
    how = f"ComputerSystem.Reset: {', '.join(kinds)}" if kinds else "ComputerSystem.Reset, its types unsaid"
    yield Operation("power", YES if reset else NO, how if reset else "no ComputerSystem.Reset")
    on = {"On", "ForceOn"} & set(kinds)
    yield Operation("power on", _of(reset, kinds, bool(on)), _first(kinds, "On", "ForceOn"))
    yield Operation("power off", _of(reset, kinds, "ForceOff" in kinds), _first(kinds, "ForceOff"))
    graceful = [k for k in kinds if k.startswith("Graceful")]
    yield Operation("ask the system to stop", _of(reset, kinds, bool(graceful)), ", ".join(graceful))
    restart = [k for k in ("ForceRestart", "PowerCycle") if k in kinds]
    yield Operation("restart", _of(reset, kinds, bool(restart)), ", ".join(restart))
    again = action(case.manager, "#Manager.Reset")
    kinds = allowed(case.tree, again, "ResetType")
    yield Operation("restart the BMC", YES if again else NO, ", ".join(kinds) or ("Manager.Reset" if again else ""))


def _boot(case: _Case) -> Iterator[Operation]:
    boot = case.boot
    targets = _values(boot, "BootSourceOverrideTarget")
    yield Operation("boot override", YES if targets else _told(boot), ", ".join(targets))
    enabled = _values(boot, "BootSourceOverrideEnabled")
    how = ", ".join(enabled) or "not said; Once and Disabled are in the standard"
    yield Operation("boot once", YES if "Once" in enabled else UNKNOWN if not enabled else NO, how)
    modes = _values(boot, "BootSourceOverrideMode") or tuple(filter(None, [boot.get("BootSourceOverrideMode")]))
    yield Operation("UEFI boot", YES if "UEFI" in modes else UNKNOWN if not modes else NO, ", ".join(modes))
    uri = "HttpBootUri" in boot
    how = "target UefiHttp" + (" with HttpBootUri" if uri else ", no HttpBootUri: the address comes by DHCP")
    http = "UefiHttp" in targets
    yield Operation("UEFI HTTP boot", YES if http and uri else NO, how if http else "no target UefiHttp")
    certificates = link(boot, "Certificates")
    yield Operation("HTTPS boot, server verified", YES if http and certificates else NO, certificates)


def _media(case: _Case) -> Iterator[Operation]:
    owner = case.system if case.system.get("VirtualMedia") else case.manager
    slots = list(members(case.tree, owner, "VirtualMedia"))
    usable = [(p, d) for p, d in slots if action(d, "#VirtualMedia.InsertMedia")]
    names = ", ".join(
        f"{path.rpartition('/')[2]} ({'/'.join(doc.get('MediaTypes') or ('?',))})" for path, doc in usable
    )
    yield Operation("virtual media", YES if usable else NO, f"{len(usable)} of {len(slots)}: {names}" if usable else "")
    protocols = {p for _, d in usable for p in _protocols(case.tree, d)}
    supported = YES if "HTTPS" in protocols else UNKNOWN if usable and not protocols else NO
    yield Operation("media over HTTPS", supported, ", ".join(sorted(protocols)) or "protocols unsaid" * bool(usable))
    verifying = [path for path, doc in usable if "VerifyCertificate" in doc]
    how = "VerifyCertificate" + (" and its own Certificates" if any(link(d, "Certificates") for _, d in usable) else "")
    yield Operation("media server verified", YES if verifying else NO, how if verifying else "no VerifyCertificate")


def _protocols(tree: Tree, drive: Document) -> tuple[str, ...]:
    return allowed(tree, action(drive, "#VirtualMedia.InsertMedia"), "TransferProtocolType")


def _bios(case: _Case) -> Iterator[Operation]:
    bios = follow(case.tree, case.system, "Bios")
    attributes = bios.get("Attributes") or {}
    yield Operation("read BIOS attributes", YES if attributes else NO, f"{len(attributes)}" if attributes else "")
    settings = link(bios, "@Redfish.Settings", "SettingsObject")
    times = (bios.get("@Redfish.Settings") or {}).get("SupportedApplyTimes") or ()
    how = settings + (f"; applied {', '.join(times)}" if times else "; apply times unsaid" if settings else "")
    yield Operation("change BIOS attributes", YES if settings else NO, how)
    registry = bios.get("AttributeRegistry")
    yield Operation("BIOS registry", YES if registry else NO, str(registry or ""))


def _firmware(case: _Case) -> Iterator[Operation]:
    service = follow(case.tree, case.root, "UpdateService")
    parts = list(members(case.tree, service, "FirmwareInventory"))
    yield Operation("firmware inventory", YES if parts else NO, f"{len(parts)} components" if parts else "")
    simple = action(service, "#UpdateService.SimpleUpdate")
    how = ", ".join(allowed(case.tree, simple, "TransferProtocol"))
    push = service.get("MultipartHttpPushUri") or service.get("HttpPushUri")
    said = [f"SimpleUpdate {how}".strip()] * bool(simple) + [f"push to {push}"] * bool(push)
    yield Operation("firmware update", YES if said else NO, "; ".join(said))


def _access(case: _Case) -> Iterator[Operation]:
    service = follow(case.tree, case.root, "SessionService")
    count = follow(case.tree, service, "Sessions").get("Members@odata.count")
    used = [f"{count} in use"] if count is not None else []
    limit = [f"time out {service['SessionTimeout']} s"] if "SessionTimeout" in service else []
    yield Operation("sessions", YES if service else NO, "; ".join((*used, *limit)))
    accounts = follow(case.tree, case.root, "AccountService")
    rows = [d for _, d in members(case.tree, accounts, "Accounts")]
    names = [f"{d.get('UserName')} ({d.get('RoleId', '?')})" for d in rows if d.get("UserName")]
    yield Operation("accounts", YES if rows else NO, ", ".join(names))
    low, high = accounts.get("MinPasswordLength"), accounts.get("MaxPasswordLength")
    changes = f"length {low} to {high}" if low is not None or high is not None else "lengths unsaid"
    yield Operation("change a password", YES if rows else NO, changes if rows else "")
    lockout = accounts.get("AccountLockoutThreshold")
    how = f"after {lockout} failures" if lockout else "none" if lockout == 0 else "unsaid"
    yield Operation("lockout", YES if lockout else NO if lockout == 0 else UNKNOWN, how)


def _evidence(case: _Case) -> Iterator[Operation]:
    logs = [*members(case.tree, case.system, "LogServices"), *members(case.tree, case.manager, "LogServices")]
    yield Operation("logs", YES if logs else NO, ", ".join(str(d.get("Id") or p) for p, d in logs))
    progress = (case.system.get("BootProgress") or {}).get("LastState")
    yield Operation("boot progress", YES if progress else NO, "BootProgress" if progress else "")
    identity = [("SerialNumber", case.system), ("UUID", case.system)]
    found = [name for name, document in identity if document.get(name)]
    yield Operation("identity", YES if found else NO, ", ".join(found))
    clock = case.manager.get("DateTime")
    yield Operation("clock", YES if clock else NO, "Manager.DateTime" if clock else "")


def _values(document: Document, name: str) -> tuple[str, ...]:
    return tuple(str(value) for value in document.get(f"{name}@Redfish.AllowableValues") or ())


def _told(boot: Document) -> str:
    return UNKNOWN if "BootSourceOverrideTarget" in boot else NO


def _of(found: Any, kinds: tuple[str, ...], has: bool) -> str:
    return NO if not found else UNKNOWN if not kinds else YES if has else NO


def _first(kinds: tuple[str, ...], *names: str) -> str:
    return next((name for name in names if name in kinds), "")


_SOURCES: tuple[Callable[[_Case], Iterator[Operation]], ...] = (
    _power, _boot, _media, _bios, _firmware, _access, _evidence,
)  # fmt: skip
