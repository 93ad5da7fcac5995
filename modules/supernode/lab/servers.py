"""The works of one simulated server: its disk, its network ports, and the system that runs from it."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from supernode import catalog
from supernode.errors import CouldNotRun, WrongInput
from supernode.lab import containers, netspace
from supernode.lab.artefacts import Server
from supernode.lab.boards import BoardFolder
from supernode.lab.chassis import Identity, MediaInfo
from supernode.lab.console import Console
from supernode.lab.containers import Container
from supernode.lab.deploy import Hardware, ImageStore, deploy
from supernode.lab.disks import Disk, File, Images, unmount
from supernode.lab.kernellog import KernelLog
from supernode.lab.machine import Ending
from supernode.lab.places import SlotPlaces
from supernode.lab.wiring import Port

log = logging.getLogger(__name__)
SETTINGS = {"ipv4/ip_forward": "0", "ipv6/conf/all/forwarding": "0"}  # a new namespace copies the machine's


@dataclass
class Ports:
    """A server's network ports, which outlive the system that uses them.

    A namespace lives as long as one boot: a fresh one is what a kernel finds at start, whatever the last system
    configured, renamed or added. The far ends stay where they are and lose their carrier meanwhile.

    Attributes:
        device: the designed name, which is also the first namespace's.
        space: the namespace of the present or next boot.
    """

    device: str
    ports: Sequence[Port]
    space: str = ""
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        self.space = self.device

    def first_names(self) -> dict[int, str]:
        """Return what a kernel calls the ports before anyone renames them, by index."""
        return {port.index: port.name for port in self.ports}

    def renew(self) -> None:
        """Move the ports, down and under their first names, into a fresh namespace.

        Raises:
            CouldNotRun: a port is gone, as the system inside can manage by moving it into a namespace that then ended.
        """
        old, new = self.space, f"{self.device}.{next(self._numbers)}"
        names = netspace.link_names(old)
        missing = [port.designed for port in self.ports if port.index not in names]
        if missing:
            raise CouldNotRun(self.device, f"lost its ports {', '.join(missing)}", "start the lab again")
        netspace.batch([f"netns add {new}"])
        netspace.set_sysctls(new, SETTINGS)
        netspace.batch(
            (
                line
                for port in self.ports
                for line in (f"link set {names[port.index]} down", f"link set {names[port.index]} netns {new}")
            ),
            old,
        )
        # By way of names that nobody else has: a system may have given one port another's, as a second name, too.
        netspace.batch((f"link set {names[port.index]} name moving{port.index}" for port in self.ports), new)
        others = netspace.other_names(new)
        netspace.batch(
            (
                f"link property del dev moving{port.index} altname {other}"
                for port in self.ports
                for other in others.get(f"moving{port.index}", ())
            ),
            new,
        )
        netspace.batch(
            (f"link set moving{port.index} name {port.name} address {port.mac} mtu 1500" for port in self.ports), new
        )
        netspace.batch([f"netns delete {old}"])
        self.space = new


class Adapters(Protocol):
    """What a server has of the fabric beside its network ports."""

    def power(self, device: str, *, on: bool) -> None:
        """Have a server's adapters be there or not."""

    def binds(self, device: str, /) -> tuple[str, ...]:
        """Return the nspawn arguments that put them into a server."""


