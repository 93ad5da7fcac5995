"""The kernel's forwarding table: what packets really do, whatever BGP believes."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from supernode.verify.facts.raw import Raw

COMMAND = ("ip", "-j", "-4", "route", "show", "table", "main")

_UNUSABLE = frozenset({"dead", "linkdown"})


@dataclass(frozen=True)
class Route:
    """One prefix with the ports of its usable next hops, and of those that the kernel has marked dead."""

    prefix: ipaddress.IPv4Network
    ports: tuple[str, ...]
    dead: tuple[str, ...] = ()
    protocol: str = ""

    @property
    def width(self) -> int:
        """The number of usable ways."""
        return len(self.ports)


def parse(raw: Raw) -> tuple[Route, ...]:
    """Read `ip -j route`, in both shapes: one next hop in the row, or several under nexthops.

    Raises:
        NotSeenError: `ip` failed.
    """
    return tuple(_route(row) for row in raw.json() if row.get("type", "unicast") == "unicast")


def lookup(routes: Iterable[Route], prefix: str) -> Route | None:
    """Return the route that packets to a prefix take: the longest one that covers it whole, as the kernel chooses."""
    wanted = ipaddress.IPv4Network(prefix)
    covering = [route for route in routes if wanted.subnet_of(route.prefix)]
    return max(covering, key=lambda route: route.prefix.prefixlen, default=None)


def _route(row: Mapping[str, Any]) -> Route:
    hops: list[Mapping[str, Any]] = row.get("nexthops") or [row]
    dead = [hop["dev"] for hop in hops if _UNUSABLE & set(hop.get("flags", ())) and "dev" in hop]
    live = [hop["dev"] for hop in hops if not _UNUSABLE & set(hop.get("flags", ())) and "dev" in hop]
    destination = "0.0.0.0/0" if row["dst"] == "default" else row["dst"]
    return Route(ipaddress.IPv4Network(destination), tuple(live), tuple(dead), str(row.get("protocol", "")))
