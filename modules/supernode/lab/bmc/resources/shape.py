"""What all resources have in common."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from supernode.lab.bmc.messages import RedfishError, raise_all
from supernode.lab.bmc.routes import Body, Call

V1 = "/redfish/v1"
HEALTHY: Mapping[str, str] = {"State": "Enabled", "Health": "OK"}
# Resource type -> version of its schema that we follow (DMTF DSP8010).
VERSIONS: Mapping[str, str] = {
    "AccountService": "v1_15_1",
    "ActionInfo": "v1_4_2",
    "Assembly": "v1_5_1",
    "Bios": "v1_2_3",
    "Certificate": "v1_9_0",
    "Chassis": "v1_25_1",
    "ComputerSystem": "v1_22_0",
    "Drive": "v1_17_0",
    "EthernetInterface": "v1_12_0",
    "LogEntry": "v1_17_0",
    "LogService": "v1_7_0",
    "Manager": "v1_19_1",
    "ManagerAccount": "v1_12_1",
    "MessageRegistryFile": "v1_1_3",
    "Processor": "v1_20_1",
    "Role": "v1_3_3",
    "ServiceRoot": "v1_17_0",
    "Session": "v1_7_1",
    "SessionService": "v1_1_9",
    "SoftwareInventory": "v1_10_2",
    "Storage": "v1_15_0",
    "Task": "v1_7_4",
    "TaskService": "v1_2_1",
    "UpdateService": "v1_14_0",
    "VirtualMedia": "v1_6_3",
}


def etag(body: Mapping[str, Any]) -> str:
    """Return the ETag of a resource; what changes without anyone changing it stays out."""
    lasting = {key: value for key, value in body.items() if key not in ("DateTime", "@odata.etag")}
    return f'W/"{hashlib.sha256(json.dumps(lasting, sort_keys=True).encode()).hexdigest()[:16]}"'


def link(path: str) -> dict[str, str]:
    """Return a reference."""
    return {"@odata.id": path}


def links(paths: Iterable[str]) -> list[dict[str, str]]:
    """Return references."""
    return [link(path) for path in paths]


def resource(kind: str, path: str, name: str, **properties: Any) -> Body:
    """Build a resource.

    Args:
        kind: one of VERSIONS.
        path: its address, whose last segment is its Id.
        name: for a person.
        properties: the rest; `odata` names such as @odata.id cannot be given so.
    """
    return {
        "@odata.type": f"#{kind}.{VERSIONS[kind]}.{kind}",
        "@odata.id": path,
        "Id": path.rpartition("/")[2],
        "Name": name,
        **properties,
    }


def collection(kind: str, path: str, name: str, members: Iterable[str], call: Call | None = None) -> Body:
    """Build a collection of references; $skip and $top of the call select among them."""
    paths = list(members)
    return {
        "@odata.type": f"#{kind}Collection.{kind}Collection",
        "@odata.id": path,
        "Name": name,
        "Members": links(paths if call is None else selected(paths, call)),
        "Members@odata.count": len(paths),
    }


def selected(items: list[Any], call: Call) -> list[Any]:
    """Return what $skip and $top leave."""
    numbers = []
    for name, default in (("$skip", 0), ("$top", len(items))):
        text = call.query.get(name, str(default))
        if not (text.isascii() and text.isdigit()):
            raise RedfishError("QueryParameterValueTypeError", text, name)
        numbers.append(int(text))
    skip, top = numbers
    return items[skip:][:top]


def only(body: Body, allowed: Mapping[str, type | tuple[type, ...]], readable: Iterable[str] = ()) -> None:
    """Check the properties of a PATCH or POST.

    Args:
        body: what was sent; annotations (names with @) are left alone.
        allowed: property -> type.
        readable: properties that exist but cannot be written.

    Raises:
        RedfishError: unknown or read-only properties, or wrong types; all at once.
    """
    errors = []
    fixed = {"Id", "Name", *readable}
    for name, value in body.items():
        related = [f"#/{name}"]
        if "@" in name:
            continue
        if name not in allowed:
            errors.append(
                RedfishError("PropertyNotWritable" if name in fixed else "PropertyUnknown", name, related=related)
            )
        elif not _is(value, allowed[name]):
            errors.append(RedfishError("PropertyValueTypeError", _shown(name, value), name, related=related))
    raise_all(errors)


def parameters(
    action: str, body: Body, allowed: Mapping[str, type | tuple[type, ...]], required: Iterable[str] = ()
) -> None:
    """Check the parameters of an action.

    Raises:
        RedfishError: missing or unknown parameters, or wrong types; all at once.
    """
    errors = [RedfishError("ActionParameterMissing", action, name) for name in required if body.get(name) in (None, "")]
    for name, value in body.items():
        if name not in allowed:
            errors.append(RedfishError("ActionParameterUnknown", action, name))
        elif not _is(value, allowed[name]):
            errors.append(RedfishError("ActionParameterValueTypeError", _shown(name, value), name, action))
    raise_all(errors)


def _is(value: Any, wanted: type | tuple[type, ...]) -> bool:
    kinds = wanted if isinstance(wanted, tuple) else (wanted,)
    return isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))  # bool is an int to Python only


def _shown(name: str, value: Any) -> str:
    return "******" if name == "Password" else str(value)
