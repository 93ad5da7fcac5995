"""What the cooling agent is told, and what its unit may reach: the files of the role `cooling_agent`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from supernode import carried
from supernode.design import render, watching
from supernode.design.cooling import CoolingUnit
from supernode.design.rows import CREDENTIALS, Host, Placed, RenderedFile

if TYPE_CHECKING:
    from supernode.design.model import Design

ROLE = "cooling_agent"
UNIT = "supernode-cooling.service"
SETTINGS = "/etc/supernode/cooling.json"
# Where systemd puts what LoadCredential names.
_GIVEN = f"/run/credentials/{UNIT}"
# How often a unit is read at most: a Redfish walk is some ten requests, a Modbus one two or three.
LEAST_INTERVAL_S = {"modbus": 2.0, "redfish": 5.0}


def packages(design: Design) -> Sequence[str]:
    """Return the agent's package, by its exact version; nothing where no agent runs."""
    return (f"{carried.AGENT}={carried.version()}",) if watching.cooling_host(design) else ()


def applies(design: Design, host: Host) -> bool:
    """Tell whether the agent runs on a host."""
    return watching.cooling_host(design) == host


def interval_s(unit: CoolingUnit) -> float:
    """Return how often a unit is read: never more often than it measures."""
    kind = unit.hardware
    return max(kind.refresh_s, LEAST_INTERVAL_S[kind.protocol])


def files(design: Design, host: Host) -> list[RenderedFile]:
    """Return the agent's settings, and the drop-in with what it may reach and is given."""
    settings = {
        "listen": {"address": str(host.management.ip), "port": watching.COOLING_PORT},
        "units": [_row(unit) for unit in design.cooling],
    }
    drop_in = render.text(
        "cooling_agent/site.conf.j2",
        reached=[unit.address for unit in design.cooling],
        management=design.environment.site.networks.management.cidr,
        credentials=[(row.name, f"{CREDENTIALS}/{row.name}") for row in placed(design, host)],
    )
    return [
        RenderedFile(SETTINGS, json.dumps(settings, indent=1) + "\n", role=ROLE),
        RenderedFile(f"/etc/systemd/system/{UNIT}.d/site.conf", drop_in, role=ROLE),
    ]


def _row(unit: CoolingUnit) -> Mapping[str, Any]:
    """Say how the agent reaches a unit: the password and the certificate's file are those that it is given."""
    row = {**unit.access(), "interval_s": interval_s(unit), "racks": list(unit.racks)}
    if unit.password:
        row["password"] = f"file:{_GIVEN}/{_secret(unit)}"
    if unit.ca:
        row["ca"] = f"{_GIVEN}/{_signer(unit)}"
    return row


def _secret(unit: CoolingUnit) -> str:
    """Return the name that a unit's password is placed under; no unit's name has a dot, so it is nobody else's."""
    return f"{unit.name}.password"


def _signer(unit: CoolingUnit) -> str:
    return f"{unit.name}.ca"


def placed(design: Design, _host: Host) -> Sequence[Placed]:
    """Return the units' passwords and the files that sign their certificates."""
    rows = [Placed(_secret(unit), unit.password, UNIT) for unit in design.cooling if unit.password]
    return rows + [Placed(_signer(unit), unit.ca, UNIT) for unit in design.cooling if unit.ca]
