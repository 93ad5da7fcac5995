"""The cables while the lab runs: which far end each has, whether it is in, and at what rate it runs.

A cable is a veth pair. Its near end (a host's rail, a leaf's uplink) never moves, so that the device there sees no more
than its carrier come and go; what moves is the far end, between the switches' namespaces. The port there keeps what the
switch had configured.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from supernode.errors import CouldNotRun, WrongInput
from supernode.lab import netspace, wiring
from supernode.lab.artefacts import Artefacts, Cable
from supernode.lab.chassis import manufactured_mac
from supernode.lab.faults import Fault
from supernode.units import MbitPerS

End = tuple[str, str]
FAREWELL_S = 0.5


@dataclass(frozen=True)
class _Configured:
    """What a switch had set on a port."""

    up: bool
    mtu: int
    addresses: tuple[str, ...]


class Cables:
    """What can go wrong with cables, whatever carries them."""

    def exchange(self, first: str, second: str) -> None:
        """Exchange the far ends of two cables; doing it again puts them back."""
        raise NotImplementedError

    def pull(self, target: str) -> None:
        """Pull a cable."""
        raise NotImplementedError

    def plug(self, target: str) -> None:
        """Plug a pulled cable in where it was."""
        raise NotImplementedError

    def slow(self, target: str, factor: float) -> None:
        """Run a cable at a share of its rate; 1 is all of it."""
        raise NotImplementedError

    def halve(self, target: str, *, half: bool) -> None:
        """Have half of a cable's lanes run, or all."""
        raise NotImplementedError

    def inject(self, fault: Fault) -> None:
        """Do to a cable what a fault says."""
        target = fault.targets[0]
        if fault.name == "swap-cable":
            self.exchange(*fault.targets)
        elif fault.name == "missing-cable":
            self.pull(target)
        elif fault.name == "slow-link":
            self.slow(target, fault.arguments["factor"])
        elif fault.name == "half-width":
            self.halve(target, half=True)

    def mend(self, fault: Fault) -> None:
        """Take a fault away again."""
        target = fault.targets[0]
        if fault.name == "swap-cable":
            self.exchange(*fault.targets)
        elif fault.name == "missing-cable":
            self.plug(target)
        elif fault.name == "slow-link":
            self.slow(target, 1.0)
        elif fault.name == "half-width":
            self.halve(target, half=False)


