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


def resource(odata_type: str, path: str, name: str, **properties: Any) -> Body:
    """Build a resource.

    Args:
        odata_type: with version, e.g. "Bios.v1_2_3"; the type's name is what stands before the dot.
        path: its address, whose last segment is its Id.
        name: for a person.
        properties: the rest; `odata` names such as @odata.id cannot be given so.
    """
    return {
        "@odata.type": f"#{odata_type}.{odata_type.partition('.')[0]}",
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
    try:
        skip, top = int(call.query.get("$skip", 0)), int(call.query.get("$top", len(items)))
    except ValueError as error:
        raise RedfishError("GeneralError", "$skip and $top take numbers") from error
    return items[max(0, skip) :][: max(0, top)]


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
