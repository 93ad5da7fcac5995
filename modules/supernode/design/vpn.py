"""The tunnel to the other site: who forwards what to whom, and the files of both gateways.

The keys are made on the gateways. What a file needs of the other's public one stands in it as `@<gateway>@`, and is put
in by the provider, who reads it there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, collapse_addresses

from supernode.design.rows import RenderedFile
from supernode.spec import Environment
from supernode.spec.vpn import Gateway as Declared

INTERFACE = "wg0"
KEY = f"/etc/wireguard/{INTERFACE}.key"
CONFIGURATION = f"/etc/wireguard/{INTERFACE}.conf"
KEEPALIVE_S = 25  # what keeps an entry of address translation alive (https://www.wireguard.com/quickstart/)


@dataclass(frozen=True)
class Gateway:
    """One end of the tunnel.

    Attributes:
        address: where it is configured and asked: at this site inside it, at the other its public address.
        inside: its own address that the other site's machines see.
        tunnel: its address in the tunnel.
        own: the prefixes of its site that may pass; beyond: those of the other.
        private: prefixes of either site that may not.
        public: where the other end finds it; None behind address translation.
    """

    name: str
    site: str
    address: IPv4Address
    inside: IPv4Address
    lan_port: str
    lan: tuple[IPv4Interface, ...]
    wan_port: str
    wan: IPv4Interface
    wan_gateway: IPv4Address
    public: IPv4Address | None
    host_key: str
    tunnel: IPv4Interface
    own: tuple[IPv4Network, ...]
    beyond: tuple[IPv4Network, ...]
    private: tuple[tuple[str, IPv4Network], ...]


@dataclass(frozen=True)
class VpnLink:
    """The tunnel between this site and another.

    Attributes:
        mtu: of a packet inside; wan_mtu: of one on the way between the gateways.
        gateways: this site's, then the other's.
    """

    name: str
    port: int
    mtu: int
    wan_mtu: int
    gateways: tuple[Gateway, Gateway]

    def peer(self, gateway: Gateway) -> Gateway:
        """Return the other end."""
        here, there = self.gateways
        return there if gateway.name == here.name else here


def link(env: Environment) -> VpnLink | None:
    """Compute the tunnel of an environment; None where it has one site."""
    vpn = env.vpn
    if vpn is None:
        return None
    management, remote = env.site.networks.management, vpn.remote
    address, public = vpn.gateway.address, remote.gateway.wan.public
    if address is None or public is None:
        raise ValueError("a gateway without an address: spec refuses that")
    here = _collapsed([management.cidr, *(IPv4Network(address) for address in _served(env))])
    there = _collapsed([remote.networks.management.cidr, remote.networks.bmc.cidr])
    routers = tuple(
        IPv4Interface((network.gateway, network.cidr.prefixlen))
        for network in (remote.networks.management, remote.networks.bmc)
        if network.gateway is not None
    )
    first, second = (IPv4Interface((end, vpn.tunnel.prefixlen)) for end in _ends(vpn.tunnel))
    mine = IPv4Interface((address, management.cidr.prefixlen))
    private = tuple((data.name, data.prefix) for data in env.data if data.private)
    near = _gateway(env.site.name, vpn.gateway, address, (mine,), first, (here, there), private)
    far = _gateway(remote.name, remote.gateway, public, routers, second, (there, here), private)
    return VpnLink(remote.name, vpn.port, vpn.inner_mtu, vpn.wan_mtu, (near, far))


def _served(env: Environment) -> Iterable[IPv4Address]:
    """Yield what the other site's machines need of this one, wherever it stands."""
    yield env.site.serve.address
    for server in env.site.time_servers:
        try:
            yield IPv4Address(server)
        except ValueError:
            continue  # a name: they reach it as its zone says
    yield from env.site.name_servers


def _collapsed(networks: Iterable[IPv4Network]) -> tuple[IPv4Network, ...]:
    return tuple(collapse_addresses(networks))


def _ends(tunnel: IPv4Network) -> tuple[IPv4Address, IPv4Address]:
    hosts = tuple(tunnel.hosts())
    return hosts[0], hosts[1]


def _gateway(
    site: str,
    declared: Declared,
    address: IPv4Address,
    lan: tuple[IPv4Interface, ...],
    tunnel: IPv4Interface,
    prefixes: tuple[tuple[IPv4Network, ...], tuple[IPv4Network, ...]],
    private: tuple[tuple[str, IPv4Network], ...],
) -> Gateway:
    wan = declared.wan
    return Gateway(
        name=declared.name,
        site=site,
        address=address,
        inside=lan[0].ip,
        lan_port=declared.port,
        lan=lan,
        wan_port=wan.port,
        wan=wan.address,
        wan_gateway=wan.gateway,
        public=wan.public,
        host_key=declared.host_key,
        tunnel=tunnel,
        own=prefixes[0],
        beyond=prefixes[1],
        private=private,
    )


def files(found: VpnLink, gateway: Gateway) -> tuple[RenderedFile, ...]:
    """Return the whole configuration of one gateway: tunnel, firewall, forwarding."""
    values = {"link": found, "gateway": gateway, "peer": found.peer(gateway), "keepalive": KEEPALIVE_S, "key": KEY}
    from supernode.design import render  # the templates' engine is loaded where a file is rendered

    return (
        RenderedFile("/etc/sysctl.d/60-supernode.conf", render.text("gateway/sysctl.conf.j2"), role="gateway"),
        RenderedFile(
            "/etc/nftables.conf", render.text("gateway/nftables.conf.j2", interface=INTERFACE, **values), role="gateway"
        ),
        RenderedFile(CONFIGURATION, render.text("gateway/wg.conf.j2", **values), "0600", role="gateway"),
    )
