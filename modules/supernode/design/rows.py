"""What a reader of the Design sees: one host, one switch, one cable, made from the columns when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface
from typing import Generic, Literal, TypeVar, overload

from supernode.spec import Identity
from supernode.units import MbitPerS, Metre

HostState = Literal["active", "spare", "quarantined"]


CREDENTIALS = "/etc/supernode/credentials"


@dataclass(frozen=True)
class Host:
    """A server by its designed name.

    Attributes:
        rack: of a rented host, the provider's zone.
        unit: lowest rack unit it fills; 0 for a rented host, whose slot is its name.
        ordinal: from 1, within its pool.
        su: scalable unit, from 1; 0 for a host of a service pool, which has no cable.
        port: 0-based host port on each leaf of its unit; 0 without one.
        stack: the Pulumi stack that holds it.
        bmc: 0.0.0.0 for a rented host, which has no controller.
        identity: what machines.yml binds to its slot; empty strings where nothing is bound.
        cloud: who it is rented from; empty for a machine of the site.
    """

    name: str
    slot: str
    rack: str
    unit: int
    pool: str
    kind: str
    ordinal: int
    su: int
    port: int
    state: HostState
    stack: str
    bmc: IPv4Address
    management: IPv4Interface
    identity: Identity
    cloud: str = ""


@dataclass(frozen=True)
class Switch:
    """A switch by its designed name.

    Attributes:
        unit: lowest rack unit it fills.
        su: scalable unit of a leaf, from 1; 0 for the others.
        rail: of a leaf that one rail has for itself, and of what stands above it in a rail-only fabric; else None.
        asn, loopback: None in an InfiniBand fabric, where a subnet manager makes all routes.
        plane: from 1.
        pod: of a spine below cores, from 1; else 0.
    """

    name: str
    slot: str
    rack: str
    unit: int
    kind: str
    tier: Literal["leaf", "spine", "core"]
    su: int
    rail: int | None
    asn: int | None
    loopback: IPv4Address | None
    management: IPv4Interface
    stack: str
    identity: Identity
    plane: int = 1
    pod: int = 0


@dataclass(frozen=True)
class Link:
    """A cable with both its ends.

    Attributes:
        kind: "rail" (a is a host, b its leaf, both with a /31), "uplink" (a is a leaf, b a spine, unnumbered) or "core"
            (a is a spine, b a core, unnumbered).
        a_address, b_address: the leaf's is the even one of a /31; None in an InfiniBand fabric.
        shut: the switch's port is held down, because the host is quarantined.
        plane: from 1.
    """

    cable: str
    kind: Literal["rail", "uplink", "core"]
    a_device: str
    a_port: str
    b_device: str
    b_port: str
    a_address: IPv4Interface | None
    b_address: IPv4Interface | None
    rail: int | None
    rate: MbitPerS
    mtu: int
    length: Metre
    shut: bool
    plane: int = 1


@dataclass(frozen=True)
class RenderedFile:
    """A file as it shall stand on a device.

    Attributes:
        role: the role that places it; "switch" for the files of a switch.
    """

    path: str
    content: str
    mode: str = "0644"
    owner: str = "root"
    role: str = ""


@dataclass(frozen=True)
class Placed:
    """What a host needs and no variable may carry: a secret, or a file that the operator has.

    It is put over ssh into /etc/supernode/credentials (root's alone), from where a unit takes it by LoadCredential.

    Attributes:
        name: the file's name there.
        source: a reference (`file:`, `vault:`, `exec:`), or the path of a file that is no secret, from the
            environment's folder.
        unit: is restarted, where it runs, when this is another than before.
    """

    name: str
    source: str
    unit: str

    @property
    def path(self) -> str:
        """Where it lies on the host."""
        return f"{CREDENTIALS}/{self.name}"


Row = TypeVar("Row")


class Rows(Sequence[Row], Generic[Row]):
    """Rows that are made from columns when they are asked for.

    Args:
        count: how many there are.
        make: builds the row of an index.
    """

    def __init__(self, count: int, make: Callable[[int], Row]) -> None:
        self._count, self._make = count, make

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        if isinstance(index, slice):
            return [self._make(i) for i in range(*index.indices(self._count))]
        if not -self._count <= index < self._count:
            raise IndexError(index)
        return self._make(index % self._count)

    def __iter__(self) -> Iterator[Row]:
        return map(self._make, range(self._count))
