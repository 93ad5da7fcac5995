"""The site's part of a proposal: networks, gateways, servers, the domain; from addresses, routes, configurations."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Interface, IPv4Network

from supernode.bringup.survey.draft import Draft
from supernode.bringup.survey.observed import DeviceSeen, Hop, HostSeen, Observations, SwitchSeen
from supernode.bringup.survey.voting import vote

_NETWORKS = ("site", "networks")
_RAILS_LONGEST = 30  # a rail's own network is a /31


def propose(draft: Draft, seen: Observations) -> None:
    """Put the part `site` into a draft."""
    hosts = [host for host in seen.hosts if not host.why]
    switches = [switch for switch in seen.switches if not switch.why]
    draft.keep(("site", "name"), "no device knows what its site is called", "site")
    domains = ((h.hostname, _domain(h)) for h in hosts if _domain(h))
    draft.elect(("site", "domain"), vote(domains), "no host resolves its own name with a domain")
    _management(draft, hosts, switches)
    _controllers(draft, seen)
    loopbacks = vote(_loopbacks(switches))
    draft.elect((*_NETWORKS, "loopbacks", "cidr"), loopbacks, "no filter of a switch names the range of its loopback")
    draft.elect((*_NETWORKS, "rails", "cidr"), vote(_rails(hosts)), "no host has a route to the other rails")
    draft.keep_rest((*_NETWORKS, "loopbacks"), "none has a gateway that shows")
    draft.keep_rest((*_NETWORKS, "rails"), "none has a gateway that shows")
    _servers(draft, hosts)


def _domain(host: HostSeen) -> str:
    name, _, domain = host.fqdn.partition(".")
    return domain if name == host.hostname else ""


def _management(draft: Draft, hosts: list[HostSeen], switches: list[SwitchSeen]) -> None:
    both: list[DeviceSeen] = [*hosts, *switches]
    networks = [(d.hostname, str(net)) for d in both if (net := _network(d)) is not None]
    draft.elect((*_NETWORKS, "management", "cidr"), vote(networks), "no host showed the port that it was asked at")
    gateways = ((h.hostname, hop.gateway) for h in hosts for hop in _default(h))
    draft.elect((*_NETWORKS, "management", "gateway"), vote(gateways), "no host has a default route", None)


def _network(device: DeviceSeen) -> IPv4Network | None:
    port = device.management_port()
    mine = device.address.partition(":")[0]
    rows = port.addresses if port is not None else ()
    return next((IPv4Interface(row).network for row in rows if row.partition("/")[0] == mine), None)


def _default(host: HostSeen) -> Iterator[Hop]:
    return (hop for hop in host.hops if hop.destination == "default" and hop.gateway)


def _controllers(draft: Draft, seen: Observations) -> None:
    own = [(c.address, c.own) for c in seen.controllers if c.own is not None]
    networks = vote((place, str(IPv4Interface(row.interface).network)) for place, row in own)
    draft.elect((*_NETWORKS, "bmc", "cidr"), networks, "no BMC shows its own address and mask")
    gateways = vote((place, row.gateway) for place, row in own if row.gateway)
    draft.elect((*_NETWORKS, "bmc", "gateway"), gateways, "no BMC shows its gateway", None)


def _loopbacks(switches: list[SwitchSeen]) -> Iterator[tuple[str, str]]:
    """Yield the range of host routes that each switch's filters let pass and its own router id lies in."""
    for switch in switches:
        for prefix, least, most in switch.ranges:
            if least == most == 32 and switch.loopback and IPv4Address(switch.loopback) in IPv4Network(prefix):
                yield switch.hostname, prefix
                break


def _rails(hosts: list[HostSeen]) -> Iterator[tuple[str, str]]:
    """Yield, for each host, the widest network that it reaches by one of its rails and that holds its address."""
    for host in hosts:
        found = []
        for hop in host.hops:
            port = (host.ports or {}).get(hop.port)
            if port is None or port is host.management_port() or "/" not in hop.destination or not hop.gateway:
                continue
            network = IPv4Network(hop.destination)
            inside = any(":" not in a and IPv4Interface(a).ip in network for a in port.addresses)
            found += [network] if inside and network.prefixlen <= _RAILS_LONGEST else []
        if found:
            yield host.hostname, str(min(found, key=lambda net: net.prefixlen))


def _servers(draft: Draft, hosts: list[HostSeen]) -> None:
    times = vote((h.hostname, h.time_servers) for h in hosts if h.time_servers)
    draft.elect(("site", "time_servers"), times, "no host names a time server in chrony.conf", write=list)
    names = vote((h.hostname, h.name_servers) for h in hosts)
    if names is not None and names.sure and names.value:
        draft.elect(("site", "name_servers"), names, "", write=list)
    elif names is not None and names.sure:
        draft.note(("site", "name_servers"), [], "observed", f"{names.how} ask none")
    else:
        draft.keep(("site", "name_servers"), "no host was asked", None)
    mirrors = vote((h.hostname, h.mirror) for h in hosts if h.mirror)
    why = "no host names the package mirror among its sources"
    if mirrors is not None and mirrors.sure:
        address, _, port = mirrors.value.rpartition(":")
        draft.see(("site", "serve", "address"), address, f"the package mirror of {mirrors.how} hosts")
        draft.see(("site", "serve", "port"), int(port), f"the package mirror of {mirrors.how} hosts")
        draft.differ("package mirror", mirrors)
    else:
        draft.keep(("site", "serve", "address"), why)
        draft.keep(("site", "serve", "port"), why, 8443)
