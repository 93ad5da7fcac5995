"""The artefacts that leave the Design for people and the lab, line by line: a million cables take the memory of one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from supernode.design import naming
from supernode.design.columns import Numbers, Table
from supernode.design.model import Design
from supernode.design.naming import KINDS
from supernode.spec.parts import Network

CHUNK = 1 << 16  # links that are turned into text at once


def cabling_csv(design: Design) -> Iterator[str]:
    """Yield cabling.csv line by line."""
    yield "cable,kind,a_device,a_slot,a_port,b_device,b_slot,b_port,rate_mbit_s,mtu,length_m\n"
    rates, mtu = design.environment.fabric.rates, design.environment.fabric.mtu
    speed = [f"{rate:g},{mtu}" for rate in (rates.rail, rates.uplink, rates.uplink)]
    for rows, ends in _ends(design):
        lengths, which = np.unique(rows["length_m"], return_inverse=True)
        said = [f"{round(float(length), 2):g}" for length in lengths]
        numbers = zip(rows["cable"].tolist(), rows["tier"].tolist(), which.tolist(), ends, strict=True)
        for cable, tier, length, (a, a_port, b, b_port) in numbers:
            yield f"C{cable:05d},{KINDS[tier]},{a},{a_port},{b},{b_port},{speed[tier]},{said[length]}\n"


def addresses_csv(design: Design) -> Iterator[str]:
    """Yield addresses.csv line by line: loopbacks, which are /32, and both ends of every rail, which are /31."""
    yield "device,slot,port,address\n"
    networks, switches = design.environment.site.networks, design.columns.switches
    loopbacks = naming.ipv4(switches["place"].astype(np.int64) + int(networks.routed("loopbacks").network_address) + 1)
    for name, slot, address in zip(design.switch_names, design.switch_slots, loopbacks, strict=True):
        yield f"{name},{slot},lo,{address}/32\n"
    for rows, ends in _ends(design):
        even = rows["b_address"].astype(np.int64)
        addresses = zip(even.tolist(), naming.ipv4(even + 1), naming.ipv4(even), ends, strict=True)
        for number, upper, lower, (a, a_port, b, b_port) in addresses:
            if number:
                yield f"{a},{a_port},{upper}/31\n{b},{b_port},{lower}/31\n"


def _ends(design: Design) -> Iterator[tuple[Table, Iterator[tuple[str, str, str, str]]]]:
    """Yield the links by the chunk, with "device,slot" and port of both ends of each."""
    links, hosts = design.columns.links, len(design.host_names)
    names, slots = design.host_names + design.switch_names, design.host_slots + design.switch_slots
    devices = [f"{name},{slot}" for name, slot in zip(names, slots, strict=True)]
    ports, lower, upper = _ports(design)
    for start in range(0, len(links), CHUNK):
        rows = links[start : start + CHUNK]
        a = np.where(rows["uplink"], rows["a"].astype(np.int64) + hosts, rows["a"]).tolist()
        a_ports = (lower[rows["tier"] + (rows["tier"] == 0) * (rows["plane"] + 2)] + rows["a_port"]).tolist()
        b_ports = (upper[rows["tier"]] + rows["b_port"]).tolist()
        b = (rows["b"].astype(np.int64) + hosts).tolist()
        ends = zip(a, a_ports, b, b_ports, strict=True)
        yield rows, ((devices[i], ports[p], devices[j], ports[q]) for i, p, j, q in ends)


def _ports(design: Design) -> tuple[list[str], Numbers, Numbers]:
    """Return all names of ports, and where those of the lower and of the upper ends of each tier begin.

    Lower ends of the rails begin by plane, from 3 on.
    """
    links, planes = design.columns.links, range(1, design.environment.fabric.planes + 1)
    most = {(tier, end): _most(links[end][links["tier"] == tier]) for tier in range(3) for end in ("a_port", "b_port")}
    rails, down, up = most[0, "a_port"], most[0, "b_port"], most[1, "a_port"]
    spine = max(most[1, "b_port"], most[2, "a_port"], most[2, "b_port"])
    ports = [naming.rail_port(rail, plane) for plane in planes for rail in range(rails)]
    first = [rails * (plane - 1) for plane in planes]
    starts = []
    for found in (
        [design.leaf_port(n, uplink=False) for n in range(down)],
        [design.leaf_port(n, uplink=True) for n in range(up)],
        [design.spine_port(n) for n in range(spine)],
    ):
        starts.append(len(ports))
        ports += found
    on_leaf, up_leaf, on_spine = starts
    return ports, np.array([0, up_leaf, on_spine, *first]), np.array([on_leaf, on_spine, on_spine])


def _most(numbers: Numbers) -> int:
    return int(numbers.max()) + 1 if len(numbers) else 0


def bmc_csv(design: Design) -> Iterator[str]:
    """Yield bmc.csv line by line; addresses carry their prefix length. Rented hosts have no controller."""
    yield "slot,device,kind,bmc_address,management_address\n"
    hosts = design.columns.hosts
    for index, pool in enumerate(design.environment.pools):
        if pool.cloud:
            continue
        mine, networks = np.flatnonzero(hosts["pool"] == index), design.environment.networks_of(pool)
        offset = hosts["address"][mine].astype(np.int64)
        both = [(int(n.cidr.network_address), n.cidr.prefixlen) for n in (networks.bmc, networks.management)]
        (bmc, bits), (management, width) = both
        rows = zip(mine.tolist(), naming.ipv4(offset + bmc), naming.ipv4(offset + management), strict=True)
        for i, first, second in rows:
            yield f"{design.host_slots[i]},{design.host_names[i]},{pool.kind},{first}/{bits},{second}/{width}\n"


def switches_csv(design: Design) -> Iterator[str]:
    """Yield switches.csv line by line; the address carries its prefix length."""
    yield "slot,device,kind,management_address\n"
    network, switches = design.environment.site.networks.management.cidr, design.columns.switches
    addresses = naming.ipv4(switches["address"].astype(np.int64) + int(network.network_address))
    fabric, tiers = design.environment.fabric, switches["tier"].tolist()
    for name, slot, tier, address in zip(design.switch_names, design.switch_slots, tiers, addresses, strict=True):
        kind = fabric.spine if tier else fabric.leaf
        yield f"{slot},{name},{kind},{address}/{network.prefixlen}\n"


def cooling_csv(design: Design) -> Iterator[str]:
    """Yield cooling.csv line by line; `ca` is the file that signs the unit's certificate, no secret is in it."""
    yield "unit,kind,address,port,racks,username,ca\n"
    for row in design.cooling:
        racks = " ".join(row.racks)
        yield f"{row.name},{row.kind},{row.address},{row.port},{racks},{row.username},{row.ca}\n"


