"""Finding one's way in a Redfish tree that was read already."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from supernode.bringup.survey.observed import Tree
from supernode.provider import quirks

ROOT = "/redfish/v1"
Document = Mapping[str, Any]


def plain(path: str) -> str:
    """Write a path in one way: no fragment, no slash at its end."""
    return path.partition("#")[0].rstrip("/")


def link(document: Document, *names: str) -> str:
    """Return where a property leads, "" where it is absent."""
    value: Any = document
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
        if isinstance(value, list):
            value = value[0] if value else None
    return plain(str(value.get("@odata.id") or "")) if isinstance(value, Mapping) else ""


def follow(tree: Tree, document: Document, *names: str) -> Document:
    """Return the resource to which a property leads; {} where it is absent or was not read."""
    return tree.get(link(document, *names), {})


def members(tree: Tree, document: Document, *names: str) -> Iterator[tuple[str, Document]]:
    """Yield (path, resource) of a collection that a property leads to, those that were read, page by page."""
    page, seen = link(document, *names), set[str]()
    while page in tree and page not in seen:
        seen.add(page)
        for entry in tree[page].get("Members") or ():
            path = plain(str(entry.get("@odata.id", ""))) if isinstance(entry, Mapping) else ""
            if path in tree:
                yield path, tree[path]
        page = plain(str(tree[page].get("Members@odata.nextLink") or ""))


def action(document: Document, name: str) -> Document:
    """Return an action that can be called, {} when it is not offered."""
    found = (document.get("Actions") or {}).get(name)
    return found if isinstance(found, Mapping) and found.get("target") else {}


def allowed(tree: Tree, found: Document, parameter: str) -> tuple[str, ...]:
    """Return what a parameter of an action may be: annotated on it, or in its ActionInfo; () when it does not say."""
    listed = found.get(f"{parameter}@Redfish.AllowableValues")
    if listed is None and (info := found.get("@Redfish.ActionInfo")):
        rows = tree.get(plain(str(info)), {}).get("Parameters") or ()
        listed = next((row.get("AllowableValues") for row in rows if row.get("Name") == parameter), None)
    return tuple(str(value) for value in listed or ())


def root(tree: Tree) -> Document:
    """Return the service root."""
    return tree.get(ROOT, {})


def system(tree: Tree) -> tuple[str, Document]:
    """Return the server that this controller manages, with its path; ("", {}) when there is none.

    Boards inside a server that are listed beside it are not it: `provider.quirks` knows them.
    """
    top = root(tree)
    vendor = str(top.get("Vendor") or next(iter(top.get("Oem") or {}), ""))
    skipped = quirks.of(vendor).system_prefixes_skipped
    found = [(p, s) for p, s in members(tree, top, "Systems") if not str(s.get("Id", "")).startswith(skipped)]
    physical = (row for row in found if row[1].get("SystemType", "Physical") == "Physical")
    return next(physical, found[0] if found else ("", {}))


def manager(tree: Tree, server: Document) -> Document:
    """Return what manages a server: what it names, else the first manager."""
    named = follow(tree, server, "Links", "ManagedBy")
    return named or next((row for _, row in members(tree, root(tree), "Managers")), {})


def chassis(tree: Tree, server: Document) -> Document:
    """Return what holds a server: what it names, else the first chassis."""
    named = follow(tree, server, "Links", "Chassis")
    return named or next((row for _, row in members(tree, root(tree), "Chassis")), {})


_FOLLOWED = {
    "Systems", "Chassis", "Managers", "UpdateService", "AccountService", "Accounts", "SessionService", "Sessions",
    "Registries", "Tasks", "CertificateService", "Members", "Bios", "SettingsObject", "EthernetInterfaces",
    "Processors", "LogServices", "VirtualMedia", "Assembly", "FirmwareInventory", "Certificates", "ManagedBy",
    "@Redfish.ActionInfo", "NetworkProtocol", "Location", "SecureBoot",
}  # fmt: skip
_COLLECTIONS_ALONE = ("/Sessions", "/Entries", "/Tasks")


def onward(path: str, document: Document, *, whole: bool) -> list[str]:
    """Return where to read on from a resource.

    Args:
        path: the resource's own.
        document: the resource.
        whole: everything that it refers to, not only what a survey needs. Sessions, log entries and tasks come and go
            and are read as collections alone.
    """
    if path.partition("?")[0].endswith(_COLLECTIONS_ALONE):
        return []
    found = [plain(p) for key, p in _references(document, "") if whole or key in _FOLLOWED]
    return [p for p in dict.fromkeys(found) if _readable(p) and (whole or _wanted(p))]


def _readable(path: str) -> bool:
    return (path == ROOT or path.startswith(ROOT + "/")) and "/Actions/" not in path


def _wanted(path: str) -> bool:
    """Of the registries, which some BMCs list by the dozen, a survey reads that of the BIOS alone."""
    _, registries, name = path.partition("/Registries/")
    return not registries or "bios" in name.lower()


def _references(value: Any, key: str) -> Iterator[tuple[str, str]]:
    """Yield (name of the property that holds it, path)."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            if name == "@odata.id" and isinstance(item, str):
                yield key, item
            elif name in ("@Redfish.ActionInfo", "Uri", "Members@odata.nextLink") and isinstance(item, str):
                yield ("Members" if name.startswith("Members") else key if name == "Uri" else name), item
            else:
                yield from _references(item, name)
    elif isinstance(value, list):
        for item in value:
            yield from _references(item, key)
