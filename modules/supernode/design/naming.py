"""What devices and ports are called.

The first plane and the first pod have no part in a name, so that a second one changes none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

Table = npt.NDArray[np.void]
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


def host_name(pool: str, ordinal: int) -> str:
    """Name a host: gpu-001."""
    return f"{pool}-{ordinal:03d}"


def slot(rack: str, unit: int) -> str:
    """Name a place: r01u09."""
    return f"{rack}u{unit:02d}"


def host_names(hosts: Table, pools: Sequence[str]) -> list[str]:
    """Name all hosts."""
    return [host_name(pools[p], n) for p, n in zip(hosts["pool"].tolist(), hosts["ordinal"].tolist(), strict=True)]


def switch_names(switches: Table) -> list[str]:
    """Name all switches."""
    columns = (switches[key].tolist() for key in ("tier", "plane", "pod", "rail", "su", "number"))
    return [switch_name(*row) for row in zip(*columns, strict=True)]


def slots(devices: Table, racks: Sequence[str], names: Sequence[str]) -> list[str]:
    """Name the places of devices; a rented one stands in none and is called by its own name."""
    rows = zip(devices["rack"].tolist(), devices["unit"].tolist(), names, strict=True)
    return [slot(racks[rack], unit) if unit else name for rack, unit, name in rows]


def ipv4(numbers: npt.NDArray[np.int64]) -> list[str]:
    """Write addresses as text."""
    return [f"{n >> 24}.{n >> 16 & 255}.{n >> 8 & 255}.{n & 255}" for n in numbers.tolist()]
