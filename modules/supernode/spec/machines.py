"""machines.yml: which machine stands in which slot, and what became of it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

import yaml
from pydantic import Field

from supernode.spec.parts import Document


class SlotState(StrEnum):
    """What became of the machine in a slot; only in_service keeps it from being touched."""

    NEW = "new"
    SPARE = "spare"
    IN_SERVICE = "in_service"
    DRAINED = "drained"
    QUARANTINED = "quarantined"


# What a connection is held to. The same machine may show another one tomorrow, and nothing is designed by it.
PINS = frozenset({"ssh_host_key", "bmc_fingerprint"})


class Identity(Document):
    """What tells one machine from another; an empty string is what is not known.

    `ssh_host_key` is what the machine's system shows, as authorized_keys writes it; of a host, a verified run records
    it. `bmc_fingerprint` is the SHA-256 of the controller's certificate (DER), in hexadecimal. These two are pins, see
    `PINS`.
    """

    bmc_mac: str = ""
    management_mac: str = ""
    system_serial: str = ""
    board_serial: str = ""
    chassis_serial: str = ""
    uuid: str = ""
    ssh_host_key: str = ""
    bmc_fingerprint: str = ""

    def known(self) -> dict[str, str]:
        """Return what is not empty."""
        return {key: value for key, value in self.model_dump().items() if value}

    def hardware(self) -> dict[str, str]:
        """Return what is known of the machine itself: no pin is in it, so it changes with the machine alone."""
        return {key: value for key, value in self.known().items() if key not in PINS}


class SlotRecord(Document):
    """One slot; `run` is the id of the run that wrote the state.

    `replaces` is on a spare that took over: the quarantined slot in whose place it serves.
    """

    state: SlotState = SlotState.NEW
    reason: str = ""
    run: str = ""
    replaces: str = ""
    identity: Identity = Identity()


class Machines(Document):
    """The whole of machines.yml."""

    version: Annotated[Literal[1], Field(alias="schema")] = 1
    slots: dict[str, SlotRecord] = Field(default_factory=dict)


_HEAD = "# Written by `supernode assign` and by runs: which machine stands in which slot.\n"


def machines_text(machines: Machines) -> str:
    """Write machines.yml, slots in order, what is empty left out."""
    lines = [_HEAD.rstrip(), "schema: 1", "slots:" if machines.slots else "slots: {}"]
    for slot in sorted(machines.slots):
        record = machines.slots[slot]
        row: dict[str, object] = {"state": str(record.state)}
        row |= {key: getattr(record, key) for key in ("reason", "run", "replaces") if getattr(record, key)}
        row |= {"identity": record.identity.known()} if record.identity.known() else {}
        flow = yaml.safe_dump(row, default_flow_style=True, sort_keys=False, width=10_000, allow_unicode=True).strip()
        lines.append(f"  {slot}: {flow}")
    return "\n".join(lines) + "\n"
