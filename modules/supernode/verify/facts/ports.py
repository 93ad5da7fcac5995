"""The network ports of a machine, as the kernel shows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from supernode.units import MbitPerS
from supernode.verify.facts.raw import Raw

COMMAND = ("ip", "-j", "-s", "addr", "show")


@dataclass(frozen=True)
class Port:
    """One port.

    Attributes:
        up: administratively up.
        carrier: the kernel sees a peer; None where it does not say.
        addresses: "address/prefix" of both families.
        hardware: a device stands behind it; only then is its speed a measurement.
        speed: what the hardware negotiated, or None.
        errors: receive and transmit errors and drops by name, as counted since boot.
    """

    name: str
    mtu: int
    up: bool
    carrier: bool | None
    state: str
    addresses: tuple[str, ...] = ()
    link_local: str = ""
    mac: str = ""
    hardware: bool = False
    speed: MbitPerS | None = None
    errors: Mapping[str, int] = field(default_factory=dict)


def parse(addresses: Raw, hardware: Raw) -> dict[str, Port]:
    """Read `ip -j -s addr show` and the hardware's speeds.

    Raises:
        NotSeenError: `ip` failed.
    """
    speeds = hardware.json() if hardware.rc == 0 and hardware.out else {}
    return {row["ifname"]: _port(row, speeds) for row in addresses.json() if "ifname" in row}


def _port(row: Mapping[str, Any], speeds: Mapping[str, str]) -> Port:
    name, flags = row["ifname"], set(row.get("flags", ()))
    infos = [i for i in row.get("addr_info", ()) if "local" in i]
    return Port(
        name=name,
        mtu=int(row["mtu"]),
        up="UP" in flags,
        carrier=_carrier(flags, row.get("operstate", "UNKNOWN")),
        state=row.get("operstate", "UNKNOWN"),
        addresses=tuple(f"{i['local']}/{i['prefixlen']}" for i in infos),
        link_local=next((i["local"] for i in infos if i.get("scope") == "link" and ":" in i["local"]), ""),
        mac=row.get("address", ""),
        hardware=name in speeds,
        speed=_speed(speeds.get(name, "")),
        errors=_errors(row.get("stats64", row.get("stats", {}))),
    )


def _carrier(flags: set[str], state: str) -> bool | None:
    if "NO-CARRIER" in flags or state in ("LOWERLAYERDOWN", "NOTPRESENT"):
        return False
    if "LOWER_UP" in flags:
        return True
    return None


def _speed(text: str) -> MbitPerS | None:
    """Read sysfs' speed in Mbit/s; -1 and an error mean that the port does not know."""
    try:
        speed = float(text)
    except ValueError:
        return None
    return MbitPerS(speed) if speed > 0 else None


def _errors(stats: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    found = {
        f"{way} {what}": int(stats.get(way, {}).get(what, 0)) for way in ("rx", "tx") for what in ("errors", "dropped")
    }
    return {name: count for name, count in found.items() if count}
