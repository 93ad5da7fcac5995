"""What can be wrong with a BMC or its machine, by name; each is looked up where it bites."""

from __future__ import annotations

import asyncio
import ctypes
import random
import socket
import struct
from collections.abc import Mapping
from typing import Any

from supernode.errors import CouldNotRun
from supernode.lab.bmc.kinds import KINDS, FaultKind

__all__ = ["KINDS", "FaultKind", "Faults", "deafen", "restore"]

SO_ATTACH_FILTER, SO_DETACH_FILTER = 26, 27


class Faults:
    """The faults of one BMC.

    Args:
        slot: named in errors, and the seed of the rates, so that a run can be repeated.
    """

    def __init__(self, slot: str) -> None:
        self._slot = slot
        self._active: dict[str, dict[str, Any]] = {}
        self._strikes: dict[str, int] = {}
        self._random = random.Random(slot)  # noqa: S311 - a rate, no secret
        self._awake = asyncio.Event()
        self._awake.set()

    @property
    def active(self) -> Mapping[str, Mapping[str, Any]]:
        """What is injected at present."""
        return self._active

    def set(self, name: str, **arguments: Any) -> None:
        """Inject a fault, or give it other arguments.

        Raises:
            CouldNotRun: no such fault or argument, or a value of another type.
        """
        kind = KINDS.get(name)
        if kind is None:
            raise CouldNotRun(self._slot, f"no fault {name!r}", f"known: {', '.join(KINDS)}")
        for key, value in arguments.items():
            wrong = _wrong(kind, key, value)
            if wrong:
                raise CouldNotRun(self._slot, f"fault {name} cannot take {key}={value!r}", wrong)
        self._active[name] = {**kind.arguments, **arguments}
        self._strikes.pop(name, None)
        self._note()

    def clear(self, name: str | None = None) -> None:
        """Take a fault away, or all."""
        for each in [name] if name is not None else list(self._active):
            self._active.pop(each, None)
        self._note()

    def get(self, name: str) -> Mapping[str, Any] | None:
        """Return a fault's arguments when it is injected and, where it has a rate, strikes this time."""
        arguments = self._active.get(name)
        if arguments is None or self._random.random() >= arguments.get("rate", 1.0):
            return None
        return arguments

    def strikes(self, name: str, request: str) -> Mapping[str, Any] | None:
        """Return a fault's arguments when it is about this request and not over yet; that is one of its times."""
        arguments = self._active.get(name)
        if arguments is None or arguments["request"] not in (request, "any"):
            return None
        done, times = self._strikes.get(name, 0), arguments["times"]
        if times and done >= times:
            return None
        self._strikes[name] = done + 1
        return arguments

    @property
    def dead(self) -> bool:
        """Whether no packet is to be answered."""
        return "bmc-dead" in self._active

    async def wait_alive(self) -> None:
        """Return at once, or when the BMC is no longer dead."""
        await self._awake.wait()

    def release(self) -> None:
        """Let waiting requests go on, for the BMC is being shut down."""
        self._awake.set()

    def _note(self) -> None:
        if self.dead:
            self._awake.clear()
        else:
            self._awake.set()


def _wrong(kind: FaultKind, key: str, value: Any) -> str:
    """Return what an argument should have been, or nothing when it is right."""
    default = kind.arguments.get(key)
    if key in kind.choices:
        return "" if value in kind.choices[key] else f"{key} is one of {', '.join(kind.choices[key])}"
    if default is None or isinstance(value, bool) or not isinstance(value, int | float):
        return "its arguments: " + (", ".join(f"{k}={v}" for k, v in kind.arguments.items()) or "none")
    if key == "rate" and not 0 <= value <= 1:
        return "a rate lies between 0 and 1"
    return "" if value >= 0 else "not negative"


def deafen(sock: socket.socket) -> None:
    """Make the kernel drop every packet for this socket.

    A closed port would answer with a reset; on a listening socket even the first packet of a connection is dropped, so
    that the other side sees what a dead BMC gives: nothing.
    """
    drop_all = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))  # one instruction: return 0 bytes
    sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("@HP", 1, ctypes.addressof(drop_all)))


def restore(sock: socket.socket) -> None:
    """Let the socket hear again."""
    sock.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, 0)
