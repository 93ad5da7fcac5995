"""What is set now and holds from the next POST on: BIOS attributes and the boot override."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import Any

from supernode.lab.bmc.hardware import BiosAttribute
from supernode.lab.bmc.messages import RedfishError, raise_all
from supernode.lab.bmc.state import BootOverride, State

TARGETS = ("None", "Hdd", "Cd", "UefiHttp", "BiosSetup")
ENABLED = ("Disabled", "Once", "Continuous")
MODES = ("UEFI",)


def stage_bios(state: State, attributes: Mapping[str, Any], registry: Mapping[str, BiosAttribute]) -> None:
    """Take attributes as pending; a value that equals the applied one takes its pending change back.

    Raises:
        RedfishError: unknown attributes or values that the registry does not allow; nothing is taken then.
    """
    raise_all([e for name, value in attributes.items() if (e := _wrong_attribute(name, value, registry))])
    for name, value in attributes.items():
        state.bios_pending.pop(name, None)
        if state.bios.get(name) != value:
            state.bios_pending[name] = value


def _wrong_attribute(name: str, value: Any, registry: Mapping[str, BiosAttribute]) -> RedfishError | None:
    related = [f"#/Attributes/{name}"]
    attribute = registry.get(name)
    if attribute is None:
        return RedfishError("PropertyUnknown", name, related=related)
    kind = attribute.type.lower()
    # bool is an int to Python, not to Redfish.
    right = {"integer": isinstance(value, int) and not isinstance(value, bool), "boolean": isinstance(value, bool)}
    if not right.get(kind, isinstance(value, str)):
        return RedfishError("PropertyValueTypeError", str(value), name, related=related)
    values = list(attribute.values or ())
    if kind == "enumeration" and value not in values:
        return RedfishError("PropertyValueNotInList", str(value), name, related=related)
    if kind == "integer" and values and not min(values) <= value <= max(values):
        return RedfishError("PropertyValueOutOfRange", str(value), name, related=related)
    return None


def apply_bios(state: State) -> list[str]:
    """Make pending attributes the applied ones, as POST does; returns the names that changed."""
    changed = sorted(state.bios_pending)
    if changed:
        state.bios.update(state.bios_pending)
        state.bios_pending.clear()
        state.bios_messages = [f"{name} applied" for name in changed]
        state.bios_applied_at = time.time()
    return changed


def change_boot(boot: BootOverride, changes: Mapping[str, Any]) -> None:
    """Change the override.

    Raises:
        RedfishError: an unknown property or a value that is not allowed; nothing is changed then.
    """
    allowed: Mapping[str, tuple[str, Collection[str] | None]] = {
        "BootSourceOverrideTarget": ("target", TARGETS),
        "BootSourceOverrideEnabled": ("enabled", ENABLED),
        "BootSourceOverrideMode": ("mode", MODES),
        "HttpBootUri": ("http_uri", None),
    }
    errors = [e for name, value in changes.items() if (e := _wrong_boot(name, value, allowed))]
    raise_all(errors)
    for name, value in changes.items():
        setattr(boot, allowed[name][0], value or "")
    if boot.target == "None" or boot.enabled == "Disabled":
        boot.target, boot.enabled = "None", "Disabled"


def _wrong_boot(
    name: str, value: Any, allowed: Mapping[str, tuple[str, Collection[str] | None]]
) -> RedfishError | None:
    related = [f"#/Boot/{name}"]
    if name not in allowed:
        return RedfishError("PropertyUnknown", name, related=related)
    values = allowed[name][1]
    if values is None:
        return None if value is None or isinstance(value, str) else _type_error(name, value, related)
    if not isinstance(value, str):
        return _type_error(name, value, related)
    return None if value in values else RedfishError("PropertyValueNotInList", value, name, related=related)


def _type_error(name: str, value: Any, related: list[str]) -> RedfishError:
    return RedfishError("PropertyValueTypeError", str(value), name, related=related)


def consume_boot(boot: BootOverride) -> str:
    """Return the target of this POST and use `Once` up."""
    target = boot.target if boot.enabled != "Disabled" else "None"
    if boot.enabled == "Once":
        boot.target, boot.enabled = "None", "Disabled"
    return target
