"""What was seen before a run, as records; None is what nobody told, never what is not there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Login(StrEnum):
    """How far a look at a management controller came."""

    IN = "in"
    FACTORY = "factory"  # the factory's password still opens it
    FACTORY_CLOSED = "factory closed"  # the same, and it answers nothing else before that password is changed
    MUST_CHANGE = "must change"  # our password is right, and nothing else is answered before it is changed
    REFUSED = "refused"
    UNTRUSTED = "untrusted"
    UNREACHABLE = "unreachable"
    BROKEN = "broken"  # it answers, and not as Redfish does
    NOT_TRIED = "not tried"  # something on our side is missing: the password's file, the CA


@dataclass(frozen=True)
class Drive:
    """One drive as its controller lists it."""

    name: str
    model: str = ""
    serial: str = ""
    bytes: int | None = None
    health: str = ""


@dataclass(frozen=True)
class BmcSeen:
    """One slot's management controller.

    Attributes:
        said: why it came no further, in one sentence; hint: what to do.
        identity: what the machine says of itself, by the names of machines.yml.
        clock_ahead_s: its clock less ours; None when it shows none.
        drives: None when it lists no drives at all.
    """

    host: str
    slot: str
    address: str
    login: Login
    said: str = ""
    hint: str = ""
    identity: Mapping[str, str] = field(default_factory=dict)
    clock: str = ""
    clock_ahead_s: float | None = None
    drives: tuple[Drive, ...] | None = None


@dataclass(frozen=True)
class SwitchSeen:
    """One switch; `error` is empty after a login under its pinned key."""

    name: str
    address: str
    hostname: str = ""
    error: str = ""
    hint: str = ""


@dataclass(frozen=True)
class TimeSeen:
    """One time server; `error` says why it gave no time."""

    server: str
    stratum: int = 0
    unsynchronised: bool = False
    ahead_s: float = 0.0
    error: str = ""


@dataclass(frozen=True)
class NameSeen:
    """What one name server says of one name; `addresses` is empty when it knows none."""

    name: str
    server: str
    addresses: tuple[str, ...] = ()
    error: str = ""


@dataclass(frozen=True)
class UnitSeen:
    """One cooling unit; `said` is what speaks against switching a machine of its racks on, sensor by sensor."""

    name: str
    racks: tuple[str, ...]
    said: tuple[str, ...] = ()


class Port(StrEnum):
    """What became of the address and port of the boot server."""

    FREE = "free"
    OURS = "ours"
    OTHER = "other"
    ELSEWHERE = "elsewhere"  # the address is none of this machine's


@dataclass(frozen=True)
class HereSeen:
    """The operator's machine.

    Attributes:
        port: of site.serve; served: whether the server there hands out the mirror; code: it runs this very code.
        image: the golden image is built; packages: what mirror and image have, name -> version; None when not built.
        free_bytes: of the file systems that images and media go to.
    """

    port: Port
    said: str = ""
    served: bool | None = None
    code: bool = True
    image: bool = False
    packages: Mapping[str, str] | None = None
    free_bytes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Seen:
    """All of it."""

    bmcs: tuple[BmcSeen, ...]
    switches: tuple[SwitchSeen, ...]
    times: tuple[TimeSeen, ...]
    names: tuple[NameSeen, ...]
    here: HereSeen
    units: tuple[UnitSeen, ...] = ()
