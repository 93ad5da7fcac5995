"""One BMC: its parts, what it does in POST, and its power actions."""

from __future__ import annotations

import asyncio
import datetime
import logging
import uuid
from collections.abc import Callable, Coroutine
from ipaddress import IPv4Interface
from pathlib import Path
from typing import Any

from supernode.errors import CouldNotRun
from supernode.lab.bmc.access import Access, hash_password
from supernode.lab.bmc.clock import Clock
from supernode.lab.bmc.faults import Faults
from supernode.lab.bmc.firmware import Updates
from supernode.lab.bmc.hardware import Habits, Kind
from supernode.lab.bmc.media import Media
from supernode.lab.bmc.settings import apply_bios, consume_boot
from supernode.lab.bmc.stale import Stale
from supernode.lab.bmc.state import LOG_KEPT, Account, LogEntry, Store
from supernode.lab.chassis import Chassis, MediaInfo, PostHung

ANSWER_S = 0.2  # for the answer to the reset to leave, before nothing does

log = logging.getLogger(__name__)


class Bmc:
    """A management controller and the Board of its chassis.

    Args:
        folder: where its state and media lie.
        credentials: name and password of the account that a BMC without state gets.
    """

    def __init__(
        self, chassis: Chassis, kind: Kind, folder: Path, credentials: tuple[str, str], habits: Habits | None = None
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.chassis, self.kind, self.folder = chassis, kind, folder
        self.habits = habits or Habits()
        self.store = Store(folder / "bmc.json")
        self.state = self.store.state
        if self.store.fresh:
            self._first_state(*credentials)
        self.access = Access(self.state, self.habits)
        self.faults = Faults(chassis.slot)
        self.clock, self.stale = Clock(self.state, self.faults), Stale(self.faults)
        self.media = Media(self.state, folder, self.faults, self.clock.now)
        self.updates = Updates(self.state, kind, folder, self.later)
        self.uuid = str(uuid.uuid5(uuid.UUID(chassis.identity.uuid), "bmc"))
        self._tasks: set[asyncio.Task[None]] = set()
        self.address: IPv4Interface | None = None  # its own, and its gateway: set by who gives it one
        self.gateway = ""
        self.hearing: Callable[[bool], None] = lambda _: None  # set by who holds the sockets
        self.updates.drop_running()  # those of a former life
        self.store.touch()
        chassis.connect(self)

    def _first_state(self, name: str, password: str) -> None:
        first = Account("1", name, "Administrator", hash_password(password))
        first.change_required = self.habits.password_change
        self.state.accounts = [first]
        self.state.bios = {key: attribute.default for key, attribute in self.kind.bios.items()}
        self.state.firmware = dict(self.kind.firmware)

    # The machine's side: supernode.lab.chassis.Board.

    def alive(self) -> bool:
        """See Board."""
        return self.faults.get("host-dead") is None

    async def post(self) -> MediaInfo | None:
        """See Board."""
        fault = self.faults.get("host-never-boots")
        if fault is not None:
            self.record(f"POST stopped at code {int(fault['code']):#04x}", "Critical")
            await self.store.save()
            raise PostHung(int(fault["code"]))
        stuck = self.faults.get("bmc-pending-forever")
        for name in apply_bios(self.state) if stuck is None or stuck["what"] != "bios" else ():
            self.record(f"BIOS attribute {name} applied")
        for update in self.updates.apply(manager=False):
            self.record(f"Firmware {update} applied")
        self.store.touch()
        media = await self._chosen(consume_boot(self.state.boot))
        await self.store.save()
        return media

    async def _chosen(self, target: str) -> MediaInfo | None:
        """Return the media to boot; as on real firmware, a source that fails leads on to the next: the disk."""
        try:
            if target == "Cd" and self.state.medium is not None:
                return await self.media.read()
            if target == "UefiHttp":
                return await self.media.http_boot(self.state.boot.http_uri)
        except CouldNotRun as failure:
            self.record(f"Boot from {target} failed: {failure}", "Warning")
        return None

    def record(self, message: str, severity: str = "OK") -> None:
        """See Board."""
        self.state.log.append(LogEntry(self.state.next_log_id, self.now(), severity, message))
        self.state.next_log_id += 1
        self.store.touch()
        del self.state.log[:-LOG_KEPT]

    # The operator's side.

    async def power(self, reset_type: str) -> None:
        """Do one ResetType; those that ask the system return at once."""
        chassis = self.chassis
        self.record(f"Power: {reset_type}")
        if reset_type in ("On", "ForceOn"):
            await chassis.power_on()
        elif reset_type in ("ForceOff", "GracefulShutdown"):
            await chassis.power_off(hard=reset_type == "ForceOff")
        elif reset_type == "PowerCycle":
            await chassis.power_off(hard=True)
            await chassis.power_on()
        else:
            await chassis.reset(hard=reset_type == "ForceRestart")

    async def restart(self) -> None:
        """Reset the BMC itself: sessions end, pending BMC firmware holds, nothing answers for a while."""
        self.access.forget()
        self.updates.drop_running()
        for update in self.updates.apply(manager=True):
            self.record(f"Firmware {update} applied")
        self.stale.forget()
        self.clock.restart()
        self.record("BMC reset")
        await asyncio.sleep(ANSWER_S)
        self.hearing(False)
        await asyncio.sleep(self.habits.manager_reset_s)
        self.hearing(True)

    def now(self) -> float:
        """Return the BMC's own time, in seconds since the epoch."""
        return self.clock.now()

    def struck(self, fault: str) -> None:
        """Take a fault that was just injected, where it begins with something."""
        self.clock.notice()
        if fault == "bmc-stale-inventory":
            self.stale.take(self.chassis, self.state.firmware)
        elif fault == "bmc-one-slot":
            self.media.occupy()
        self.store.touch()

    def mended(self) -> None:
        """Take it that faults are gone: the clock is set, the stranger's medium is out, what is read is true."""
        self.clock.notice()
        if "bmc-one-slot" not in self.faults.active:
            self.media.vacate()
        self.store.touch()

    def later(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run something beside or after the answer, and save the state when it is done."""
        task = asyncio.create_task(self._logged(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _logged(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
            self.store.touch()
            await self.store.save()
        except Exception:
            log.exception("%s: background work of the BMC failed", self.chassis.slot)

    async def close(self) -> None:
        """End background work and save."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.store.save()


def timestamp(at: float) -> str:
    """Write seconds since the epoch as Redfish does."""
    return datetime.datetime.fromtimestamp(int(at), datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
