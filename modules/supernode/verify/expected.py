"""What the gates compare with: the design's expectations as typed rows, and the cables that they imply."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from supernode.units import MbitPerS, Milliseconds
from supernode.verify import marks
from supernode.verify.marks import Baseline, Mark

if TYPE_CHECKING:
    from supernode.design.expectations import Collectives, Expectations, GatewayExpectation, HostPort, SwitchPort
    from supernode.design.observers import CoolingExpectation, WatchExpectation

End = tuple[str, str]
"""One end of a cable: device and port."""


@dataclass(frozen=True)
class PortWanted:
    """One port as designed; address, prefix and peer_address are empty on a switch's side of the table.

    Attributes:
        shut: the port belongs to a quarantined slot and must be off.
    """

    peer_device: str
    peer_port: str
    mtu: int
    rate: MbitPerS
    cable: str
    kind: str = "rail"
    address: str = ""
    prefix: int = 0
    peer_address: str = ""
    shut: bool = False


@dataclass(frozen=True)
class GpusWanted:
    """A host's accelerators: driver, how many, and their addresses by number; none where no source says them."""

    driver: str
    count: int
    addresses: tuple[str, ...]


@dataclass(frozen=True)
class CollectivesWanted:
    """What a collective library reads: digests of its files, its variables, addresses of the devices that it names."""

    files: Mapping[str, str]
    settings: Mapping[str, str]
    devices: Mapping[str, str]


@dataclass(frozen=True)
class HostWanted:
    """One host as designed; serial, uuid and image are empty while nobody has said them, gpus None without a driver.

    Attributes:
        gres: what the host offers to the scheduler; "" where it is none of its nodes.
    """

    slot: str
    serial: str
    uuid: str
    image: str
    ports: Mapping[str, PortWanted]
    gpus: GpusWanted | None = None
    gres: str = ""
    collectives: CollectivesWanted | None = None


@dataclass(frozen=True)
class SwitchWanted:
    """One switch as designed; fib is prefix -> number of ways that the kernel must hold."""

    ports: Mapping[str, PortWanted]
    fib: Mapping[str, int]


@dataclass(frozen=True)
class SubnetWanted:
    """An InfiniBand fabric as designed: who manages it, master first, and whose port each adapter's name stands for."""

    managers: tuple[str, ...]
    nodes: Mapping[str, End]


@dataclass(frozen=True)
class Cable:
    """One cable; a is the host's or the leaf's end, b the leaf's or the spine's."""

    id: str
    kind: str
    a: End
    b: End
    rate: MbitPerS
    mtu: int


@dataclass(frozen=True)
class Wanted:
    """Everything the checks compare with.

    Attributes:
        mark: what a cable has to carry, and on whose word.
        cooling, watch: None where the environment has no cooling agent and no Prometheus.
        subnet: of an InfiniBand fabric, whose switches nobody logs in to; None where the fabric is routed.
    """

    hosts: Mapping[str, HostWanted]
    switches: Mapping[str, SwitchWanted]
    time_offset: Milliseconds
    mark: Mark
    cooling: CoolingExpectation | None = None
    watch: WatchExpectation | None = None
    gateways: Mapping[str, GatewayExpectation] = field(default_factory=dict)
    subnet: SubnetWanted | None = None

    @property
    def rate_floor(self) -> float:
        """The mark's share of the declared rate."""
        return self.mark.share

    def cables(self) -> dict[str, Cable]:
        """Return every cable that should carry, by id, each once, in the order of its a ends."""
        return self._cables

    @functools.cached_property
    def _cables(self) -> dict[str, Cable]:
        found: dict[str, Cable] = {}
        for name, host in self.hosts.items():
            for port, row in host.ports.items():
                found[row.cable] = _cable(row, (name, port), "rail")
        leaves = [n for n, s in self.switches.items() if any(p.kind == "rail" for p in s.ports.values())]
        for name in [*leaves, *(n for n in self.switches if n not in set(leaves))]:
            for port, row in self.switches[name].ports.items():
                if row.cable not in found and row.kind == "uplink" and not row.shut:
                    found[row.cable] = _cable(row, (name, port), "uplink")
        return found

    def devices(self) -> tuple[str, ...]:
        """Return all names: hosts first, then switches and gateways."""
        return (*self.hosts, *self.switches, *self.gateways)

    def asked(self) -> tuple[str, ...]:
        """Return those that can be logged in to."""
        return self.devices() if self.subnet is None else tuple(self.hosts)

    def port(self, end: End) -> PortWanted | None:
        """Return what is designed at an end, or None when the design has nothing there."""
        device, port = end
        row: HostWanted | SwitchWanted | None = self.hosts.get(device) or self.switches.get(device)
        return row.ports.get(port) if row is not None else None


def _cable(row: PortWanted, end: End, kind: str) -> Cable:
    return Cable(row.cable, kind, end, (row.peer_device, row.peer_port), row.rate, row.mtu)


def _host_port(row: HostPort) -> PortWanted:
    rate = MbitPerS(row.rate_mbit_s)
    place = (row.peer_device, row.peer_port, row.mtu, rate, row.cable)
    return PortWanted(*place, address=row.address, prefix=row.prefix, peer_address=row.peer_address)


def _collectives(row: Collectives) -> CollectivesWanted:
    return CollectivesWanted(dict(row.files), dict(row.settings), dict(row.devices))


def _switch_port(row: SwitchPort) -> PortWanted:
    rate = MbitPerS(row.rate_mbit_s)
    return PortWanted(row.peer_device, row.peer_port, row.mtu, rate, row.cable, kind=row.kind, shut=row.shut)


def read(
    expectations: Expectations, images: Mapping[str, str] | None = None, baseline: Baseline | None = None
) -> Wanted:
    """Turn the design's expectations into what the gates compare with.

    Args:
        expectations: from `design.expectations.build`.
        images: digest of the image that the engine installed, by host; it fills in where the expectations name none.
        baseline: what the last clean run reached, which calibrates computed marks.
    """
    known = images or {}
    hosts = {
        name: HostWanted(
            row.slot,
            row.serial,
            row.uuid,
            row.image or known.get(name, ""),
            {port: _host_port(p) for port, p in row.ports.items()},
            GpusWanted(row.gpus.driver, row.gpus.count, tuple(row.gpus.addresses)) if row.gpus else None,
            row.gres,
            _collectives(row.collectives) if row.collectives else None,
        )
        for name, row in expectations.hosts.items()
    }
    switches = {
        name: SwitchWanted({port: _switch_port(p) for port, p in row.ports.items()}, dict(row.fib))
        for name, row in expectations.switches.items()
    }
    mark = marks.mark(expectations, baseline)
    cooling, watch, found = expectations.cooling, expectations.watch, expectations.subnet
    subnet = SubnetWanted(found.managers, found.nodes) if found is not None else None
    return Wanted(hosts, switches, expectations.time_offset_ms, mark, cooling, watch, expectations.gateways, subnet)
