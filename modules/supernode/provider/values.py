"""Between the engine's property values and plain JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pulumi.provider.experimental.property_value import Computed, PropertyValue


class Unknown:
    """A value that is not known before the program really runs."""

    def __repr__(self) -> str:
        return "<unknown>"


UNKNOWN: Final = Unknown()


def plain(value: PropertyValue) -> Any:
    """Return plain JSON; whole numbers become ints (the wire has floats only), unknown values UNKNOWN."""
    inner = value.value
    if isinstance(inner, Computed):
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
        return PropertyValue.computed()
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


def holds_unknown(value: Any) -> bool:
    """Say whether anything inside is UNKNOWN."""
    if isinstance(value, Mapping):
        return any(holds_unknown(v) for v in value.values())
    if isinstance(value, list):
        return any(holds_unknown(v) for v in value)
    return isinstance(value, Unknown)
