"""Which hosts are near which: units below one set of leaves, and what joins them, from the cables alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from supernode.design.model import Design
from supernode.design.rows import Host
from supernode.design.scheduler import hostlist

# NVIDIA DGX GB200 and GB300 user guides: the 18 trays of a rack share one NVLink domain.
_RACK_DOMAINS = frozenset({"gb200-tray", "gb300-tray"})


@dataclass(frozen=True)
class Unit:
    """Hosts that are one switch apart on every rail.

    Attributes:
        above: the names of what joins it to others, nearest first; empty where nothing does.
    """

    name: str
    hosts: tuple[Host, ...]
    above: tuple[str, ...]

    @property
    def nodes(self) -> str:
        """The hosts as Slurm writes a list of them."""
        return hostlist(self.hosts)


def units(design: Design) -> tuple[Unit, ...]:
    """Return the units of the site's fabric, by number."""
    hosts = [host for host in design.hosts if host.su]
    spines, inner = _spines(design)
    pods = sorted({found for found in spines.values() if found}, key=sorted)
    found = []
    for su, members in groupby(sorted(hosts, key=lambda host: host.su), lambda host: host.su):
        mine = spines.get(su, frozenset())
        name = "spines" if len(pods) == 1 else f"pod{pods.index(mine) + 1:02d}" if mine else ""
        above = (name, *(["cores"] if len(pods) > 1 and inner else [])) if name else ()
        found.append(Unit(f"su{su:02d}", tuple(members), above))
    return tuple(found)


def _spines(design: Design) -> tuple[dict[int, frozenset[str]], bool]:
    """Return the spines above each unit, and whether a switch that is no leaf has a cable upwards."""
    sus = {switch.name: switch.su for switch in design.switches if switch.tier == "leaf"}
    above: dict[int, set[str]] = {}
    inner = False
    for link in design.links:
        if link.a_device in sus:
            above.setdefault(sus[link.a_device], set()).add(link.b_device)
        else:
            inner = inner or not design.is_host(link.a_device)
    return {su: frozenset(names) for su, names in above.items()}, inner


def parents(found: tuple[Unit, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield what joins units and what it joins, the lower ones first."""
    joined: dict[str, dict[str, None]] = {}
    for unit in found:
        for child, parent in zip((unit.name, *unit.above), unit.above, strict=False):
            joined.setdefault(parent, {})[child] = None
    order = sorted(joined, key=lambda name: name == "cores")
    return ((name, tuple(joined[name])) for name in order)


def domains(design: Design) -> dict[str, tuple[Host, ...]]:
    """Return the NVLink domains that span several hosts, by name; none where a host is a domain of its own."""
    racks: dict[str, list[Host]] = {}
    for host in design.hosts:
        if host.kind in _RACK_DOMAINS:
            racks.setdefault(f"nvl-{host.rack}", []).append(host)
    return {name: tuple(hosts) for name, hosts in racks.items()}
