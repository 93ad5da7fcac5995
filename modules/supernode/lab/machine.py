r"""A simulated server: power, POST, and what it boots, over works that the lab provides.

off --power on--> POST --media--> deploy step --ends--> POST --disk--> system --reboot--> POST
                    \--hung, or nothing to boot--> stays until power is cut or it is reset
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from supernode.errors import SupernodeError
from supernode.lab.chassis import Board, Identity, MediaInfo, Port, PostCode, PostHung, Power, Progress
from supernode.lab.console import Console

log = logging.getLogger(__name__)

# The codes are AMI's (Aptio V status codes): SEC, memory, PCI, boot device selection, ready to boot.
POST_STEPS = ((0x01, Progress.PROCESSOR), (0x32, Progress.MEMORY), (0x92, Progress.PCI))
READY_CODE, BOOT_CODE = 0xA0, 0xAD
CODES_KEPT = 200


class Ending(StrEnum):
    """How a system ended by itself."""

    REBOOT = "reboot"
    POWEROFF = "poweroff"


class Works(Protocol):
    """What the lab does for one machine."""

    def installed(self) -> bool:
        """Tell whether the disk holds a system."""

    async def run(self, running: Callable[[], None]) -> Ending:
        """Run the system from the disk until it ends; call `running` when its init has started.

        When cancelled, leave no process behind.
        """

    async def ask(self, ending: Ending) -> None:
        """Ask the running system to reboot or power off, as the power button does; `run` then returns."""

    async def deploy(self, media: MediaInfo) -> None:
        """Do what the media's deploy step does; it ends in a reboot.

        Raises:
            SupernodeError: the step failed; the machine stays on with the reason on its console.
        """


@dataclass
class Machine:
    """A Chassis over the lab's works.

    Attributes:
        post_s: how long one POST takes.
    """

    slot: str
    kind: str
    identity: Identity
    ports: Sequence[Port]
    works: Works
    console: Console = field(default_factory=Console)
    post_s: float = 0.2
    _board: Board | None = None
    _power: Power = Power.OFF
    _progress: Progress = Progress.NONE
    _codes: deque[PostCode] = field(default_factory=lambda: deque(maxlen=CODES_KEPT))
    _boots: int = 0
    _life: asyncio.Task[None] | None = None
    _system: bool = False
    _gate: asyncio.Lock = field(default_factory=asyncio.Lock)

    def connect(self, board: Board) -> None:
        """See Chassis."""
        self._board = board

    async def power_on(self) -> None:
        """See Chassis."""
        async with self._gate:
            if self._life is None or self._life.done():
                self._start()

    async def power_off(self, hard: bool) -> None:
        """See Chassis."""
        async with self._gate:
            if hard or not self._busy():
                await self._cut()
            elif self._system:
                self._power = Power.POWERING_OFF
                await self.works.ask(Ending.POWEROFF)

    async def reset(self, hard: bool) -> None:
        """See Chassis."""
        async with self._gate:
            if self._life is None or self._life.done():
                return
            if hard or not self._busy():
                await self._cut()
                self._start()
            elif self._system:
                await self.works.ask(Ending.REBOOT)

    def power_state(self) -> Power:
        """See Chassis."""
        return self._power

    def boot_progress(self) -> Progress:
        """See Chassis."""
        return self._progress

    def post_codes(self) -> Sequence[PostCode]:
        """See Chassis."""
        return tuple(self._codes)

    def console_tail(self, lines: int) -> Sequence[str]:
        """See Chassis."""
        return self.console.tail(lines)

    def _busy(self) -> bool:
        """Whether the power button is left to a system: the deploy step, which is one, does not listen to it."""
        return self._progress in (Progress.BOOT_STARTED, Progress.RUNNING)

    def _start(self) -> None:
        self._power = Power.ON
        self._life = asyncio.create_task(self._live(), name=f"machine {self.slot}")

    async def _cut(self) -> None:
        if self._life is not None:
            self._life.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._life
        self._down()

    def _down(self) -> None:
        self._life, self._system = None, False
        self._power, self._progress = Power.OFF, Progress.NONE

    async def _live(self) -> None:
        """Go round until the system powers itself off; a hang ends only by cancellation."""
        ending = Ending.REBOOT
        while ending is Ending.REBOOT:
            try:
                ending = await self._boot(await self._post())
            except PostHung as hung:
                self._code(hung.code)
                await self._hang(f"POST stopped at code {hung.code:#04x}")
            except SupernodeError as failure:
                await self._hang(f"stopped: {failure}")
            except Exception:
                log.exception("%s: the simulated machine failed", self.slot)
                await self._hang("stopped: a defect of the lab, see its log")
            finally:
                self._system = False
        self._down()

    async def _post(self) -> MediaInfo | None:
        if self._board is None:
            raise RuntimeError(f"{self.slot}: no BMC is connected")
        if not self._board.alive():
            self._progress = Progress.NONE
            await asyncio.Event().wait()
        self._boots += 1
        self.console.write(f"--- power-on self-test, boot {self._boots} ---")
        for code, progress in POST_STEPS:
            self._code(code)
            self._progress = progress
            await asyncio.sleep(self.post_s / len(POST_STEPS))
        media = await self._board.post()
        self._code(READY_CODE)
        self._progress = Progress.READY
        return media

    async def _boot(self, media: MediaInfo | None) -> Ending:
        if media is None and not self.works.installed():
            self._progress = Progress.SETUP
            await self._hang("no bootable device: the disk is empty and no media is chosen")
        self._code(BOOT_CODE)
        self._progress = Progress.BOOT_STARTED
        if media is None:
            self._system = True
            return await self.works.run(self._running)
        self._progress = Progress.RUNNING  # the deploy step is a running system, too
        await self.works.deploy(media)
        return Ending.REBOOT

    def _running(self) -> None:
        self._progress = Progress.RUNNING

    async def _hang(self, reason: str) -> None:
        self.console.write(reason)
        await asyncio.Event().wait()

    def _code(self, code: int) -> None:
        self._codes.append(PostCode(self._boots, time.time(), code))
