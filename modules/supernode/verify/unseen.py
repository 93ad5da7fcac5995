"""The finding of a place where nobody saw what a check asks for: unknown, never missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from supernode.records import Finding, Verdict

if TYPE_CHECKING:
    from supernode.verify.facts.device import DeviceFacts


def unseen(check: str, place: str, seen: DeviceFacts, fact: str, want: str) -> Finding:
    """Say that a device did not show a fact, and why."""
    why = seen.why if not seen.reached else seen.unseen.get(fact) or seen.unseen.get("everything", "not seen")
    return Finding(check, place, Verdict.UNKNOWN, want, "not seen", evidence=(why,) if why else ())
