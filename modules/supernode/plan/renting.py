"""What a change means for a rented host: another instance where its provider can change nothing in place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from supernode.plan.machine import Decision
from supernode.records import DeviceOutput

_ANOTHER = ("kind", "zone", "address", "image", "capacity")


def decide(
    new: Mapping[str, Any], applied: Mapping[str, Any] | None, output: DeviceOutput | None, kept: bool
) -> Decision:
    """Decide what is to be done with one rented host.

    Args:
        new: what the Design says of it now (`recording.rented`).
        applied: what it said when a run last applied it; None where nothing is recorded.
        output: what the engine's state says of it; None where there is no instance.
        kept: it is in service, or nobody knows: its instance is not exchanged.
    """
    if output is None:
        return Decision("create", (), f"a {new['kind']} in {new['zone']}, with {new['address'].partition('/')[0]}")
    differing = [key for key in _ANOTHER if applied is not None and applied.get(key) != new[key]]
    if differing:
        why = f"another instance, for its {', '.join(differing)} changed"
        if kept:
            return Decision("refuse", (), f"it would be {why}: drain it first, then take it out and in again")
        return Decision("replace", (), why)
    if output.state != "ready":
        return Decision("update", (), f"{output.state} in {output.phase} at the last attempt: {output.reason}")
    return Decision("none")
