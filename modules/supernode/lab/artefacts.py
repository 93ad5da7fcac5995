"""The exported artefacts that a lab is built from: read, checked against each other, and fingerprinted.

The lab gets the tables that a cabling crew gets, never the Design, so that a wrong rule shows as a wrong cable.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, collapse_addresses
from pathlib import Path
from typing import Any

from supernode.errors import CouldNotRun, WrongInput
from supernode.lab import wan
from supernode.lab.places import roots_alone
from supernode.lab.wan import Wan
from supernode.units import MbitPerS

# Only where the fabric is one of InfiniBand.
NETLIST = "fabric.net"
FILES = ("cabling.csv", "bmc.csv", "switches.csv", "cooling.csv", "site.json", "authorized_keys")
LABS = IPv4Network("198.18.0.0/15")  # RFC 2544: for tests, routed nowhere
LAB_PREFIX = 19


@dataclass(frozen=True)
class Cable:
    """One row of cabling.csv; the a-end of a rail is the host's, that of an uplink the leaf's."""

    cable: str
    kind: str
    a_device: str
    a_port: str
    b_device: str
    b_port: str
    rate: MbitPerS
    mtu: int


@dataclass(frozen=True)
class Server:
    """One row of bmc.csv."""

    slot: str
    device: str
    kind: str
    bmc: IPv4Interface
    management: IPv4Interface


@dataclass(frozen=True)
class Switch:
    """One row of switches.csv."""

    slot: str
    device: str
    kind: str
    management: IPv4Interface


@dataclass(frozen=True)
class CoolingUnit:
    """One row of cooling.csv; `username` is empty for a unit that is read without an account."""

    unit: str
    kind: str
    address: str
    port: int
    racks: tuple[str, ...]
    username: str


@dataclass(frozen=True)
class Site:
    """What site.json says that the lab has to provide.

    Attributes:
        gateway: of the management network; the lab's own router answers there.
        block: the /19 that holds every address of this lab.
        routes: what the site's router was told besides: network, next hop.
        serve: where the operator's `supernode serve` listens, in the root namespace.
    """

    name: str
    gateway: IPv4Interface
    bmc_gateway: IPv4Interface | None
    block: IPv4Network
    time_servers: tuple[IPv4Address, ...]
    serve: IPv4Address
    bmc_username: str
    routes: tuple[tuple[IPv4Network, IPv4Address], ...] = ()


@dataclass(frozen=True)
class Artefacts:
    """All that a lab is built from.

    Attributes:
        digest: sha256 over the files' names and bytes; the same digest is the same lab.
        authorized_keys: the operator's public keys, which a switch gets from zero-touch provisioning.
        wan: the way to another site, where there is one.
        netlist: the whole fabric.net of an InfiniBand fabric, else "".
    """

    digest: str
    site: Site
    cables: tuple[Cable, ...]
    servers: tuple[Server, ...]
    switches: tuple[Switch, ...]
    authorized_keys: str
    cooling: tuple[CoolingUnit, ...] = ()
    wan: Wan | None = None
    netlist: str = ""

    @property
    def wires(self) -> tuple[Cable, ...]:
        """The cables that the kernel carries: none of an InfiniBand fabric."""
        return () if self.netlist else self.cables

    @property
    def systems(self) -> tuple[Switch, ...]:
        """The switches that run a system one can log in to: none of an InfiniBand fabric."""
        return () if self.netlist else self.switches

    def beyond(self, server: Server) -> bool:
        """Tell whether a server stands at the other site."""
        return self.wan is not None and self.wan.beyond(server.management)

    def server(self, device_or_slot: str) -> Server | None:
        """Find a server by its designed name or its slot."""
        return next((row for row in self.servers if device_or_slot in (row.device, row.slot)), None)

    def slot(self, device_or_slot: str) -> str:
        """Return the slot of a server or switch.

        Raises:
            WrongInput: no such device.
        """
        rows = [(row.slot, row.device) for row in self.servers] + [(row.slot, row.device) for row in self.switches]
        found = next((slot for slot, device in rows if device_or_slot in (slot, device)), None)
        if found is None:
            raise WrongInput(device_or_slot, f"is no device of {self.site.name}", "`supernode lab status` lists them")
        return found


def read(folder: Path) -> Artefacts:
    """Read a folder of artefacts.

    Raises:
        CouldNotRun: a file is missing or no table of the agreed columns, a cable ends nowhere or in a used port, or an
            address lies outside the lab's block.
    """
    with roots_alone(folder.parent.name):
        present = (*FILES, *((NETLIST,) if (folder / NETLIST).exists() else ()))
    texts = {name: _text(folder / name) for name in present}
    digest = hashlib.sha256()
    for name in present:
        digest.update(f"{name}\0{len(texts[name])}\0{texts[name]}".encode())
    try:
        artefacts = Artefacts(
            digest=digest.hexdigest(),
            site=_site(json.loads(texts["site.json"])),
            cables=tuple(_cable(row) for row in _rows(texts["cabling.csv"])),
            servers=tuple(_server(row) for row in _rows(texts["bmc.csv"])),
            switches=tuple(_switch(row) for row in _rows(texts["switches.csv"])),
            authorized_keys=texts["authorized_keys"],
            cooling=tuple(_cooling(row) for row in _rows(texts["cooling.csv"])),
            wan=wan.read(json.loads(texts["site.json"])),
            netlist=texts.get(NETLIST, ""),
        )
    except (KeyError, ValueError) as error:
        raise CouldNotRun(
            str(folder), f"is not a folder of artefacts: {error!r}", "export them again with this version"
        ) from error
    _check(folder, artefacts)
    return artefacts


def _text(path: Path) -> str:
    try:
        with roots_alone(path.parent.parent.name):
            return path.read_text(encoding="utf-8")
    except OSError as error:
        raise CouldNotRun(
            str(path), f"cannot be read ({error.strerror})", "`supernode lab start` exports the artefacts first"
        ) from error


def _rows(text: str) -> Iterable[Mapping[str, str]]:
    return csv.DictReader(text.splitlines())


def _cable(row: Mapping[str, str]) -> Cable:
    rate = MbitPerS(float(row["rate_mbit_s"]))
    ends = (row["a_device"], row["a_port"], row["b_device"], row["b_port"])
    return Cable(row["cable"], row["kind"], *ends, rate, int(row["mtu"]))


def _server(row: Mapping[str, str]) -> Server:
    addresses = IPv4Interface(row["bmc_address"]), IPv4Interface(row["management_address"])
    return Server(row["slot"], row["device"], row["kind"], *addresses)


def _switch(row: Mapping[str, str]) -> Switch:
    return Switch(row["slot"], row["device"], row["kind"], IPv4Interface(row["management_address"]))


def _cooling(row: Mapping[str, str]) -> CoolingUnit:
    racks = tuple(row["racks"].split())
    return CoolingUnit(row["unit"], row["kind"], row["address"], int(row["port"]), racks, row["username"])


def _site(document: Mapping[str, Any]) -> Site:
    networks = {name: IPv4Network(entry["cidr"]) for name, entry in document["networks"].items()}
    serve = IPv4Address(document["serve"]["address"])
    gateways = {
        name: IPv4Interface(f"{entry['gateway']}/{networks[name].prefixlen}")
        for name, entry in document["networks"].items()
        if entry.get("gateway")
    }
    return Site(
        name=document["name"],
        gateway=gateways["management"],
        bmc_gateway=gateways.get("bmc"),
        block=_block([*networks.values(), IPv4Network(serve), *_other_networks(document)]),
        time_servers=tuple(IPv4Address(address) for address in document["time_servers"]),
        serve=serve,
        bmc_username=document["bmc_username"],
        routes=tuple(
            (IPv4Network(route["to"]), IPv4Address(route["via"]))
            for entry in document["networks"].values()
            for route in entry.get("routes", ())
        ),
    )


def _other_networks(document: Mapping[str, Any]) -> Iterable[IPv4Network]:
    found = wan.read(document)
    if found is not None:
        yield from (found.site.management.network, found.site.bmc.network)
        yield from (address.network for row in found.gateways for address in row.wan.addresses)


def _block(networks: Iterable[IPv4Network]) -> IPv4Network:
    """Return the one /19 in which all networks lie."""
    wide = [network for network in networks if network.prefixlen < LAB_PREFIX]
    blocks = list(collapse_addresses(n.supernet(new_prefix=LAB_PREFIX) for n in networks if n.prefixlen >= LAB_PREFIX))
    if wide or len(blocks) != 1 or blocks[0].prefixlen != LAB_PREFIX or not blocks[0].subnet_of(LABS):
        found = ", ".join(map(str, [*wide, *blocks]))
        raise ValueError(f"a lab's networks lie in one /{LAB_PREFIX} of {LABS}; these span {found}")
    return blocks[0]


def _check(folder: Path, artefacts: Artefacts) -> None:
    faults = [*_cable_faults(artefacts), *_address_faults(artefacts)]
    if faults:
        more = f" (and {len(faults) - 3} more)" if len(faults) > 3 else ""
        raise CouldNotRun(
            str(folder), "; ".join(faults[:3]) + more, "the design and its export disagree with each other"
        )


def _cable_faults(artefacts: Artefacts) -> list[str]:
    devices = {row.device for row in artefacts.servers} | {row.device for row in artefacts.switches}
    faults, used = [], set()
    for cable in artefacts.cables:
        for device, port in ((cable.a_device, cable.a_port), (cable.b_device, cable.b_port)):
            if device not in devices:
                faults.append(f"cable {cable.cable} ends at {device}, which is in no list")
            if (device, port) in used:
                faults.append(f"two cables end at {device} {port}")
            used.add((device, port))
        if cable.rate <= 0:
            faults.append(f"cable {cable.cable} has no rate")
    return faults


def _address_faults(artefacts: Artefacts) -> list[str]:
    site = artefacts.site
    named: list[tuple[str, IPv4Address]] = [(f"time server {address}", address) for address in site.time_servers]
    for server in artefacts.servers:
        named += [(f"BMC of {server.device}", server.bmc.ip), (server.device, server.management.ip)]
    named += [(switch.device, switch.management.ip) for switch in artefacts.switches]
    named += [(f"cooling unit {row.unit}", IPv4Address(row.address)) for row in artefacts.cooling]
    faults = [f"{name} lies outside {site.block}" for name, address in named if address not in site.block]
    addresses = [address for _, address in named]
    return faults + [
        f"{address} is given twice" for address in sorted({a for a in addresses if addresses.count(a) > 1})
    ]
