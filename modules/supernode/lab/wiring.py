"""The lab's networks as lists of commands: what to make, from the artefacts alone. Nothing here runs anything.

Namespaces:
    root            lab-<hash> with the serve address, a veth to ctl0
    the lab's own   ctl0; mgmt, a bridge with the gateway's address; all others that it answers at on lo; it routes
    each switch's   eth0 (management, on the bridge) and the fabric ports
    each server's   eno1 (on the bridge) and the rails, under the names that a kernel gives by PCI address
    unplugged       the far ends of ports without a cable, down for good, so that such a port never has a carrier
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address

from supernode import catalog
from supernode.lab import wan
from supernode.lab.artefacts import LABS, Artefacts, Cable, Server
from supernode.lab.chassis import manufactured_mac
from supernode.units import MbitPerS

BRIDGE, UPLINK, SWITCH_MANAGEMENT, SERVER_MANAGEMENT, UNPLUGGED = "mgmt", "ctl0", "eth0", "eno1", "unplugged"
MANAGEMENT_INDEX, FIRST_RAIL_INDEX = 10, 20
_RAIL = re.compile(r"rail(\d+)")
_PCI = re.compile(r"[0-9a-f]{4}:([0-9a-f]{2}):([0-9a-f]{2})\.[0-9a-f]")


@dataclass(frozen=True)
class Port:
    """A network port of a server.

    Attributes:
        designed: `management` or `rail0` …, as cabling.csv and the BMC call it.
        name: what the kernel calls it before anyone renames it.
        index: the link's index in its namespace, which no rename changes.
    """

    designed: str
    name: str
    index: int
    mac: str
    pci: str
    rate: MbitPerS


def kernel_name(pci: str) -> str:
    """Return the netdev name that the kernel and systemd give a NIC port by its PCI address (contracts, section 4).

    Raises:
        ValueError: no full PCI address.
    """
    match = _PCI.fullmatch(pci)
    if match is None:
        raise ValueError(f"{pci!r} is not a PCI address such as '0000:18:00.0'")
    return f"enp{int(match[1], 16)}s{int(match[2], 16)}np0"


def server_ports(lab: str, server: Server, generation: int = 1) -> tuple[Port, ...]:
    """Return the ports of the n-th machine in a slot, management first, with the addresses on their labels.

    InfiniBand adapters are none: no network interface is theirs.
    """
    kind = catalog.server(server.kind)

    def mac(port: str) -> str:
        return manufactured_mac(lab, server.slot, port, generation)

    management = Port(
        "management", SERVER_MANAGEMENT, MANAGEMENT_INDEX, mac("management"), kind.management_pci, MbitPerS(1000)
    )
    rails = (
        Port(
            f"rail{nic.rail}",
            kernel_name(nic.pci),
            FIRST_RAIL_INDEX + nic.rail,
            mac(f"rail{nic.rail}"),
            nic.pci,
            nic.rate,
        )
        for nic in kind.nics
        if "ethernet" in kind.links
    )
    return (management, *rails)


def spaces(artefacts: Artefacts) -> tuple[str, ...]:
    """Return the namespaces to make, by device name."""
    beyond = wan.spaces(artefacts.wan) if artefacts.wan else ()
    return (*(row.device for row in artefacts.systems), *(row.device for row in artefacts.servers), *beyond, UNPLUGGED)


def commands(lab: str, artefacts: Artefacts) -> Iterator[str]:
    """Yield the `ip` commands that make every network of the lab, for a batch run in the lab's own namespace."""
    site = artefacts.site
    yield from (f"netns add {space}" for space in spaces(artefacts))
    yield f"route add unreachable {LABS} metric 9999"
    yield "link set lo up"
    yield f"link add {BRIDGE} type bridge"
    yield f"address add {site.gateway} dev {BRIDGE}"
    yield f"link set {BRIDGE} up"
    here = [server for server in artefacts.servers if not artefacts.beyond(server)]
    own = {*site.time_servers, *(server.bmc.ip for server in here)}
    own |= {IPv4Address(unit.address) for unit in artefacts.cooling}
    own |= {site.bmc_gateway.ip} if site.bmc_gateway else set()
    own -= {site.gateway.ip}
    yield from (f"address add {address}/32 dev lo" for address in sorted(own))
    for switch in artefacts.systems:
        yield _management(
            switch.device, switch.slot, SWITCH_MANAGEMENT, manufactured_mac(lab, switch.slot, "management")
        )
        yield from _attach(switch.slot)
    for server in artefacts.servers:
        port = server_ports(lab, server)[0]
        if artefacts.wan is not None and artefacts.beyond(server):  # the other site's bridge is in its own namespace
            far = f" netns {artefacts.wan.site.space}"
            yield _management(server.device, server.slot, port.name, port.mac) + far
        else:
            yield _management(server.device, server.slot, port.name, port.mac)
            yield from _attach(server.slot)
    yield from (cable_command(lab, artefacts, cable) for cable in artefacts.wires)
    yield from _unplugged_ports(lab, artefacts)
    yield from (f"route add {to} via {via}" for to, via in site.routes)


