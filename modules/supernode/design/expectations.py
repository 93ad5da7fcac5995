"""What the checks compare the world with."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from supernode.design import collectives, gpu_driver, infiniband, observers, scheduler, vpn
from supernode.design.model import Design
from supernode.design.rows import Host
from supernode.units import MbitPerS, Milliseconds

CONTRACT = "contract: verify.rate_floor"
HEADERS, FRAMING = 48, 38  # bytes: IPv6 + UDP; Ethernet header, FCS, preamble and gap
# Of the payload's share: one-second windows of paced flows are within 3 % (measured with tbf on veth), and a sender has
# to stay below the line rate to queue nowhere.
EFFICIENCY = 0.93


@dataclass(frozen=True)
class HostPort:
    """One rail of a host: its own side, and what should answer on the other; an InfiniBand port has no addresses."""

    address: str
    prefix: int
    mtu: int
    rate_mbit_s: MbitPerS
    peer_device: str
    peer_port: str
    peer_address: str
    cable: str


@dataclass(frozen=True)
class Gpus:
    """A host's accelerators: the driver's version, how many, and their addresses by number; none where nobody knows."""

    driver: str
    count: int
    addresses: tuple[str, ...]


@dataclass(frozen=True)
class Collectives:
    """What a host's collective library reads.

    Attributes:
        files: SHA-256 of each file, by path.
        settings: its variables.
        devices: the PCI addresses of the RDMA devices that it is told to use, by name.
    """

    files: Mapping[str, str]
    settings: Mapping[str, str]
    devices: Mapping[str, str]


@dataclass(frozen=True)
class HostExpectation:
    """A host; `serial`, `uuid` and `image` are empty where nothing is known yet.

    Attributes:
        gpus: None where no driver is wanted.
        gres: what it offers to the scheduler; empty where it is none of its nodes.
        collectives: None where no library is configured.
    """

    slot: str
    serial: str
    uuid: str
    image: str
    ports: Mapping[str, HostPort]
    gpus: Gpus | None = None
    gres: str = ""
    collectives: Collectives | None = None


@dataclass(frozen=True)
class SwitchPort:
    """One cabled port of a switch; a shut one should see nobody."""

    peer_device: str
    peer_port: str
    mtu: int
    rate_mbit_s: MbitPerS
    cable: str
    kind: str
    shut: bool = False


@dataclass(frozen=True)
class SwitchExpectation:
    """A switch; `fib` is prefix to the number of next hops that the kernel should hold."""

    ports: Mapping[str, SwitchPort]
    fib: Mapping[str, int]


@dataclass(frozen=True)
class Subnet:
    """What an InfiniBand fabric is expected to show.

    Attributes:
        managers: the hosts whose subnet managers run, the master first.
        nodes: what each adapter calls itself, to its host and port.
    """

    managers: tuple[str, ...]
    nodes: Mapping[str, tuple[str, str]]


@dataclass(frozen=True)
class GatewayExpectation:
    """One end of a tunnel, and what it must reach at the other.

    Attributes:
        site: where it stands; public: its address on the WAN, empty behind address translation.
        beyond: prefixes whose only way leads into the tunnel; private: names of the data that it blocks.
        behind: the machines that are reached by way of it.
    """

    peer: str
    site: str
    interface: str
    inside: str
    wan: str
    public: str
    mtu: int
    wan_mtu: int
    beyond: tuple[str, ...]
    private: tuple[str, ...]
    behind: tuple[str, ...]


@dataclass(frozen=True)
class Expectations:
    """All that is expected; quarantined hosts are in no row. `subnet`, `cooling` and `watch` are None without.

    Attributes:
        rate_floor: the share of its declared rate that a cable must carry each way.
        rate_source: where that comes from: the contract, or the arithmetic.
        rate_contract: it is the contract's, and binds as it is.
    """

    hosts: Mapping[str, HostExpectation]
    switches: Mapping[str, SwitchExpectation]
    time_offset_ms: Milliseconds
    rate_floor: float
    subnet: Subnet | None = None
    cooling: observers.CoolingExpectation | None = None
    watch: observers.WatchExpectation | None = None
    gateways: Mapping[str, GatewayExpectation] = field(default_factory=dict)
    rate_source: str = CONTRACT
    rate_contract: bool = True

    def to_json(self) -> dict[str, Any]:
        """Return the JSON document that `from_json` reads back."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Expectations:
        """Read what `to_json` wrote."""
        hosts = {name: _host_of(row) for name, row in document["hosts"].items()}
        switches = {
            name: SwitchExpectation({port: SwitchPort(**p) for port, p in row["ports"].items()}, row["fib"])
            for name, row in document["switches"].items()
        }
        gateways = {
            name: GatewayExpectation(**{**row, **{key: tuple(row[key]) for key in ("beyond", "private", "behind")}})
            for name, row in document.get("gateways", {}).items()
        }
        offset, floor = Milliseconds(document["time_offset_ms"]), document["rate_floor"]
        cooling, watch = observers.cooling_read(document.get("cooling")), observers.watch_read(document.get("watch"))
        rest = (_subnet_of(document.get("subnet")), cooling, watch, gateways)
        return cls(hosts, switches, offset, floor, *rest, document["rate_source"], document["rate_contract"])