@dataclass
class CablePlant(Cables):
    """All cables of one lab.

    Attributes:
        lab: the lab's name, which the ports' MAC addresses follow from.
        far: cable id -> the (device, port) where its b-end is plugged at present.
        missing: ids of the cables whose b-end is pulled.
        factors: cable id -> the share of its rate that it runs at, where less than all.
    """

    lab: str
    artefacts: Artefacts
    far: dict[str, End] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)
    factors: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._cables = {cable.cable: cable for cable in self.artefacts.cables}
        self._slots = {row.device: row.slot for row in self.artefacts.switches}
        self.far = {cable.cable: (cable.b_device, cable.b_port) for cable in self.artefacts.cables}

    def find(self, target: str) -> Cable:
        """See `find`."""
        return find(self.artefacts, target)

    def exchange(self, first: str, second: str) -> None:
        """Exchange the far ends of two cables; doing it again puts them back.

        Raises:
            CouldNotRun: one and the same cable, or one that is pulled.
        """
        one, two = self.find(first).cable, self.find(second).cable
        if one == two:
            raise CouldNotRun(first, "is the same cable at both ends", "name two cables")
        for cable in (one, two):
            if cable in self.missing:
                raise CouldNotRun(cable, "is pulled", "plug it in first")
        places = self.far[one], self.far[two]
        before = [self._configured(*place) for place in places]
        _swap(*places)
        self.far[one], self.far[two] = places[1], places[0]
        for cable, configured in ((one, before[1]), (two, before[0])):
            self._configure(self.far[cable], configured)
            self._shape(cable)

    def pull(self, target: str) -> None:
        """Pull a cable: both its ports lose their carrier."""
        cable = self.find(target).cable
        if cable in self.missing:
            return
        device, port = self.far[cable]
        configured = self._configured(device, port)
        _bid_farewell((device, port))
        netspace.batch([f"link set {port} netns {wiring.UNPLUGGED} name b-{cable}"], device)
        netspace.batch([f"link add name {port} netns {device} type veth peer name s-{cable} netns {wiring.UNPLUGGED}"])
        self.missing.add(cable)
        self._configure((device, port), configured)

    def plug(self, target: str) -> None:
        """Plug a pulled cable in where it was."""
        cable = self.find(target).cable
        if cable not in self.missing:
            return
        device, port = self.far[cable]
        configured = self._configured(device, port)
        _bid_farewell((device, port))
        netspace.batch([f"link delete {port}"], device)
        netspace.batch([f"link set b-{cable} netns {device} name {port}"], wiring.UNPLUGGED)
        self.missing.discard(cable)
        self._configure((device, port), configured)
        self._shape(cable)

    def slow(self, target: str, factor: float) -> None:
        """Run a cable at a share of its rate; 1 is all of it.

        Raises:
            CouldNotRun: no share above 0 and up to 1.
        """
        if not 0 < factor <= 1:
            raise CouldNotRun(target, f"cannot run at {factor:g} of its rate", "give a factor above 0 and up to 1")
        cable = self.find(target).cable
        self.factors[cable] = factor
        if cable not in self.missing:
            self._shape(cable)

    def halve(self, target: str, *, half: bool) -> None:
        """Refuse: an Ethernet link has no fewer lanes, it has a lower rate.

        Raises:
            CouldNotRun: always.
        """
        raise CouldNotRun(target, f"is an Ethernet cable, half width or not ({half})", "slow-link lowers its rate")

    def power(self, device: str, *, on: bool) -> None:
        """Do nothing: a server's ports come and go with its namespace."""

    def binds(self, _device: str) -> tuple[str, ...]:
        """Return nothing: a server's ports are in its namespace."""
        return ()

    def start(self) -> None:
        """Do nothing: the kernel carries what these cables carry."""

    def _shape(self, cable: str) -> None:
        row = self._cables[cable]
        qdisc = wiring.shaping(MbitPerS(row.rate * self.factors.get(cable, 1.0))).qdisc
        ends = [self.far[cable]]
        if row.a_device in self._slots:
            ends.append((row.a_device, row.a_port))
        for device, port in ends:
            netspace.batch([f"qdisc replace dev {port} root {qdisc}"], device, "tc")

    def _configured(self, device: str, port: str) -> _Configured:
        done = subprocess.run(
            ["ip", "-j", "-n", device, "address", "show", "dev", port], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise CouldNotRun(f"{device} {port}", f"is not there ({done.stderr.strip()})", "start the lab again")
        return _read_configured(json.loads(done.stdout)[0])

    def _configure(self, end: End, configured: _Configured) -> None:
        device, port = end
        mac = manufactured_mac(self.lab, self._slots[device], port)
        netspace.batch(_configure_commands(port, mac, configured), device)


def find(artefacts: Artefacts, target: str) -> Cable:
    """Find a cable by its id, or by one of its designed ends: `gpu-001:rail3`.

    Raises:
        WrongInput: no such cable.
    """
    device, _, port = target.partition(":")
    for cable in artefacts.cables:
        ends = ((cable.a_device, cable.a_port), (cable.b_device, cable.b_port))
        if target == cable.cable or (device, port) in ends:
            return cable
    raise WrongInput(target, "is no cable of this lab", "name it by its id (C00001) or one of its ends (gpu-001:rail0)")


def _read_configured(link: dict[str, Any]) -> _Configured:
    addresses = (f"{entry['local']}/{entry['prefixlen']}" for entry in link["addr_info"] if entry["scope"] != "link")
    return _Configured("UP" in link["flags"], int(link["mtu"]), tuple(addresses))


def _configure_commands(port: str, mac: str, configured: _Configured) -> Iterator[str]:
    yield f"link set {port} address {mac} mtu {configured.mtu}"
    if configured.up:
        yield f"link set {port} up"
    yield from (f"address replace {address} dev {port}" for address in configured.addresses)


def _bid_farewell(*ends: End) -> None:
    """Take ports down and their addresses away, and give the switches a moment to hear of it, before the ports go.

    A real port never goes: an unplugged one loses its carrier. FRR 8.4.4, told of addresses after their port has gone,
    calls every link-local next hop inaccessible for good.
    """
    for space, port in ends:
        netspace.batch([f"link set {port} down", f"address flush dev {port}"], space)
    time.sleep(FAREWELL_S)


def _swap(one: End, two: End) -> None:
    """Put each of two links in the other's place, by way of names that no port has."""
    _bid_farewell(one, two)
    for (space, port), moving in ((one, "moving1"), (two, "moving2")):
        netspace.batch([f"link set {port} name {moving}"], space)
    for (space, _), (there, port), moving in ((one, two, "moving1"), (two, one, "moving2")):
        netspace.batch([f"link set {moving} {'' if space == there else f'netns {there}'} name {port}"], space)
