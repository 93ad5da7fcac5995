"""Contradictions of the cloud part: with itself, with the pools that stand in it, and with the site's networks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import IPv4Network

from supernode import catalog
from supernode.errors import Path, Problem
from supernode.spec.cloud import Cloud
from supernode.spec.environment import Environment, Pool

# What AWS takes for a network and for a subnet (VPC User Guide, "VPC CIDR blocks" and "Subnet CIDR blocks").
WIDEST, NARROWEST = 16, 28
_NETWORKS = ("management", "bmc", "loopbacks", "rails")
_ZONE = re.compile(r"[a-z]|-[a-z]+-\d[a-z]")  # us-east-1a, or a local zone such as us-east-1-atl-1a


def consistency(env: Environment) -> Iterator[Problem]:
    """Yield what contradicts what."""
    pools = [(index, pool) for index, pool in enumerate(env.pools) if pool.cloud]
    for index, pool in enumerate(env.pools):
        yield from _pool(index, pool)
    if env.cloud is None:
        for index, pool in pools:
            what = f"pool {pool.name} is rented from {pool.cloud}, and the file has no part `cloud`"
            hint = "add cloud: with provider, region, zone, cidr, gateway and image"
            yield Problem(("pools", index, "cloud"), what, hint)
        return
    if not pools:
        what = "no pool stands in the cloud: a network of nobody"
        yield Problem(("cloud",), what, f"add `cloud: {env.cloud.provider}` to a pool, or take this part out")
    yield from _place(env.cloud)
    yield from _choices(env.cloud)
    yield from _networks(env, env.cloud)


def _pool(index: int, pool: Pool) -> Iterator[Problem]:
    if pool.kind not in catalog.server_kinds():
        return  # said elsewhere
    shape = catalog.server(pool.kind).cloud
    if pool.cloud is None:
        if shape is not None:
            what = f"a {pool.kind} is rented from {shape.provider}, and pool {pool.name} does not say so"
            yield Problem(("pools", index), what, f"add cloud: {shape.provider} to pool {pool.name}")
        elif not pool.racks:
            what = f"pool {pool.name} names no rack"
            yield Problem(("pools", index), what, f"add racks: [...] to pool {pool.name}")
        return
    if shape is None or shape.provider != pool.cloud:
        kinds = [name for name in catalog.server_kinds() if _rented_from(name, pool.cloud)]
        yield Problem(
            ("pools", index, "kind"), f"{pool.cloud} has no {pool.kind}", f"kinds there: {', '.join(kinds) or 'none'}"
        )
    if pool.racks:
        yield Problem(("pools", index, "racks"), f"pool {pool.name} stands in the cloud, in no rack", "leave racks out")
    if pool.site:
        what = f"pool {pool.name} stands in the cloud, at no site of the VPN"
        yield Problem(("pools", index, "site"), what, "leave site out")
    if pool.disk:
        yield Problem(("pools", index, "disk"), f"pool {pool.name} boots from the cloud's own volume", "leave disk out")
    if pool.spares:
        what = f"pool {pool.name} has spares in the cloud: they would be paid for and could take over for nobody"
        yield Problem(("pools", index, "spares"), what, "raise count: each instance is had and checked alike")


def _rented_from(kind: str, provider: str) -> bool:
    shape = catalog.server(kind).cloud
    return shape is not None and shape.provider == provider


def _place(cloud: Cloud) -> Iterator[Problem]:
    if not (cloud.zone.startswith(cloud.region) and _ZONE.fullmatch(cloud.zone.removeprefix(cloud.region))):
        what = f"zone {cloud.zone} is not one of region {cloud.region}"
        yield Problem(("cloud", "zone"), what, f"such as {cloud.region}a")
    rows: list[tuple[Path, IPv4Network]] = [(("cloud", "cidr"), cloud.cidr)]
    rows += [(("cloud", "subnet"), cloud.subnet)] if cloud.subnet else []
    for path, network in rows:
        if not WIDEST <= network.prefixlen <= NARROWEST:
            what = f"{network} is a /{network.prefixlen}: the provider takes /{WIDEST} to /{NARROWEST}"
            yield Problem(path, what, None)
    if cloud.subnet and not cloud.subnet.subnet_of(cloud.cidr):
        yield Problem(("cloud", "subnet"), f"{cloud.subnet} lies outside {cloud.cidr}", "a subnet is a part of cidr")


def _choices(cloud: Cloud) -> Iterator[Problem]:
    if (cloud.image.ami is None) == (cloud.image.ssm is None):
        what = "cloud.image names an image by `ami` or by `ssm`: one of the two"
        yield Problem(("cloud", "image"), what, "ssm: /aws/service/debian/release/12/latest/amd64 is Debian's own")
    if cloud.capacity.block and cloud.capacity.reservation:
        what = "cloud.capacity names a block and a reservation: instances are had from one"
        yield Problem(("cloud", "capacity"), what, "leave one out; with neither they are had on demand")
    if cloud.ssh_from is not None and cloud.ssh_from.prefixlen == 0:
        what = "cloud.ssh_from lets everybody in"
        yield Problem(("cloud", "ssh_from"), what, "name the network from which supernode works")


def _networks(env: Environment, cloud: Cloud) -> Iterator[Problem]:
    found = {f"the site's network {name}": getattr(env.site.networks, name) for name in _NETWORKS}
    taken = {name: network.cidr for name, network in found.items() if network is not None}
    if env.vpn is not None:
        taken["the tunnel"] = env.vpn.tunnel
        for site in env.vpn.sites:
            here = {name: getattr(site.networks, name, None) for name in _NETWORKS}
            taken |= {f"{site.name}'s network {name}": net.cidr for name, net in here.items() if net is not None}
    for name, network in taken.items():
        if network.overlaps(cloud.cidr):
            what = f"the cloud's {cloud.cidr} overlaps {name} ({network})"
            yield Problem(("cloud", "cidr"), what, "packets find their way to one of the two: choose another range")
