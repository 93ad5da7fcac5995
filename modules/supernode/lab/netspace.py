"""Network namespaces by name: commands in batches, settings, and a watch on their links."""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from supernode.errors import CouldNotRun

FOLDER = Path("/run/netns")
CLONE_NEWNET = 0x40000000
NETLINK_ROUTE, RTMGRP_LINK, RTM_NEWLINK, IFLA_IFNAME = 0, 1, 16, 3

Result = TypeVar("Result")


def within(space: str, work: Callable[[], Result]) -> Result:
    """Do a piece of work inside a namespace, in a thread of its own: a namespace is a thread's, and ours must not move.

    Raises:
        CouldNotRun: there is no such namespace.
    """
    outcome: list[Any] = []

    def enter() -> None:
        try:
            handle = os.open(FOLDER / space, os.O_RDONLY | os.O_CLOEXEC)
            try:
                if ctypes.CDLL(None, use_errno=True).setns(handle, CLONE_NEWNET) != 0:
                    raise OSError(ctypes.get_errno(), "setns")
            finally:
                os.close(handle)
            outcome.extend((True, work()))
        except Exception as error:
            outcome.extend((False, error))

    thread = threading.Thread(target=enter, name=f"in {space}")
    thread.start()
    thread.join()
    if not outcome[0] and not isinstance(outcome[1], OSError):
        raise outcome[1]
    if not outcome[0]:
        raise CouldNotRun(space, f"cannot be entered ({outcome[1]})")
    result: Result = outcome[1]
    return result


def set_sysctls(space: str, values: Mapping[str, str]) -> None:
    """Write settings below /proc/sys/net of a namespace."""

    def write() -> None:
        for name, value in values.items():
            Path("/proc/sys/net", name).write_text(value, encoding="ascii")

    within(space, write)


def batch(lines: Iterable[str], space: str | None = None, program: str = "ip") -> None:
    """Give many commands to one `ip` or `tc`; the first that fails ends it.

    Raises:
        CouldNotRun: with the command that failed and what the kernel said.
    """
    commands = [line for line in lines if line]
    if not commands:
        return
    where = ["-n", space] if space else []
    done = subprocess.run(
        [program, *where, "-batch", "-"], input="\n".join(commands) + "\n", text=True, capture_output=True, check=False
    )
    if done.returncode != 0:
        raise CouldNotRun(f"{program} {space or ''}".strip(), _blame(commands, done.stderr))


def _blame(commands: list[str], stderr: str) -> str:
    lines = stderr.strip().splitlines()
    number = next((line.rsplit(":", 1)[1] for line in lines if line.startswith("Command failed")), "")
    command = commands[int(number) - 1] if number.isdigit() and int(number) <= len(commands) else commands[0]
    return f"{command!r} failed: {' '.join(lines[:2])}"


def link_names(space: str) -> dict[int, str]:
    """Return the present names of a namespace's links by index; the index stays when a link is renamed."""
    return dict(within(space, lambda: [(index, name) for index, name in socket.if_nameindex()]))


def other_names(space: str) -> dict[str, list[str]]:
    """Return the alternative names of a namespace's links, by name."""
    shown = subprocess.run(["ip", "-n", space, "-json", "link"], capture_output=True, text=True, check=True).stdout
    return {link["ifname"]: link.get("altnames", []) for link in json.loads(shown)}


class LinkWatch:
    """Tells when a link of a namespace gets another name.

    Args:
        renamed: called in the event loop with index and name, for each link that is made or changed.
    """

    def __init__(self, space: str, renamed: Callable[[int, str], None]) -> None:
        self._renamed = renamed
        self._socket = within(space, _link_socket)
        asyncio.get_running_loop().add_reader(self._socket, self._read)

    def close(self) -> None:
        """Stop watching."""
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()

    def _read(self) -> None:
        try:
            data = self._socket.recv(65536)
        except OSError:  # the kernel dropped messages; the next one tells the present name
            return
        for index, name in link_messages(data):
            self._renamed(index, name)


def _link_socket() -> socket.socket:
    watch = socket.socket(
        socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK, NETLINK_ROUTE
    )
    watch.bind((0, RTMGRP_LINK))
    return watch


def link_messages(data: bytes) -> Iterable[tuple[int, str]]:
    """Read (index, name) of each RTM_NEWLINK in one netlink datagram."""
    at = 0
    while at + 16 <= len(data):
        length, kind = struct.unpack_from("=IH", data, at)
        if length < 16:
            return
        if kind == RTM_NEWLINK:
            (index,) = struct.unpack_from("=i", data, at + 20)
            name = _attribute(data[at + 32 : at + length], IFLA_IFNAME)
            if name:
                yield index, name
        at += (length + 3) & ~3


def _attribute(data: bytes, wanted: int) -> str:
    at = 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, at)
        if length < 4:
            break
        if kind & 0x3FFF == wanted:
            return data[at + 4 : at + length].split(b"\0", 1)[0].decode()
        at += (length + 3) & ~3
    return ""