@dataclass
class ServerWorks:
    """What the lab does for one machine (machine.Works).

    Attributes:
        store: where a deploy step's images come from.
        adapters: what the server has of the fabric beside its network ports.
    """

    server: Server
    identity: Identity
    places: SlotPlaces
    images: Images
    store: ImageStore
    ports: Ports
    console: Console
    adapters: Adapters

    def __post_init__(self) -> None:
        self.places.folder.mkdir(parents=True, exist_ok=True)
        self.disk = Disk(self.places.disk)
        self.board = BoardFolder(self.places.board, tuple(self.ports.ports))
        self.board.make(self.server, self.identity)
        self.kernel_log = KernelLog(self.places.folder / "kmsg")
        self.container: Container | None = None

    def installed(self) -> bool:
        """See machine.Works."""
        return self.disk.written()

    def install(self, image: Path, files: Mapping[str, File]) -> None:
        """Write a golden image onto the disk and files upon it, as a deploy step does."""
        self.disk.write(image, self.images.lower(image), self.places.root, files)

    async def run(self, running: Callable[[], None]) -> Ending:
        """See machine.Works.

        Raises:
            CouldNotRun: the system's container could not be started, or ended as no system does.
        """
        self.container = await asyncio.to_thread(self._prepare)
        await asyncio.to_thread(self.adapters.power, self.server.device, on=True)
        watch = netspace.LinkWatch(self.ports.space, self.board.renamed)
        try:
            status = await self.container.run(running)
        finally:
            watch.close()
            self.container = None
            await asyncio.shield(asyncio.create_task(self._tidy()))
        if status not in (containers.REBOOT, containers.POWEROFF):
            raise CouldNotRun(
                self.server.device, f"the system's container ended with status {status}", f"see {self.places.console}"
            )
        return Ending.REBOOT if status == containers.REBOOT else Ending.POWEROFF

    async def ask(self, ending: Ending) -> None:
        """See machine.Works."""
        if self.container is not None:
            self.container.signal(ending.value)

    async def deploy(self, media: MediaInfo) -> None:
        """See machine.Works."""
        kind = catalog.server(self.server.kind)
        disk = kind.disk.by_id.removeprefix("/dev/disk/by-id/").replace("*", self.identity.system_serial)
        hardware = Hardware(self.identity.management_mac, {disk: kind.disk.size_gb * 10**9})
        await deploy(media, hardware, self.store, self.install, self.console.write)

    def lose_gpu(self, index: str) -> None:
        """Take an accelerator off the bus, and have a kernel that runs say so, as the driver does.

        Raises:
            WrongInput: the machine has no accelerator of this number.
        """
        kind = catalog.server(self.server.kind)
        number = self._gpu(index)
        self.board.lose_gpu(kind, number)
        address = kind.gpu_pci[number].removesuffix(".0")
        with contextlib.suppress(CouldNotRun):  # a machine that is off has no kernel to see it
            self.kernel_log.write(f"NVRM: Xid (PCI:{address}): 79, pid=0, GPU has fallen off the bus.")

    def regain_gpu(self, index: str) -> None:
        """Have the accelerator on the bus again, as after it was reseated.

        Raises:
            WrongInput: the machine has no accelerator of this number.
        """
        self.board.plug_gpu(catalog.server(self.server.kind), self._gpu(index))

    def _gpu(self, index: str) -> int:
        count = len(catalog.server(self.server.kind).gpu_pci)
        if not index.isdigit() or int(index) >= count:
            known = f"0 to {count - 1}" if count else "it has none whose address is known"
            raise WrongInput(f"{self.server.device} {index}", "is no accelerator of this server", known)
        return int(index)

    def hang(self, hung: bool) -> None:
        """Stop the whole system between two instructions, or let it go on.

        Raises:
            CouldNotRun: no system runs.
        """
        if self.container is None:
            raise CouldNotRun(self.server.device, "is not running", "power it on first")
        self.container.freeze(hung)

    def _prepare(self) -> Container:
        self.board.follow(self.ports.first_names())
        self.kernel_log.open()
        self.disk.attach(self.images.lower(self.disk.source()), self.places.root)
        return Container(
            name=self.server.slot,
            root=self.places.root,
            space=self.ports.space,
            command=self.board.command,
            line=self.console.write,
            readiness=self.places.folder / "ready.sock",
            binds=(
                *self.board.binds,
                *self.adapters.binds(self.server.device),
                f"--bind={self.kernel_log.path}:/dev/kmsg",
            ),
            uuid=self.identity.uuid,
        )

    async def _tidy(self) -> None:
        """Leave the machine as one is without power; a failure is logged, not in the way of this end."""
        self.kernel_log.close()
        await asyncio.to_thread(self.adapters.power, self.server.device, on=False)
        await asyncio.to_thread(unmount, self.places.root)
        try:
            await asyncio.to_thread(self.ports.renew)
        except CouldNotRun:
            log.exception("%s: its ports", self.server.device)
