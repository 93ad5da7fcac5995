"""The frozen types that pass between stages: what a run does (Event), what came back (Outputs), what was found."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from supernode.units import Seconds

OUTPUTS_SCHEMA = 1


class State(StrEnum):
    """Where a host stands in a phase."""

    STARTED = "started"
    PROGRESS = "progress"
    OK = "ok"
    CHANGED = "changed"
    FAILED = "failed"
    LATE = "late"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Event:
    """One step of a run, as it happens.

    Attributes:
        at: seconds since the epoch.
        stage: "provision", "configure" or "verify".
        host: the designed name of a host or switch; None for the stage itself.
        phase: what is being done, e.g. "bios", "deploy", "rails".
        detail: one line for a person.
    """

    at: float
    stage: str
    host: str | None
    phase: str
    state: State
    detail: str = ""


@dataclass(frozen=True)
class DeviceOutput:
    """What the engine's state says of one host or switch: addresses, ids, keys, and no more.

    Attributes:
        kind: "machine", "switch" or "gateway".
        state: "ready", "late" or "failed"; with the phase and reason of the last two.
        host_keys: public keys in authorized_keys form ("ssh-ed25519 AAAA…").
        image: digest of the installed image; empty on a switch.
        evidence: what the controller or the switch showed where it is not ready; without secrets.
        applied: of a switch or gateway, the SHA-256 of each file as it was read back from it, by path.
        cooling: of a machine, what its rack's interlock said before its last power-on: unit, verdict (clear, held,
            overridden), sensors, override.
    """

    name: str
    kind: str
    slot: str
    address: str
    state: str = "ready"
    phase: str = ""
    reason: str = ""
    host_keys: tuple[str, ...] = ()
    serial: str = ""
    uuid: str = ""
    image: str = ""
    power: str = ""
    evidence: tuple[str, ...] = ()
    applied: Mapping[str, str] = field(default_factory=dict)
    cooling: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Outputs:
    """All that comes back from the provisioning stage."""

    environment: str
    design: str
    devices: Mapping[str, DeviceOutput] = field(default_factory=dict)
    schema: int = OUTPUTS_SCHEMA

    def to_json(self) -> dict[str, Any]:
        """Return the JSON document that `from_json` reads back."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Outputs:
        """Read what `to_json` wrote.

        Raises:
            ValueError: another schema version.
        """
        if document.get("schema") != OUTPUTS_SCHEMA:
            raise ValueError(f"outputs of schema {document.get('schema')!r}, this version reads {OUTPUTS_SCHEMA}")
        devices = {
            name: DeviceOutput(
                **{**row, "host_keys": tuple(row["host_keys"]), "evidence": tuple(row.get("evidence", ()))}
            )
            for name, row in document["devices"].items()
        }
        return cls(document["environment"], document["design"], devices)


class Verdict(StrEnum):
    """What a check says. Not seen is unknown: neither healthy nor missing."""

    PASS = "pass"  # noqa: S105 - a verdict, no password
    FAIL = "fail"
    ADVICE = "advice"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Finding:
    """What one check says of one place.

    Attributes:
        check: the check's name, e.g. "cabling".
        place: what it looked at: a host, "host:port" or a cable id.
        wanted, found: the two sides, for a person.
        cause: the located cause in one sentence ("cables C00007 and C00008 are exchanged at …"); empty when it passed.
        cables: ids of the cables to touch.
        evidence: raw lines that show it, without secrets.
        hint: what to do.
    """

    check: str
    place: str
    verdict: Verdict
    wanted: str = ""
    found: str = ""
    cause: str = ""
    cables: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    hint: str = ""


@dataclass(frozen=True)
class StageRecord:
    """One stage of a run against its budget; times are seconds since the epoch."""

    name: str
    budget_s: Seconds
    started: float
    ended: float | None = None
    outcome: str = ""


@dataclass(frozen=True)
class Run:
    """A whole run.

    Attributes:
        id: sortable, e.g. "20261130-184501-3f2a".
        design, plan: the hashes that were shown and executed.
        started, ended: T0 and T1, seconds since the epoch.
        exit_code: 0, 1, 3 or 130, as the process ended; 137 when it was killed, written by the next run.
    """

    id: str
    environment: str
    design: str
    plan: str
    started: float
    ended: float | None = None
    stages: tuple[StageRecord, ...] = ()
    events: tuple[Event, ...] = ()
    findings: tuple[Finding, ...] = ()
    exit_code: int | None = None
