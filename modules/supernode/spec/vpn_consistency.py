"""Contradictions of the sections `vpn` and `data`: what would not carry, would not come back, or would leak."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network
from itertools import combinations

from supernode import catalog
from supernode.errors import Path, Problem
from supernode.spec.environment import Environment
from supernode.spec.vpn import LEAST_MTU, OVERHEAD, Dataset, Gateway, Vpn

REMOTE: Path = ("vpn", "sites", 0)


def problems(env: Environment) -> Iterator[Problem]:
    """Yield what contradicts what about the other site, its tunnel and the data."""
    for check in (_pools, _routes, _datasets):
        yield from check(env)
    if env.vpn is not None:
        for check_vpn in (_overlaps, _mtu, _return_routes, _gateways, _names):
            yield from check_vpn(env, env.vpn)


def _overlaps(env: Environment, vpn: Vpn) -> Iterator[Problem]:
    """Compare what the tunnel adds with each other and with the site's own networks."""
    own: list[tuple[str, Path, IPv4Network]] = [
        (f"network {name}", ("site", "networks", name, "cidr"), network.cidr)
        for name, network in env.site.networks.declared().items()
    ]
    remote, site = vpn.remote.networks, vpn.remote.name
    added: list[tuple[str, Path, IPv4Network]] = [
        ("the tunnel's own", ("vpn", "tunnel"), vpn.tunnel),
        (f"the WAN of {vpn.gateway.name}", ("vpn", "gateway", "wan", "address"), vpn.gateway.wan.address.network),
        (f"network management of {site}", (*REMOTE, "networks", "management", "cidr"), remote.management.cidr),
        (f"network bmc of {site}", (*REMOTE, "networks", "bmc", "cidr"), remote.bmc.cidr),
        (
            f"the WAN of {vpn.remote.gateway.name}",
            (*REMOTE, "gateway", "wan", "address"),
            vpn.remote.gateway.wan.address.network,
        ),
    ]
    mine = {path for _, path, _ in own}
    for (one, first_path, first), (two, path, second) in combinations([*own, *added], 2):
        if first.overlaps(second) and not (first_path in mine and path in mine):
            what = f"{two} ({second}) overlaps {one} ({first}): an address would be at both ends of the tunnel"
            yield Problem(path, what, "renumber one of the sites; the tunnel translates no addresses")


def _mtu(_env: Environment, vpn: Vpn) -> Iterator[Problem]:
    fits = vpn.wan_mtu - OVERHEAD
    if vpn.mtu is not None and vpn.mtu > fits:
        what = f"vpn.mtu is {vpn.mtu}, and {vpn.wan_mtu} bytes on the WAN carry {fits} inside the tunnel"
        yield Problem(("vpn", "mtu"), what, f"leave it out, or write at most {fits}")
    elif vpn.inner_mtu < LEAST_MTU:
        at = ("vpn", "mtu") if vpn.mtu else ("vpn", "wan_mtu")
        what = f"packets inside the tunnel would have {vpn.inner_mtu} bytes at most"
        yield Problem(at, what, f"a tunnel carries at least {LEAST_MTU}: a WAN of {LEAST_MTU + OVERHEAD} or more")


def _return_routes(env: Environment, vpn: Vpn) -> Iterator[Problem]:
    """Ask that the site's router sends answers to the tunnel; at the remote site the gateway is the router itself."""
    management, via = env.site.networks.management, vpn.gateway.address
    if via is None or management.gateway == via:
        return
    for name in ("management", "bmc"):
        beyond = getattr(vpn.remote.networks, name).cidr
        if not any(beyond.subnet_of(route.to) and route.via == via for route in management.routes):
            what = f"no route leads from network management to {beyond} ({name} of {vpn.remote.name}): answers are lost"
            hint = f"add {{to: {beyond}, via: {via}}} to its routes, once its router has it"
            yield Problem(("site", "networks", "management"), what, hint)


def _gateways(env: Environment, vpn: Vpn) -> Iterator[Problem]:
    yield from _local(env, vpn.gateway)
    yield from _remote(vpn)
    if vpn.tunnel.num_addresses < 2:
        yield Problem(("vpn", "tunnel"), f"{vpn.tunnel} has one address, a tunnel has two ends", "a /31 or a /30")
    ends: tuple[tuple[Path, Gateway], ...] = (
        (("vpn", "gateway", "wan"), vpn.gateway),
        ((*REMOTE, "gateway", "wan"), vpn.remote.gateway),
    )
    for path, gateway in ends:
        if gateway.wan.gateway not in gateway.wan.address.network:
            what = f"the gateway {gateway.wan.gateway} lies outside {gateway.wan.address.network}"
            yield Problem((*path, "gateway"), what, "a gateway stands in its own network")


def _local(env: Environment, gateway: Gateway) -> Iterator[Problem]:
    management, at = env.site.networks.management, ("vpn", "gateway", "address")
    if gateway.address is None:
        what = f"{gateway.name} has no address in this site's management network"
        yield Problem(("vpn", "gateway"), what, f"add address: one of the first ten of {management.cidr}")
    elif gateway.address not in management.cidr:
        what = f"{gateway.address} lies outside the management network {management.cidr}"
        yield Problem(at, what, "the gateway stands in the management network")


