"""The artefacts that leave the Design for people and the lab, line by line: a million cables take the memory of one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from supernode.design import infiniband
from supernode.design.model import Design
from supernode.spec.parts import Network


def cabling_csv(design: Design) -> Iterator[str]:
    """Yield cabling.csv line by line."""
    slots = {device: slot for slot, device in design.slots.items()}
    yield "cable,kind,a_device,a_slot,a_port,b_device,b_slot,b_port,rate_mbit_s,mtu,length_m\n"
    for row in design.links:
        a, b = (
            f"{row.a_device},{slots[row.a_device]},{row.a_port}",
            f"{row.b_device},{slots[row.b_device]},{row.b_port}",
        )
        yield f"{row.cable},{row.kind},{a},{b},{row.rate:g},{row.mtu},{row.length:g}\n"


def bmc_csv(design: Design) -> Iterator[str]:
    """Yield bmc.csv line by line; addresses carry their prefix length. Rented hosts have no controller."""
    yield "slot,device,kind,bmc_address,management_address\n"
    for row in (host for host in design.hosts if not host.cloud):
        prefix = design.networks_of(row).bmc.cidr.prefixlen
        yield f"{row.slot},{row.name},{row.kind},{row.bmc}/{prefix},{row.management}\n"


def switches_csv(design: Design) -> Iterator[str]:
    """Yield switches.csv line by line; the address carries its prefix length."""
    yield "slot,device,kind,management_address\n"
    for row in design.switches:
        yield f"{row.slot},{row.name},{row.kind},{row.management}\n"


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


def fabric_artefacts(design: Design) -> dict[str, Iterator[str]]:
    """Return what only fabrics of one transport have, by file name."""
    return {"fabric.net": infiniband.netlist(design)} if design.environment.fabric.infiniband else {}


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