def _subnet_of(document: Mapping[str, Any] | None) -> Subnet | None:
    if document is None:
        return None
    nodes = {node: (device, port) for node, (device, port) in document["nodes"].items()}
    return Subnet(tuple(document["managers"]), nodes)


def _host_of(row: Mapping[str, Any]) -> HostExpectation:
    ports = {port: HostPort(**p) for port, p in row["ports"].items()}
    gpus = Gpus(**{**row["gpus"], "addresses": tuple(row["gpus"]["addresses"])}) if row.get("gpus") else None
    reads = Collectives(**row["collectives"]) if row.get("collectives") else None
    return HostExpectation(**{**row, "ports": ports, "gpus": gpus, "collectives": reads})


def build(design: Design, image: str = "") -> Expectations:
    """Return what the Design expects; `image` is the digest of the golden image, where one is at hand."""
    fibs, floor = _fibs(design), design.environment.verify.rate_floor
    return Expectations(
        hosts={host.name: _host(design, host.name, image) for host in design.hosts if host.state != "quarantined"},
        switches={
            switch.name: SwitchExpectation(_ports(design, switch.name), fibs[switch.name]) for switch in design.switches
        },
        time_offset_ms=Milliseconds(design.environment.verify.time_offset_ms),
        rate_floor=floor if floor is not None else _computed(design.environment.fabric.mtu),
        subnet=_subnet(design) if design.environment.fabric.infiniband else None,
        cooling=observers.cooling(design),
        watch=observers.watch(design),
        gateways=_gateways(design),
        rate_source=CONTRACT if floor is not None else _arithmetic(design.environment.fabric.mtu),
        rate_contract=floor is not None,
    )


def _payload(mtu: int) -> float:
    """Return the share of a line's bits that are payload: IPv6 and UDP headers off, Ethernet's framing and gap on."""
    return (mtu - HEADERS) / (mtu + FRAMING)


def _computed(mtu: int) -> float:
    return round(_payload(mtu) * EFFICIENCY, 4)


def _arithmetic(mtu: int) -> str:
    """Say how a mark is computed: algorithm, size, efficiency and what it rests on."""
    rate = "the ports' declared rate (lanes x lane rate, one port)"
    return f"computed: {rate} x {_payload(mtu):.3f} (paced UDP, {mtu}-byte packets) x {EFFICIENCY:g} efficiency"


def _subnet(design: Design) -> Subnet:
    links = [link for link in design.links if link.kind == "rail"]
    nodes = {infiniband.node(design, link.a_device, link.rail): (link.a_device, link.a_port) for link in links}
    return Subnet(tuple(host.name for host in infiniband.managers(design)), nodes)


def _gateways(design: Design) -> dict[str, GatewayExpectation]:
    found: dict[str, GatewayExpectation] = {}
    link = design.vpn
    if link is None:
        return found
    pools = {pool.name: pool.site for pool in design.environment.pools if pool.site != design.environment.site.name}
    for row in link.gateways:
        found[row.name] = GatewayExpectation(
            peer=link.peer(row).name,
            site=row.site,
            interface=vpn.INTERFACE,
            inside=str(row.inside),
            wan=str(row.wan.ip),
            public=str(row.public or ""),
            mtu=link.mtu,
            wan_mtu=link.wan_mtu,
            beyond=tuple(str(prefix) for prefix in row.beyond),
            private=tuple(name for name, _ in row.private),
            behind=tuple(h.name for h in design.hosts if pools.get(h.pool) == row.site and h.state != "quarantined"),
        )
    return found


