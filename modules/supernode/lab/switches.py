"""Simulated switches: the factory's operating system, and upon it what zero-touch provisioning puts there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import ClassVar

from supernode.lab.artefacts import Artefacts, Switch
from supernode.lab.boards import BoardFolder
from supernode.lab.chassis import Identity
from supernode.lab.console import Console
from supernode.lab.containers import Container
from supernode.lab.disks import Disk, File, unmount
from supernode.lab.factory import SwitchKey
from supernode.lab.places import SlotPlaces
from supernode.lab.wiring import SWITCH_MANAGEMENT

log = logging.getLogger(__name__)
SSH_PORT = 22
CONNECT_S = 0.3  # a new try sends its first packet at once; an old one sends its second after a second


def provisioning(switch: Switch, artefacts: Artefacts, key: SwitchKey) -> Mapping[str, File]:
    """Return the files that a new switch has after zero-touch provisioning.

    It reaches the operator and the time servers by way of the management gateway, and nothing else: there is no default
    route, so that a packet which the fabric cannot place is dropped, not sent round by the management network.
    """
    site = artefacts.site
    beyond = [address for address in (site.serve, *site.time_servers) if address not in switch.management.network]
    routes = "".join(f"\n[Route]\nDestination={address}/32\nGateway={site.gateway.ip}\n" for address in beyond)
    match = f"[Match]\nName={SWITCH_MANAGEMENT}\n\n[Network]\nLLDP=no\nIPv6AcceptRA=no\n"
    return {
        "etc/hostname": File(f"{switch.device}\n"),
        "etc/hosts": File(f"127.0.0.1 localhost\n{switch.management.ip} {switch.device}\n"),
        "etc/systemd/network/10-management.network": File(f"{match}Address={switch.management}\n{routes}"),
        "etc/ssh/authorized_keys/admin": File(artefacts.authorized_keys),
        "etc/ssh/ssh_host_ed25519_key": File(key.private, 0o600),
        "etc/ssh/ssh_host_ed25519_key.pub": File(key.public + "\n"),
    }


@dataclass
class RunningSwitch:
    """One switch, always powered.

    Attributes:
        nos: the folder of the operating system's files.
    """

    switch: Switch
    places: SlotPlaces
    identity: Identity
    nos: Path
    files: Mapping[str, File]
    state: str = "off"
    binds: ClassVar[tuple[str, ...]] = ()

    def install(self) -> None:
        """Put it back to what the factory and zero-touch provisioning made of it."""
        self.places.folder.mkdir(parents=True, exist_ok=True)
        disk = Disk(self.places.disk)
        disk.write(self.nos, self.nos, self.places.root, self.files)
        disk.attach(self.nos, self.places.root)
        self.label()

    def label(self) -> None:
        """Write what it shows of its hardware."""
        self.board.make_switch(self.switch, self.identity)

    @property
    def board(self) -> BoardFolder:
        """The simulated part of its /sys."""
        return BoardFolder(self.places.board, ())

    async def run(self) -> None:
        """Run it for good: a switch that reboots or whose system ends starts again."""
        console = Console(self.places.console)
        container = Container(
            name=self.switch.slot,
            root=self.places.root,
            space=self.switch.device,
            command=self.board.command,
            binds=(*self.board.binds, *self.binds),
            line=console.write,
            readiness=self.places.folder / "ready.sock",
        )
        try:
            while True:
                self.state = "booting"
                status = await container.run(self._started)
                log.warning("%s ended with status %d; starting it again", self.switch.device, status)
                await asyncio.sleep(0.5)
        finally:
            self.state = "off"
            unmount(self.places.root)

    def _started(self) -> None:
        self.state = "on"


async def banner(address: IPv4Address, timeout_s: float) -> bool:
    """Tell whether an SSH server greets there; a connection alone may have been taken by a hung host's kernel."""
    writer = None
    try:
        async with asyncio.timeout(CONNECT_S):
            reader, writer = await asyncio.open_connection(str(address), SSH_PORT)
        async with asyncio.timeout(timeout_s):
            return (await reader.readline()).startswith(b"SSH-")
    except (OSError, TimeoutError):
        return False
    finally:
        if writer is not None:
            writer.close()


async def wait_for_login(addresses: Mapping[str, IPv4Address], deadline_s: float) -> tuple[str, ...]:
    """Wait until each device greets on SSH; return those that did not before the deadline."""
    loop = asyncio.get_running_loop()
    end = loop.time() + deadline_s

    async def one(address: IPv4Address) -> bool:
        while loop.time() < end:
            if await banner(address, 2.0):
                return True
            await asyncio.sleep(0.1)
        return False

    up = await asyncio.gather(*(one(address) for address in addresses.values()))
    return tuple(name for name, greeted in zip(addresses, up, strict=True) if not greeted)
