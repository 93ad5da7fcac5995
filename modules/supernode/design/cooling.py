"""The cooling units of the Design, and what of a machine's unit must hold before it is switched on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from supernode import catalog
from supernode.catalog import CduKind
from supernode.spec import Environment

if TYPE_CHECKING:
    from supernode.design.rows import Host

_LITRE_A_MINUTE = 1 / 60_000


@dataclass(frozen=True)
class CoolingUnit:
    """A cooling unit by its designed name.

    Attributes:
        racks: those whose heat it moves away; no other unit cools them.
        username, ca: empty for a unit that is read without an account.
        password: a reference, or empty.
        min_flow_m3_s: on the racks' side; below it the unit does not cool.
    """

    name: str
    kind: str
    address: str
    port: int
    racks: tuple[str, ...]
    username: str
    password: str
    ca: str
    min_flow_m3_s: float

    @property
    def hardware(self) -> CduKind:
        """The catalogue's entry."""
        return catalog.cdu(self.kind)

    def access(self) -> dict[str, Any]:
        """Say how the unit is read: what `clients.cdu.Access.of` takes. The password stays a reference."""
        row = {"unit": self.name, "kind": self.kind, "address": self.address, "port": self.port}
        secret = {"username": self.username, "password": self.password, "ca": self.ca}
        return row | {key: value for key, value in secret.items() if value}


def units(env: Environment) -> tuple[CoolingUnit, ...]:
    """Return all cooling units, in the order of the document."""
    return tuple(
        CoolingUnit(
            name=unit.name,
            kind=unit.kind,
            address=str(unit.address),
            port=unit.port or catalog.cdu(unit.kind).port,
            racks=unit.racks,
            username=unit.username or "",
            password=unit.password or "",
            ca=unit.ca or "",
            min_flow_m3_s=unit.min_flow_l_min * _LITRE_A_MINUTE
            if unit.min_flow_l_min
            else catalog.cdu(unit.kind).min_flow_m3_s,
        )
        for unit in (env.cooling.units if env.cooling else ())
    )


def interlock(env: Environment, unit: CoolingUnit, host: Host) -> Mapping[str, Any]:
    """Say what a machine's unit must show right before each of its power-ons (docs/contracts.md, section 7)."""
    if env.cooling is None:
        return {}
    wanted = env.cooling.interlock
    reason = wanted.override.get(host.slot) or wanted.override.get(host.rack) or ""
    row = {**unit.access(), "minFlow": unit.min_flow_m3_s, "maxAgeS": wanted.max_age_s}
    return row | ({"override": reason.strip()} if reason else {})
