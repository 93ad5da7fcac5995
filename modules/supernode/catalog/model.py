"""The types that a catalogue file is read into."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from supernode.catalog.cloud import CloudShape
from supernode.catalog.topology import Topology
from supernode.units import MbitPerS, format_rate

Transport = Literal["ethernet", "infiniband"]
_GPU_VENDORS = {"10de": "nvidia"}


@dataclass(frozen=True)
class Nic:
    """One port of the compute fabric.

    Attributes:
        rail: 0-based, in the order of the PCI addresses.
        pci: full address, e.g. "0000:18:00.0"; empty where no source says it.
        hca: the name of its RDMA device, e.g. "mlx5_0"; empty where no source says it.
        label: what its place on the machine is called, e.g. "OSFP4P2"; empty where no source says it.
    """

    rail: int
    pci: str
    rate: MbitPerS
    hca: str = ""
    label: str = ""


@dataclass(frozen=True)
class Disk:
    """The disk the image is written to.

    Attributes:
        by_id: a glob of full paths, e.g. "/dev/disk/by-id/nvme-…*": the one name of a disk that outlives a reboot and
            a new cable; empty where deliveries of one kind differ, so that the pool has to name it.
    """

    by_id: str
    size_gb: int


@dataclass(frozen=True)
class Processors:
    """What a scheduler may count on: sockets, cores of each, threads of each core."""

    sockets: int
    cores: int
    threads: int


@dataclass(frozen=True)
class BiosAttribute:
    """One entry of the kind's BIOS attribute registry (Redfish names).

    Attributes:
        type: "Enumeration", "Integer", "String" or "Boolean".
        values: what an enumeration may hold; empty for the other types.
    """

    type: str
    default: str | int | bool
    values: tuple[str, ...] = ()

    def admits(self, value: object) -> bool:
        """Tell whether the registry accepts the value."""
        if self.type == "Enumeration":
            return value in self.values
        wanted = {"Integer": int, "Boolean": bool, "String": str}[self.type]
        return isinstance(value, wanted) and (wanted is bool or not isinstance(value, bool))


@dataclass(frozen=True)
class ServerKind:
    """A kind of server.

    Attributes:
        source: where the figures come from.
        gpu: what the accelerators are called; empty where there are none.
        gpu_pci: the accelerators' full addresses by their numbers; empty where no source says them.
        gpu_id: their PCI vendor and device, e.g. "10de:2330"; empty where no source says it.
        nics: empty for a kind that makes a service pool: no leaf, no rail, no cable.
        links: what its ports can be: a VPI card is a port of either kind of fabric.
        processors: the least that every machine of the kind has; None where no source was read.
        bios: the attribute registry; empty where only the machine itself knows it.
        firmware: the baseline, component to version; empty where none is fixed.
        management_pci: empty where deliveries of one kind differ.
        power_w: the most it draws; None where no source was read.
        management_port: what the kernel calls the management port; empty where deliveries of one kind differ.
        topology: its inside, for its collective library; None where no source was read.
        cloud: how it is asked for at a provider; None for a machine that is bought.
        nic_splits: into how many ports of equal rate each NIC may be divided, one for each plane.
        cage: what its rails' cables are plugged into, as `optics` kinds name it; empty where no source says it.
        cage_ports: how many NICs share a cage.
        liquid_share: of its heat, what a liquid takes; None where no source was read.
    """

    name: str
    vendor: str
    model: str
    source: str
    height_u: int
    gpus: int
    gpu: str
    nics: tuple[Nic, ...]
    management_pci: str
    disk: Disk
    boot: Literal["virtual-media", "uefi-http", "cloud-image"]
    bios: Mapping[str, BiosAttribute]
    firmware: Mapping[str, str]
    power_w: int | None
    gpu_pci: tuple[str, ...] = ()
    gpu_id: str = ""
    management_port: str = ""
    topology: Topology | None = None
    processors: Processors | None = None
    links: tuple[Transport, ...] = ("ethernet",)
    cloud: CloudShape | None = None
    nic_splits: tuple[int, ...] = (1,)
    cage: str = ""
    cage_ports: int = 1
    liquid_share: float | None = None

    @property
    def on_fabric(self) -> bool:
        """Whether its servers have ports for the site's fabric; a rented one has its provider's."""
        return bool(self.nics) and self.cloud is None

    @property
    def gpu_vendor(self) -> str:
        """Whose driver the accelerators want: "nvidia", or "" where that is not known."""
        return _GPU_VENDORS.get(self.gpu_id.partition(":")[0], "") if self.gpus else ""

    @property
    def own_ports(self) -> bool:
        """Whether the rails are the accelerators' own ports, which the host's kernel does not see."""
        return any(nic.pci in self.gpu_pci for nic in self.nics)


@dataclass(frozen=True)
class SwitchKind:
    """A kind of switch.

    Attributes:
        ports: sockets on its front; where a cage holds several, each is one.
        rate: what one socket carries, unsplit.
        splits: into how many ports of equal rate a socket may be divided.
        port_pattern: the port's name by the socket's number {n}, or by its cage's number {cage}; a divided socket or
            cage gets "s" and the 0-based lane behind it.
        power_w: the most it draws; None where no source was read.
        os: "none" for a switch that takes no configuration: an InfiniBand switch does what the subnet manager says.
        link: what its ports are.
        cage: what its cables are plugged into, as `optics` kinds name it; empty where no source says it.
        cage_ports: how many sockets share a cage.
        liquid_share: of its heat, what a liquid takes; None where no source was read.
        capacity: what it switches in one direction, as published; None where no source was read.
    """

    name: str
    vendor: str
    model: str
    source: str
    os: Literal["frr", "none"]
    ports: int
    port_pattern: str
    first_port: int
    rate: MbitPerS
    splits: tuple[int, ...]
    height_u: int
    power_w: int | None
    link: Transport = "ethernet"
    cage: str = ""
    cage_ports: int = 1
    liquid_share: float | None = None
    capacity: MbitPerS | None = None

    def split_for(self, rate: MbitPerS) -> int:
        """Return into how many ports a socket is divided so that each still carries `rate`.

        Raises:
            ValueError: not even an undivided socket does.
        """
        fitting = [split for split in self.splits if self.rate / split >= rate]
        if not fitting:
            raise ValueError(f"a port of {self.name} carries {format_rate(self.rate)}, not {format_rate(rate)}")
        return max(fitting)

    def port_name(self, socket: int, lane: int, split: int) -> str:
        """Name a port by its 0-based socket and lane, as the switch's operating system does."""
        if "{cage}" in self.port_pattern:
            cage, inside = divmod(socket, self.cage_ports)
            return f"{self.port_pattern.format(cage=self.first_port + cage)}s{inside * split + lane}"
        name = self.port_pattern.format(n=self.first_port + socket)
        return name if split == 1 else f"{name}s{lane}"
