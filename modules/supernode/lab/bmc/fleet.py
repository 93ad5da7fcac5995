"""All BMCs of a lab in one process: each listens on its own address, and any can be given a fault."""

from __future__ import annotations

import asyncio
import functools
import logging
import shutil
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web

from supernode.errors import CouldNotRun
from supernode.lab import netspace
from supernode.lab.bmc import faults, front
from supernode.lab.bmc.certificates import Authority
from supernode.lab.bmc.controller import Bmc
from supernode.lab.bmc.hardware import Habits, Kind
from supernode.lab.chassis import Chassis

log = logging.getLogger(__name__)
Credentials = tuple[str, str]
CLOSE_S = 0.5  # for answers on their way when all is closed; a slow BMC is not waited for


@dataclass(frozen=True)
class _Seat:
    bmc: Bmc
    server: web.Server
    runner: web.ServerRunner
    listener: socket.socket


class Fleet:
    """The BMCs of one lab.

    Args:
        folder: the authority under `ca/`, and a folder for each BMC under `bmc/<slot>/`.
        credentials: name and password of each BMC's first account; or what tells them for a slot.
        habits: how they behave where real ones differ.
    """

    def __init__(
        self, folder: Path, credentials: Credentials | Callable[[str], Credentials], habits: Habits | None = None
    ) -> None:
        self.authority = Authority(folder / "ca")
        self._folder, self._habits = folder / "bmc", habits
        self._credentials = credentials if callable(credentials) else lambda _slot: credentials
        self._seats: dict[str, _Seat] = {}

    async def add(self, chassis: Chassis, kind: Kind, address: str, port: int = 443, space: str = "") -> Bmc:
        """Put a BMC into operation for a chassis, in a network namespace or in the process's own.

        Raises:
            CouldNotRun: the address cannot be listened on.
        """
        folder = self._folder / chassis.slot
        credentials = self._credentials(chassis.slot)
        bmc = await asyncio.to_thread(Bmc, chassis, kind, folder, credentials, self._habits)
        context = await asyncio.to_thread(self.authority.issue, folder, f"bmc-{chassis.slot}", address)
        await bmc.store.save()
        server = web.Server(functools.partial(front.handle, bmc), access_log=None)
        runner = web.ServerRunner(server, shutdown_timeout=CLOSE_S)
        await runner.setup()
        bmc.media.space = bmc.updates.space = space
        listen = functools.partial(_listen, chassis.slot, address, port)
        listener = netspace.within(space, listen) if space else listen()
        await web.SockSite(runner, listener, ssl_context=context).start()
        self._seats[chassis.slot] = _Seat(bmc, server, runner, listener)
        bmc.hearing = functools.partial(self._restarting, chassis.slot)
        self._hearing(chassis.slot)
        return bmc

    async def remove(self, slot: str, *, erase: bool) -> None:
        """Take a BMC out of operation; its settings, accounts and certificate stay in its flash unless `erase`.

        Raises:
            CouldNotRun: no such slot.
        """
        seat = self._seat(slot)
        seat.bmc.faults.release()
        await seat.runner.cleanup()
        await seat.bmc.close()
        del self._seats[slot]
        if erase:
            await asyncio.to_thread(shutil.rmtree, self._folder / slot, ignore_errors=True)

    def bmc(self, slot: str) -> Bmc:
        """Return the BMC of a slot.

        Raises:
            CouldNotRun: no such slot.
        """
        return self._seat(slot).bmc

    def address(self, slot: str) -> tuple[str, int]:
        """Return where the BMC of a slot listens."""
        host, port = self._seat(slot).listener.getsockname()[:2]
        return host, port

    def set_fault(self, slot: str, name: str, **arguments: Any) -> None:
        """Inject a fault of `faults.KINDS`.

        Raises:
            CouldNotRun: no such slot, fault or argument.
        """
        bmc = self.bmc(slot)
        bmc.faults.set(name, **arguments)
        bmc.struck(name)
        self._hearing(slot)

    def clear_fault(self, slot: str, name: str | None = None) -> None:
        """Take a fault away, or all of a slot's."""
        bmc = self.bmc(slot)
        bmc.faults.clear(name)
        bmc.mended()
        self._hearing(slot)

    def faults(self) -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
        """Return slot -> name -> arguments of what is injected."""
        return {slot: seat.bmc.faults.active for slot, seat in self._seats.items() if seat.bmc.faults.active}

    async def close(self) -> None:
        """Stop listening and save; machines are left as they are."""
        for seat in self._seats.values():
            seat.bmc.faults.release()
        await asyncio.gather(*(seat.runner.cleanup() for seat in self._seats.values()))
        for seat in self._seats.values():
            await seat.bmc.close()
        self._seats.clear()

    def _seat(self, slot: str) -> _Seat:
        seat = self._seats.get(slot)
        if seat is None:
            raise CouldNotRun(slot, "no BMC in this slot", f"slots with one: {', '.join(sorted(self._seats))}")
        return seat

    def _restarting(self, slot: str, hears: bool) -> None:
        """Be silent while the BMC restarts; connections do not outlive that."""
        if not hears:
            for connection in self._seat(slot).server.connections:
                if connection.transport is not None:
                    connection.transport.abort()
        self._hearing(slot, hears)

    def _hearing(self, slot: str, awake: bool = True) -> None:
        """Let sockets hear or not, as the fault says; connections that stand included."""
        seat = self._seat(slot)
        change = faults.restore if awake and not seat.bmc.faults.dead else faults.deafen
        sockets: list[Any] = [seat.listener]
        for connection in seat.server.connections:
            transport = connection.transport
            if transport is not None and not transport.is_closing():
                sockets.append(transport.get_extra_info("socket"))
        for each in sockets:
            try:
                change(each)
            except OSError as error:  # nothing was attached, or the connection is just ending
                log.debug("%s: socket filter: %s", slot, error)


def _listen(slot: str, address: str, port: int) -> socket.socket:
    try:
        return socket.create_server(
            (address, port), family=socket.AF_INET6 if ":" in address else socket.AF_INET, backlog=128
        )
    except OSError as error:
        raise CouldNotRun(f"{address}:{port}", f"the BMC of {slot} cannot listen: {error.strerror}") from error
