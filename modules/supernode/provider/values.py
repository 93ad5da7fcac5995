"""Between the engine's property values and plain JSON.

The SDK's PropertyValue (3.272) neither writes nor reads a bare unknown value: the wire spells it as a text of its own,
one for each type (pulumi/pulumi, sdk/go/common/resource/plugin/rpc.go), and that is what is read and written here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pulumi.provider.experimental.property_value import Computed, PropertyValue

_UNKNOWN_TEXT = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
_UNKNOWN_TEXTS = {
    _UNKNOWN_TEXT,
    "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",  # a flag
    "3eeb2bf0-c639-47a8-9e75-3b44932eb421",  # a number
    "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",  # a list
    "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",  # an object
}


class Unknown:
    """A value that is not known before the program really runs."""

    def __repr__(self) -> str:
        return "<unknown>"


UNKNOWN: Final = Unknown()


def plain(value: PropertyValue) -> Any:
    """Return plain JSON; whole numbers become ints (the wire has floats only), unknown values UNKNOWN."""
    inner = value.value
    if isinstance(inner, Computed) or (isinstance(inner, str) and inner in _UNKNOWN_TEXTS):
        return UNKNOWN
    if isinstance(inner, bool) or inner is None or isinstance(inner, str):
        return inner
    if isinstance(inner, float):
        return int(inner) if inner.is_integer() else inner
    if isinstance(inner, Mapping):
        return {k: plain(v) for k, v in inner.items()}
    if isinstance(inner, Sequence):
        return [plain(v) for v in inner if isinstance(v, PropertyValue)]
    raise TypeError(f"a {type(inner).__name__} has no place in these resources")


def plain_map(values: Mapping[str, PropertyValue]) -> dict[str, Any]:
    """Return a resource's properties as plain JSON."""
    return {k: plain(v) for k, v in values.items()}


def wire(value: Any) -> PropertyValue:
    """Return what `plain` undoes."""
    if isinstance(value, Unknown):
        return PropertyValue(_UNKNOWN_TEXT)
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return PropertyValue(value)
    if isinstance(value, int | float):
        return PropertyValue(float(value))
    if isinstance(value, Mapping):
        return PropertyValue({str(k): wire(v) for k, v in value.items()})
    return PropertyValue([wire(v) for v in value])


def wire_map(values: Mapping[str, Any]) -> dict[str, PropertyValue]:
    """Return properties for the engine."""
    return {k: wire(v) for k, v in values.items()}