def site_json(design: Design) -> Iterator[str]:
    """Yield site.json."""
    site = design.environment.site
    networks = {}
    for name, network in site.networks.declared().items():
        networks[name] = _network(network)
    document: dict[str, Any] = {
        "name": site.name,
        "domain": site.domain,
        "networks": networks,
        "time_servers": list(site.time_servers),
        "serve": {"address": str(site.serve.address), "port": site.serve.port},
        "bmc_username": (design.environment.bmc.factory or design.environment.bmc).username,
    }
    yield json.dumps({**document, **_beyond(design)}, indent=2) + "\n"


def _network(network: Network) -> dict[str, Any]:
    found: dict[str, Any] = {"cidr": str(network.cidr), "gateway": str(network.gateway) if network.gateway else None}
    routes = [{"to": str(route.to), "via": str(route.via)} for route in network.routes]
    return found | ({"routes": routes} if routes else {})


def _beyond(design: Design) -> dict[str, Any]:
    """Return what a site with a tunnel has besides: the other site, the gateways as they are cabled, and the WAN."""
    link, vpn = design.vpn, design.environment.vpn
    if link is None or vpn is None:
        return {}
    networks = {name: _network(getattr(vpn.remote.networks, name)) for name in ("management", "bmc")}
    gateways = [
        {
            "name": row.name,
            "site": row.site,
            "lan": {"port": row.lan_port, "addresses": [str(address) for address in row.lan]},
            "wan": {"port": row.wan_port, "address": str(row.wan), "gateway": str(row.wan_gateway)},
            "translated": row.public is None,
        }
        for row in link.gateways
    ]
    wan = {"mtu": link.wan_mtu, "tunnel_port": link.port}
    return {"sites": [{"name": link.name, "networks": networks}], "gateways": gateways, "wan": wan}