def _remote(vpn: Vpn) -> Iterator[Problem]:
    remote = vpn.remote
    if remote.gateway.wan.public is None:
        what = f"{remote.gateway.name} has no public address: it is configured from here, by way of the WAN"
        yield Problem((*REMOTE, "gateway", "wan"), what, "add public: where it is reached, UDP and SSH")
    if remote.gateway.address is not None:
        what = f"{remote.gateway.name} has an address of its own, and is the router of its networks"
        yield Problem((*REMOTE, "gateway", "address"), what, "its addresses are the networks' gateways: leave it out")
    for name in ("management", "bmc"):
        network = getattr(remote.networks, name)
        if network.gateway is None:
            what = f"network {name} of {remote.name} has no gateway"
            yield Problem((*REMOTE, "networks", name), what, f"add gateway: the address of {remote.gateway.name} in it")
        elif network.gateway not in network.cidr:
            what = f"the gateway {network.gateway} lies outside {network.cidr}"
            yield Problem((*REMOTE, "networks", name, "gateway"), what, "a gateway stands in its own network")


def _names(env: Environment, vpn: Vpn) -> Iterator[Problem]:
    if vpn.remote.name == env.site.name:
        yield Problem((*REMOTE, "name"), f"site {vpn.remote.name} is this site", "each site has a name of its own")
    if vpn.remote.gateway.name == vpn.gateway.name:
        what = f"both gateways are called {vpn.gateway.name}"
        yield Problem((*REMOTE, "gateway", "name"), what, "names are given once")


def _pools(env: Environment) -> Iterator[Problem]:
    kinds = catalog.server_kinds()
    for index, pool in enumerate(env.pools):
        if pool.site is None or pool.site == env.site.name:
            continue
        if pool.site not in sites(env):
            what = f"pool {pool.name} stands at {pool.site}, which is no site"
            yield Problem(("pools", index, "site"), what, f"sites: {', '.join(sites(env))}")
        elif pool.kind in kinds and catalog.server(pool.kind).nics:
            what = f"pool {pool.name} has rails and stands at {pool.site}, where no fabric is"
            yield Problem(("pools", index, "site"), what, "rails do not go through a tunnel: a kind without NICs")


def sites(env: Environment) -> tuple[str, ...]:
    """Return the names of all sites, this one first."""
    return (env.site.name, *(site.name for site in (env.vpn.sites if env.vpn else ())))


def _routes(env: Environment) -> Iterator[Problem]:
    for name in ("management", "bmc"):
        network = getattr(env.site.networks, name)
        for index, route in enumerate(network.routes):
            if route.via not in network.cidr:
                what = f"the route to {route.to} goes by {route.via}, which lies outside {network.cidr}"
                yield Problem(("site", "networks", name, "routes", index, "via"), what, "the next hop is a neighbour")


def _datasets(env: Environment) -> Iterator[Problem]:
    for index, data in enumerate(env.data):
        at: Path = ("data", index)
        if data.site not in sites(env):
            what = f"data {data.name} lies at {data.site}, which is no site"
            yield Problem((*at, "site"), what, f"sites: {', '.join(sites(env))}")
            continue
        for number, other in enumerate(data.exported_to):
            if data.private and other != data.site:
                what = f"data {data.name} is private to {data.site} and would be exported to {other}"
                yield Problem((*at, "exported_to", number), what, "private data stays on its site")
            elif other not in sites(env):
                what = f"data {data.name} would be exported to {other}, which is no site"
                yield Problem((*at, "exported_to", number), what, f"sites: {', '.join(sites(env))}")
        yield from _place(env, data, at)


def _place(env: Environment, data: Dataset, at: Path) -> Iterator[Problem]:
    """Ask that a dataset's servers stand on its site, and a private one's are none that the other has to reach."""
    networks = env.site.networks if data.site == env.site.name else env.vpn.remote.networks if env.vpn else None
    if networks is None:
        return
    if not any(data.prefix.subnet_of(network.cidr) for network in (networks.management, networks.bmc)):
        what = f"{data.prefix} of data {data.name} lies in no network of {data.site}"
        yield Problem((*at, "prefix"), what, f"its management network is {networks.management.cidr}")
    for what_for, address in _needed(env):
        if data.private and address in data.prefix:
            what = f"data {data.name} is private and its prefix {data.prefix} holds {address}, {what_for}"
            yield Problem((*at, "prefix"), what, "the other site could not be installed: choose a smaller prefix")


def _needed(env: Environment) -> Iterator[tuple[str, IPv4Address]]:
    yield "where machines are served", env.site.serve.address
    for server in env.site.time_servers:
        try:
            yield "a time server", IPv4Address(server)
        except ValueError:
            continue
    if env.vpn and env.vpn.gateway.address:
        yield f"the gateway {env.vpn.gateway.name}", env.vpn.gateway.address
