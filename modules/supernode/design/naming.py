"""What devices and ports are called.

The first plane and the first pod have no part in a name, so that a second one changes none.
"""

from __future__ import annotations

from typing import Literal

TIERS: tuple[Literal["leaf", "spine", "core"], ...] = ("leaf", "spine", "core")
KINDS: tuple[Literal["rail", "uplink", "core"], ...] = ("rail", "uplink", "core")


def switch_name(tier: int, plane: int, pod: int, rail: int, su: int, number: int) -> str:
    """Name a switch by its columns: su01-leaf0, p2-spine07, pod02-spine07, rail3-spine07, core012."""
    plane_part = f"p{plane}-" if plane > 1 else ""
    if tier == 0:
        return f"{plane_part}su{su:02d}-leaf{number}"
    rail_part = f"rail{rail}-" if rail >= 0 else ""
    pod_part = f"pod{pod:02d}-" if pod > 1 else ""
    return f"{plane_part}{pod_part}{rail_part}" + (f"spine{number:02d}" if tier == 1 else f"core{number:03d}")


def rail_port(rail: int, plane: int) -> str:
    """Name a host's port: rail3, and in the second plane rail3p2."""
    return f"rail{rail}p{plane}" if plane > 1 else f"rail{rail}"
