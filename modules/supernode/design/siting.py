"""What a site's own machines hold of its networks."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network

from supernode.errors import Path
from supernode.spec import Environment
from supernode.spec.environment import Networks
from supernode.spec.vpn import RemoteNetworks, Vpn


def site_addresses(env: Environment) -> Iterator[tuple[Path, IPv4Address]]:
    """Yield the addresses that the site's own machines hold, with where the environment says so; names are left out."""
    for name in ("management", "bmc"):
        gateway = getattr(env.site.networks, name).gateway
        if gateway:
            yield ("site", "networks", name, "gateway"), gateway
    for index, server in enumerate(env.site.time_servers):
        try:
            yield ("site", "time_servers", index), IPv4Address(server)
        except ValueError:
            continue  # a name: it stands where its zone says
    for index, address in enumerate(env.site.name_servers):
        yield ("site", "name_servers", index), address
    yield ("site", "serve", "address"), env.site.serve.address
    for index, unit in enumerate(env.cooling.units if env.cooling else ()):
        yield ("cooling", "units", index, "address"), unit.address
    yield from _gateways(env.vpn) if env.vpn else ()


def _gateways(vpn: Vpn) -> Iterator[tuple[Path, IPv4Address]]:
    """Yield what the gateways of a tunnel hold in the sites' networks."""
    if vpn.gateway.address:
        yield ("vpn", "gateway", "address"), vpn.gateway.address
    for name in ("management", "bmc"):
        gateway = getattr(vpn.remote.networks, name).gateway
        if gateway:
            yield ("vpn", "sites", 0, "networks", name, "gateway"), gateway


def networks(env: Environment) -> Iterator[tuple[Path, str, IPv4Network, Networks | RemoteNetworks]]:
    """Yield the management and BMC network of every site: where it is written, its name, it, and the site's all."""
    rows: list[tuple[Path, Networks | RemoteNetworks]] = [(("site", "networks"), env.site.networks)]
    rows += [(("vpn", "sites", 0, "networks"), env.vpn.remote.networks)] if env.vpn else []
    for path, networks in rows:
        for name in ("management", "bmc"):
            yield (*path, name, "cidr"), name, getattr(networks, name).cidr, networks


def reserved(env: Environment, network: IPv4Network) -> set[int]:
    """Return the offsets inside a network that the site's own machines hold."""
    return {int(a) - int(network.network_address) for _, a in site_addresses(env) if a in network}