def _host(design: Design, name: str, image: str) -> HostExpectation:
    host = design.host(name)
    ports = {}
    for link in design.links_of(name):
        ports[link.a_port] = HostPort(
            address=str(link.a_address.ip) if link.a_address else "",
            prefix=link.a_address.network.prefixlen if link.a_address else 0,
            mtu=link.mtu,
            rate_mbit_s=link.rate,
            peer_device=link.b_device,
            peer_port=link.b_port,
            peer_address=str(link.b_address.ip) if link.b_address else "",
            cable=link.cable,
        )
    # A rented host runs its provider's image, not the golden one.
    runs = "" if host.cloud else image
    gpus = _gpus(design, host) if gpu_driver.applies(design, host) else None
    gres = scheduler.gres(design.environment, host.kind)
    reads = _collectives(design, host) if collectives.applies(design, host) else None
    return HostExpectation(host.slot, host.identity.system_serial, host.identity.uuid, runs, ports, gpus, gres, reads)


def _collectives(design: Design, host: Host) -> Collectives:
    settings = collectives.tuning(design, host).values()
    named = settings.get("NCCL_IB_HCA", "").removeprefix("=").split(",")
    return Collectives(
        files={
            file.path: hashlib.sha256(file.content.encode()).hexdigest() for file in collectives.files(design, host)
        },
        settings=settings,
        devices={nic.hca: nic.pci for nic in design.server_kind(host).nics if nic.hca in named},
    )


def _gpus(design: Design, host: Host) -> Gpus | None:
    driver, kind = design.environment.gpu_driver, design.server_kind(host)
    return Gpus(driver.version, kind.gpus, kind.gpu_pci) if driver is not None else None


def _ports(design: Design, name: str) -> dict[str, SwitchPort]:
    ports = {}
    for link in design.links_of(name):
        mine, device, port = (
            (link.a_port, link.b_device, link.b_port)
            if link.a_device == name
            else (link.b_port, link.a_device, link.a_port)
        )
        ports[mine] = SwitchPort(device, port, link.mtu, link.rate, link.cable, link.kind, link.shut)
    return ports


def _fibs(design: Design) -> dict[str, dict[str, int]]:
    """Return the routes that BGP should leave in each kernel: prefixes and loopbacks of leaves, other loopbacks.

    A route goes up as far as it has to and then down, once over each cable on the shortest way. Spines of a pod do not
    reach each other, nor do cores: they share an AS.
    """
    if design.environment.fabric.infiniband:
        return {switch.name: {} for switch in design.switches}
    switches, widths = list(design.switches), _widths(design)
    fibs: dict[str, dict[str, int]] = {}
    for at, switch in enumerate(switches):
        fib = fibs.setdefault(switch.name, {})
        for to in np.flatnonzero(widths[at]):
            other, width = switches[to], int(widths[at, to])
            if (prefix := design.announced(other)) is not None:
                fib[str(prefix)] = width
            fib[f"{other.loopback}/32"] = width
    return fibs


def _widths(design: Design) -> npt.NDArray[np.int64]:
    """Return over how many cables each switch should send what is for each other; 0 where no way leads."""
    links, count = design.columns.links, len(design.columns.switches)
    up = links[links["uplink"]]
    cables = np.zeros((count, count), np.int64)  # from the lower switch to the upper one
    np.add.at(cables, (up["a"], up["b"]), 1)
    down = cables.T + cables.T @ (cables.T > 0).astype(np.int64)
    widths = cables + down
    for reached in (down, None):  # over what reaches it by going down, else over what has to rise once more
        beyond = cables @ ((widths if reached is None else reached) > 0).astype(np.int64)
        widths = np.where(widths > 0, widths, beyond)
    np.fill_diagonal(widths, 0)
    return widths
