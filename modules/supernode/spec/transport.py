"""What a fabric's transport asks of the rest of an environment, and what it leaves no place for."""

from __future__ import annotations

from collections.abc import Iterator

from supernode import catalog
from supernode.catalog import infiniband
from supernode.errors import Path, Problem
from supernode.spec.environment import Environment

_LINKS = {"roce-v2": "ethernet", "infiniband": "infiniband"}
_ROUTED = ("loopbacks", "rails")


def consistency(env: Environment) -> Iterator[Problem]:
    """Yield what of an environment does not go with its fabric's transport."""
    yield from _kinds(env)
    yield from _infiniband(env) if env.fabric.infiniband else _routed(env)


def _kinds(env: Environment) -> Iterator[Problem]:
    """Hold ports against the transport; kinds that nobody knows are told elsewhere."""
    link = _LINKS[env.fabric.transport]
    rows: list[tuple[Path, str]] = [(("fabric", "leaf"), env.fabric.leaf), (("fabric", "spine"), env.fabric.spine)]
    for path, kind in rows:
        if kind in catalog.switch_kinds() and catalog.switch(kind).link != link:
            fitting = [name for name in catalog.switch_kinds() if catalog.switch(name).link == link]
            what = f"a {kind} has no {_NAMES[link]} ports, as {env.fabric.transport} needs them"
            yield Problem(path, what, f"switches with such ports: {', '.join(fitting)}")
    for index, pool in enumerate(env.pools):
        server = catalog.server(pool.kind) if pool.kind in catalog.server_kinds() else None
        if server is not None and server.on_fabric and link not in server.links:
            what = f"a {pool.kind} has no {_NAMES[link]} ports, as {env.fabric.transport} needs them"
            yield Problem(("pools", index, "kind"), what, "another kind, or another fabric.transport")


_NAMES = {"ethernet": "Ethernet", "infiniband": "InfiniBand"}


def _routed(env: Environment) -> Iterator[Problem]:
    for name in _ROUTED:
        if getattr(env.site.networks, name) is None:
            what = f"{env.fabric.transport} needs the network {name}"
            yield Problem(("site", "networks"), what, f"add {name}: {{cidr: …}} under site.networks")
    if env.fabric.subnet_managers is not None:
        what = f"{env.fabric.transport} has no subnet manager"
        yield Problem(("fabric", "subnet_managers"), what, "it belongs to transport: infiniband")


def _infiniband(env: Environment) -> Iterator[Problem]:
    fabric = env.fabric
    for name in _ROUTED:
        if getattr(env.site.networks, name) is not None:
            what = f"an InfiniBand fabric has no addresses, so no network {name}"
            yield Problem(("site", "networks", name), what, "leave it out")
    if fabric.mtu not in infiniband.MTUS:
        what = f"fabric.mtu is {fabric.mtu}, an InfiniBand link carries {' or '.join(map(str, infiniband.MTUS))}"
        yield Problem(("fabric", "mtu"), what, "leave it out for 4096")
    for name, rate in (("rail", fabric.rates.rail), ("uplink", fabric.rates.uplink)):
        try:
            infiniband.speed(rate)
        except ValueError as error:
            what, _, known = str(error).partition("; ")
            yield Problem(("fabric", "rates", name), what, known)
    active = sum(pool.count for pool in env.pools if _in_fabric(pool.kind))
    if fabric.subnet_managers is not None and fabric.subnet_managers > active:
        what = f"fabric.subnet_managers is {fabric.subnet_managers}, {active} hosts stand in the fabric"
        yield Problem(("fabric", "subnet_managers"), what, f"at most {active}")


def _in_fabric(kind: str) -> bool:
    return kind in catalog.server_kinds() and catalog.server(kind).on_fabric
