"""Which designed device and port a sheet means: the field writes one port in many ways."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Iterator

from supernode import catalog
from supernode.catalog import SwitchKind
from supernode.design import Design
from supernode.verify.sheets.table import ColumnMap


class Names:
    """Devices and ports of a design by what a sheet may call them.

    Args:
        design: whose names are meant.
        wanted: the sheet's own names for them, if any.
    """

    def __init__(self, design: Design, wanted: ColumnMap | None = None) -> None:
        self._design, self._map = design, wanted or ColumnMap({})
        self._devices = {name: name for name in _devices(design)}
        for slot, device in design.slots.items():
            self._devices.setdefault(slot, device)
        self._ports: dict[str, dict[str, str]] = {}

    def device(self, text: str) -> str | None:
        """Return the designed device: by its name, its slot, or its name with a domain, in any case."""
        folded = " ".join(text.lower().split())
        folded = self._map.devices.get(folded, folded).lower()
        return self._devices.get(folded) or self._devices.get(folded.split(".")[0])

    def port(self, device: str, text: str) -> str | None:
        """Return the designed name of a device's port; also of one that the design leaves free."""
        said = " ".join(text.lower().split())
        found = self._map.ports.get(said)
        key = re.sub(r"[\s_-]", "", found.lower() if found else said)
        return self._of(device).get(key) or self._every(device).get(key)

    def near(self, text: str) -> str:
        """Return a hint at the device that may be meant, or ""."""
        close = difflib.get_close_matches(text.lower(), self._devices, 1)
        return f"is it {self._devices[close[0]]}?" if close else "say in the map's `devices` which it is"

    def _of(self, device: str) -> dict[str, str]:
        """Return the ports that have a cable: they win where a spelling fits two."""
        if device not in self._ports:
            links = self._design.links_of(device)
            used = {link.a_port if link.a_device == device else link.b_port for link in links}
            every = self._every(device)
            self._ports[device] = {}
            for spelling, name in self._spellings(device):
                if name in used:
                    self._ports[device].setdefault(spelling, name)
            self._ports[device] |= {name.lower(): name for name in used if name.lower() not in every}
        return self._ports[device]

    def _every(self, device: str) -> dict[str, str]:
        host = self._design.is_host(device)
        return _table(self._design.host(device).kind if host else self._design.switch(device).kind, host=host)

    def _spellings(self, device: str) -> tuple[tuple[str, str], ...]:
        if self._design.is_host(device):
            return _host(self._design.host(device).kind)
        return _switch(self._design.switch(device).kind)


def _devices(design: Design) -> Iterator[str]:
    yield from (host.name for host in design.hosts)
    yield from (switch.name for switch in design.switches)


@functools.cache
def _table(kind: str, *, host: bool) -> dict[str, str]:
    found: dict[str, str] = {}
    for spelling, name in _host(kind) if host else _switch(kind):
        found.setdefault(spelling, name)
    return found


@functools.cache
def _host(kind: str) -> tuple[tuple[str, str], ...]:
    """Return the spellings of a host's ports: its rail, its adapter, its label, and its number from 1."""
    found = []
    for nic in catalog.server(kind).nics:
        name, hca = f"rail{nic.rail}", nic.hca or f"mlx5_{nic.rail}"
        plain = re.sub(r"[\s_-]", "", hca.lower())
        spellings = [name, plain, f"{plain}/p1", f"{plain}/1", f"{plain}p1", nic.label.lower().replace(" ", "")]
        spellings += [str(nic.rail + 1), f"p{nic.rail + 1}", f"port{nic.rail + 1}", f"hca{nic.rail + 1}"]
        found += [(spelling, name) for spelling in spellings if spelling]
    return tuple(found)


@functools.cache
def _switch(kind: str) -> tuple[tuple[str, str], ...]:
    """Return the spellings of a switch's ports; a later one counts only where no earlier one is the same."""
    row = catalog.switch(kind)
    return tuple(
        (spelling, row.port_name(socket, lane, split))
        for split in row.splits
        for socket in range(row.ports)
        for lane in range(split)
        for spelling in _socket(row, socket, lane, split)
    )


def _socket(kind: SwitchKind, socket: int, lane: int, split: int) -> Iterator[str]:
    """Yield how one port is written: by name, by number, by cage and place in it, as MLNX-OS, NVOS and others do."""
    yield kind.port_name(socket, lane, split).lower()
    number = kind.first_port + socket
    cage, inside = divmod(socket, kind.cage_ports)
    if split == 1:
        yield from (f"{before}{number}" for before in ("", "p", "port", "ib1/", "eth", "ethernet"))
        if kind.cage_ports == 1:
            cage, inside = socket, 0
    else:
        cage, inside = (cage, inside * split + lane) if "{cage}" in kind.port_pattern else (socket, lane)
    place = f"{kind.first_port + cage}/{inside + 1}"
    yield from (place, f"ib1/{place}", f"eth{place}", f"ethernet{place}", f"port{place}")
    yield f"sw{kind.first_port + cage}p{inside + 1}"
