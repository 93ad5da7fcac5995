"""What a survey saw, before anybody concludes anything from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from supernode.units import MbitPerS
from supernode.verify.facts.clock import Clock
from supernode.verify.facts.device import DeviceFacts
from supernode.verify.facts.fib import Route
from supernode.verify.facts.lldp import Neighbour
from supernode.verify.facts.ports import Port

Tree = Mapping[str, Mapping[str, Any]]
"""A Redfish tree: path of the resource, without a last slash, to its document."""


@dataclass(frozen=True)
class Placement:
    """Where a chassis says it is; empty and 0 are what it does not say."""

    rack: str = ""
    unit: int = 0

    @property
    def slot(self) -> str:
        """The slot's name, or ""."""
        return f"{self.rack}u{self.unit:02d}" if self.rack and self.unit else ""


@dataclass(frozen=True)
class OwnAddress:
    """A controller's own address with its prefix length, and its gateway or ""."""

    interface: str
    gateway: str = ""


@dataclass(frozen=True)
class ControllerSeen:
    """One BMC.

    Attributes:
        why: why it could not be read, with nothing else filled in; "" when it was.
        fingerprint: SHA-256 of the certificate that it showed, in hex.
        identity: by the names of machines.yml, as found: placeholders included.
        vendor, model: of the system.
        bios, bios_defaults: attributes as they hold, and the defaults of its own attribute registry where it shows one.
        firmware: component to version.
        clock_offset_s: its clock minus ours, None when it does not say.
        unhealthy: resource to health, of those that are not well.
        label: what a sheet calls its machine.
        unread: path to what was answered, of resources that are there and could not be had.
    """

    address: str
    why: str = ""
    fingerprint: str = ""
    identity: Mapping[str, str] = field(default_factory=dict)
    vendor: str = ""
    model: str = ""
    placement: Placement = Placement()
    own: OwnAddress | None = None
    gpus: int | None = None
    power: str = ""
    bios: Mapping[str, Any] = field(default_factory=dict)
    bios_defaults: Mapping[str, Any] = field(default_factory=dict)
    firmware: Mapping[str, str] = field(default_factory=dict)
    clock_offset_s: float | None = None
    unhealthy: Mapping[str, str] = field(default_factory=dict)
    label: str = ""
    unread: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Hop:
    """One route of a host or switch, as its kernel has it."""

    destination: str
    gateway: str
    port: str


@dataclass(frozen=True)
class DeviceSeen:
    """What hosts and switches have in common; None is *not seen*, and `unseen` says why.

    Attributes:
        why: why it could not be asked at all.
        host_key: the key under which it was talked to.
        macs: port to its permanent address.
    """

    address: str
    why: str = ""
    host_key: str = ""
    hostname: str = ""
    ports: Mapping[str, Port] | None = None
    neighbours: Mapping[str, tuple[Neighbour, ...]] | None = None
    routes: tuple[Route, ...] | None = None
    hops: tuple[Hop, ...] = ()
    vendor: str = ""
    model: str = ""
    unseen: Mapping[str, str] = field(default_factory=dict)

    def facts(self, name: str, clock: Clock | None = None) -> DeviceFacts:
        """Return what the gates of `verify` get to see of it."""
        if self.why:
            return DeviceFacts(name, reached=False, why=self.why)
        return DeviceFacts(
            name,
            reached=True,
            ports=self.ports,
            neighbours=self.neighbours,
            clock=clock,
            routes=self.routes,
            unseen=self.unseen,
        )

    def management_port(self) -> Port | None:
        """Return the port that holds the address it was asked at."""
        mine = self.address.partition(":")[0]
        rows = (self.ports or {}).values()
        return next((p for p in rows if any(a.partition("/")[0] == mine for a in p.addresses)), None)


@dataclass(frozen=True)
class HostSeen(DeviceSeen):
    """One host.

    Attributes:
        fqdn: as it resolves its own name.
        serial, uuid: as its kernel got them from the firmware.
        nics: PCI address to the name that the port has.
        clock: as its time daemon says.
        time_servers, name_servers: as it is configured.
        mirror: "address:port" of the package mirror, or "".
        suite: the distribution's code name.
        kernels: kernel packages that were asked for by name.
        packages: packages that were asked for by name after the image was made.
        image: digest of the golden image that it says it runs.
    """

    fqdn: str = ""
    serial: str = ""
    uuid: str = ""
    nics: Mapping[str, str] = field(default_factory=dict)
    clock: Clock | None = None
    time_servers: tuple[str, ...] = ()
    name_servers: tuple[str, ...] = ()
    mirror: str = ""
    suite: str = ""
    kernels: tuple[str, ...] = ()
    packages: tuple[str, ...] | None = None
    image: str = ""

    def rates(self) -> dict[str, MbitPerS]:
        """Return what its ports themselves say they carry."""
        rows = (self.ports or {}).items()
        return {name: port.speed for name, port in rows if port.hardware and port.speed is not None}


@dataclass(frozen=True)
class SwitchSeen(DeviceSeen):
    """One switch.

    Attributes:
        serial: as its kernel got it from the firmware.
        asn: its own autonomous system; 0 where it says none.
        loopback: its router id.
        announced: prefixes that it announces.
        ranges: what its filters let pass, as (prefix, least length, greatest length).
    """

    serial: str = ""
    asn: int = 0
    loopback: str = ""
    announced: tuple[str, ...] = ()
    ranges: tuple[tuple[str, int, int], ...] = ()


@dataclass(frozen=True)
class Observations:
    """All that a survey saw."""

    controllers: tuple[ControllerSeen, ...] = ()
    hosts: tuple[HostSeen, ...] = ()
    switches: tuple[SwitchSeen, ...] = ()
