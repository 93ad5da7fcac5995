"""The cooling units that serve racks, and what one must show before a machine of its racks is switched on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from supernode import catalog
from supernode.errors import Path, Problem
from supernode.spec.parts import Document, Name, Reference

if TYPE_CHECKING:
    from supernode.spec.environment import Environment

_SLOT = re.compile(r"([a-z][a-z0-9]*?)u\d{2}$")


class CoolingUnit(Document):
    """A unit that moves the heat of its racks away (a CDU).

    `username`, `password` and `ca` are for kinds that are reached by Redfish: an account that may only read, and the
    file that signs the unit's certificate. `min_flow_l_min` is the least flow on the side of the racks; without it the
    kind's own minimum holds. `port` is the kind's unless it is given.
    """

    name: Name
    kind: str
    address: IPv4Address
    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    racks: Annotated[tuple[str, ...], Field(min_length=1)]
    username: str | None = None
    password: Reference | None = None
    ca: str | None = None
    min_flow_l_min: Annotated[float, Field(gt=0)] | None = None


class Interlock(Document):
    """What a machine's unit must show right before the machine is switched on.

    Values older than `max_age_s` count as none. `override` names racks or slots whose machines are switched on whatever
    the unit shows, each with the reason, which every report repeats.
    """

    max_age_s: Annotated[float, Field(gt=0, le=600)] = 30
    override: dict[str, Annotated[str, Field(pattern=r"\S", max_length=200)]] = Field(default_factory=dict)


class Cooling(Document):
    """Liquid cooling: the units, the pool on whose first host the agent reads them, and the interlock."""

    agent: Name | None = None
    units: Annotated[tuple[CoolingUnit, ...], Field(min_length=1)]
    interlock: Interlock = Interlock()


def consistency(env: Environment) -> Iterator[Problem]:
    """Yield what contradicts what in the cooling of an environment."""
    if env.cooling is None:
        return
    yield from _names(env.cooling)
    yield from _racks(env, env.cooling)
    yield from _addresses(env, env.cooling)
    yield from _access(env.cooling)
    yield from _override(env.cooling)
    pools = [pool.name for pool in env.pools]
    if env.cooling.agent and env.cooling.agent not in pools:
        what = f"the agent is to run in pool {env.cooling.agent}, which does not exist"
        yield Problem(("cooling", "agent"), what, f"pools: {', '.join(pools)}")


def _units(cooling: Cooling) -> Iterator[tuple[Path, CoolingUnit]]:
    return ((("cooling", "units", index), unit) for index, unit in enumerate(cooling.units))


def _names(cooling: Cooling) -> Iterator[Problem]:
    seen: set[str] = set()
    for path, unit in _units(cooling):
        if unit.name in seen:
            yield Problem((*path, "name"), f"cooling unit {unit.name} is there twice", "names are given once")
        seen.add(unit.name)


def _racks(env: Environment, cooling: Cooling) -> Iterator[Problem]:
    known, taken = [rack.name for rack in env.racks], dict[str, str]()
    for path, unit in _units(cooling):
        for index, rack in enumerate(unit.racks):
            where = (*path, "racks", index)
            if rack not in known:
                what = f"cooling unit {unit.name} names rack {rack}, which does not exist"
                yield Problem(where, what, f"racks: {', '.join(dict.fromkeys(known))}")
            elif rack in taken:
                what = f"cooling unit {unit.name} names rack {rack}, which {taken[rack]} cools"
                yield Problem(where, what, "a rack has one unit, whose leak and flow hold its machines")
            taken.setdefault(rack, unit.name)


def _addresses(env: Environment, cooling: Cooling) -> Iterator[Problem]:
    """Check addresses among themselves; what hosts and the site hold is seen where numbers are given out."""
    networks = {"management": env.site.networks.management, "bmc": env.site.networks.bmc}
    site: dict[IPv4Address, str] = {n.gateway: f"the gateway of {name}" for name, n in networks.items() if n.gateway}
    site[env.site.serve.address] = "the boot server's"
    for path, unit in _units(cooling):
        network = next((n for n in networks.values() if unit.address in n.cidr), None)
        if network is None or unit.address in {network.cidr.network_address, network.cidr.broadcast_address}:
            ranges = ", ".join(f"{name} {n.cidr}" for name, n in networks.items())
            what = f"{unit.address} of cooling unit {unit.name} is no address of the management or bmc network"
            yield Problem((*path, "address"), what, ranges)
        elif unit.address in site:
            what = f"{unit.address} of cooling unit {unit.name} is {site[unit.address]}"
            yield Problem((*path, "address"), what, "an address has one holder")
        site.setdefault(unit.address, f"that of {unit.name}")


def _access(cooling: Cooling) -> Iterator[Problem]:
    for path, unit in _units(cooling):
        if unit.kind not in catalog.cdu_kinds():
            what = f"no cooling unit kind {unit.kind!r}"
            yield Problem((*path, "kind"), what, f"known: {', '.join(catalog.cdu_kinds())}")
            continue
        protocol = catalog.cdu(unit.kind).protocol
        for key in ("username", "password", "ca"):
            given = getattr(unit, key) is not None
            if protocol == "redfish" and not given:
                what = f"cooling unit {unit.name} is reached by Redfish and has no {key}"
                yield Problem((*path, key), what, "username, password (a reference) and ca (the signing file)")
            elif protocol == "modbus" and given:
                what = f"cooling unit {unit.name} is reached by Modbus, which knows no {key}"
                yield Problem((*path, key), what, "take it out: whoever reaches a Modbus device may read it")


def _override(cooling: Cooling) -> Iterator[Problem]:
    cooled = {rack for unit in cooling.units for rack in unit.racks}
    for name in cooling.interlock.override:
        slot = _SLOT.match(name)
        if name not in cooled and (slot is None or slot[1] not in cooled):
            what = f"an override for {name}, which is no cooled rack and no slot of one"
            yield Problem(
                ("cooling", "interlock", "override", name), what, f"cooled racks: {', '.join(sorted(cooled))}"
            )