def _unplugged_ports(lab: str, artefacts: Artefacts) -> Iterator[str]:
    """Make the server ports that no cable ends at: the card is there all the same."""
    used = {(cable.a_device, cable.a_port) for cable in artefacts.cables}
    used |= {(cable.b_device, cable.b_port) for cable in artefacts.cables}
    number = 0
    for server in artefacts.servers:
        for port in server_ports(lab, server)[1:]:
            if (server.device, port.designed) not in used:
                number += 1
                end = f"name {port.name} index {port.index} address {port.mac} netns {server.device}"
                yield f"link add {end} type veth peer name u{number} netns {UNPLUGGED}"


def bridge_port(slot: str) -> str:
    """Name the bridge's side of a device's management link."""
    return f"m-{slot}"[:15]


def _management(space: str, slot: str, name: str, mac: str) -> str:
    return (
        f"link add {name} index {MANAGEMENT_INDEX} address {mac} netns {space} type veth peer name {bridge_port(slot)}"
    )


def _attach(slot: str) -> Iterator[str]:
    yield f"link set {bridge_port(slot)} master {BRIDGE}"
    yield f"link set {bridge_port(slot)} up"


def cable_command(lab: str, artefacts: Artefacts, cable: Cable) -> str:
    """Return the command that makes one cable with both its ports."""
    a, b = (
        _end(lab, artefacts, device, port, cable.rate)
        for device, port in ((cable.a_device, cable.a_port), (cable.b_device, cable.b_port))
    )
    return f"link add {a} type veth peer {b}"


def _end(lab: str, artefacts: Artefacts, device: str, port: str, rate: MbitPerS) -> str:
    server = artefacts.server(device)
    if server is not None:
        found = server_port(lab, server, port)
        name, index, mac = found.name, f"index {found.index}", found.mac
    else:
        slot = next(switch.slot for switch in artefacts.switches if switch.device == device)
        name, index, mac = port, "", manufactured_mac(lab, slot, port)
    return f"name {name} {index} address {mac} netns {device} {shaping(rate).offload}".strip()


def server_port(lab: str, server: Server, designed: str) -> Port:
    """Find a server's port by its designed name.

    Raises:
        KeyError: the kind has no such port.
    """
    found = next((port for port in server_ports(lab, server) if port.designed == designed), None)
    if found is None:
        raise KeyError(f"{server.device} ({server.kind}) has no port {designed}")
    return found


@dataclass(frozen=True)
class Shaping:
    """How a port is held to its cable's rate.

    Attributes:
        qdisc: the arguments of `tc qdisc replace`.
        offload: the arguments of `ip link`: a segment that the stack leaves whole must fit into the bucket.
    """

    qdisc: str
    offload: str


QUEUE_S = 1.6


def shaping(rate: MbitPerS) -> Shaping:
    """Choose bucket, queue and offload for a rate.

    Figures from measurements on veth pairs: 10 Mbit/s with 38 kB and 36,000 byte segments, 100M/64kB, 1G/256kB, 5G/1MB
    came within 1 % of their rate; between and beyond them the bucket grows a little slower than the rate. The queue
    holds at most 1.6 s: behind a longer one, on a slow cable, a ping after a flow would wait until nobody listens.
    """
    burst = max(38_000, int(256_000 * (rate / 1000.0) ** 0.75))
    offload = "gso_max_size 36000" if burst < 66_000 else ""
    limit = max(min(2_000_000, int(QUEUE_S * rate * 1e6 / 8)), 4 * burst)
    return Shaping(f"tbf rate {max(1, round(rate * 1e6))}bit burst {burst} limit {limit}", offload)


def shaped_ends(artefacts: Artefacts, cable: Cable) -> tuple[tuple[str, str], ...]:
    """Return the (device, port) ends that hold the rate: those on switches, for a host could change its own."""
    ends = ((cable.a_device, cable.a_port), (cable.b_device, cable.b_port))
    return tuple((device, port) for device, port in ends if artefacts.server(device) is None)


def qdisc_commands(artefacts: Artefacts, cables: Iterable[Cable]) -> dict[str, list[str]]:
    """Return the `tc` commands that hold each cable to its rate, by namespace."""
    found: dict[str, list[str]] = {}
    for cable in cables:
        for device, port in shaped_ends(artefacts, cable):
            found.setdefault(device, []).append(f"qdisc replace dev {port} root {shaping(cable.rate).qdisc}")
    return found
