"""One systemd in a cgroup and network namespace of its own, by systemd-nspawn: machines and switches are made of it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from supernode.errors import CouldNotRun
from supernode.lab import cgroups, netspace

REBOOT = 133  # what nspawn exits with when the system inside asked for a reboot
POWEROFF = 0
_ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "SYSTEMD_NSPAWN_API_VFS_WRITABLE": "network",  # else /proc/sys/net is read-only inside
    "SYSTEMD_LOG_LEVEL": "warning",
}
_INTO_GROUP = 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"'
# systemd(1): these start reboot.target and poweroff.target.
_SIGNALS = {"reboot": signal.SIGRTMIN + 5, "poweroff": signal.SIGRTMIN + 4}


@dataclass
class Container:
    """A system that can be run again and again.

    Attributes:
        name: the machine name: its host name until the system on the disk says another.
        root: the mounted disk.
        space: the network namespace, by name.
        binds: `--bind` and `--bind-ro` arguments of nspawn.
        command: pid 1 inside.
        line: takes each line that the system writes to its console.
        readiness: where the socket lies on which nspawn says that init runs.
    """

    name: str
    root: Path
    space: str
    command: Sequence[str]
    line: Callable[[str], None]
    readiness: Path
    binds: Sequence[str] = ()
    uuid: str = ""
    _process: asyncio.subprocess.Process | None = field(default=None, repr=False)

    @property
    def group(self) -> Path:
        """The cgroup that holds the system and its nspawn: killed or frozen as one."""
        return cgroups.INSIDE / "devices" / self.name

    @property
    def running(self) -> bool:
        """Tell whether any process of the system lives."""
        return cgroups.populated(self.group)

    async def run(self, started: Callable[[], None]) -> int:
        """Run the system until it ends and return nspawn's exit status; when cancelled, too, no process is left."""
        self.group.mkdir(parents=True, exist_ok=True)
        try:
            with _Readiness(self.readiness, started):
                self._process = await asyncio.create_subprocess_exec(
                    "/bin/sh", "-c", _INTO_GROUP, "sh", str(self.group), *self._arguments(),
                    stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
                    env={**_ENVIRONMENT, "NOTIFY_SOCKET": str(self.readiness)},
                )  # fmt: skip
                await self._read(self._process)
                return await self._process.wait()
        finally:
            await self._clear()

    def signal(self, ending: str) -> None:
        """Ask the system's init to `reboot` or `poweroff`, as an ACPI event does.

        Raises:
            CouldNotRun: no init is there to hear it.
        """
        pid = self.leader()
        if pid is None:
            raise CouldNotRun(self.name, "has no running system")
        os.kill(pid, _SIGNALS[ending])

    def leader(self) -> int | None:
        """Return the process id of the system's init, in the lab's pid namespace."""
        path = self.group / "payload" / "init.scope" / "cgroup.procs"
        with contextlib.suppress(OSError):
            pids = path.read_text(encoding="ascii").split()
            return int(pids[0]) if pids else None
        return None

    def freeze(self, frozen: bool) -> None:
        """Hang the system, or let it go on; does nothing when it is not running."""
        if self.group.is_dir():
            cgroups.freeze(self.group, frozen)

    def _arguments(self) -> list[str]:
        return [
            "systemd-nspawn",
            "--quiet",
            f"--directory={self.root}",
            f"--machine={self.name}",
            f"--hostname={self.name}",
            f"--network-namespace-path={netspace.FOLDER / self.space}",
            "--capability=CAP_NET_ADMIN",
            "--register=no",
            "--keep-unit",
            "--console=read-only",
            "--resolv-conf=off",
            "--timezone=off",
            "--link-journal=no",
            *([f"--uuid={self.uuid}"] if self.uuid else []),
            *self.binds,
            *self.command,
        ]

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        if process.stdout is None:
            return
        while True:
            try:
                line = await process.stdout.readline()
            except ValueError:  # longer than any line should be; the reader threw it away
                continue
            if not line:
                return
            self.line(line.decode(errors="replace").rstrip("\r\n"))

    async def _clear(self) -> None:
        cgroups.kill(self.group)
        while self.running:  # noqa: ASYNC110 - the kernel gives no event that a loop could wait for
            await asyncio.sleep(0.005)
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                await self._process.wait()
        self._process = None
        cgroups.remove_folders(self.group)


class _Readiness:
    """The datagram socket on which nspawn says READY=1."""

    def __init__(self, path: Path, started: Callable[[], None]) -> None:
        self._path, self._started = path, started
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)

    def __enter__(self) -> _Readiness:
        self._path.unlink(missing_ok=True)
        self._socket.bind(str(self._path))
        asyncio.get_running_loop().add_reader(self._socket, self._read)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()
        self._path.unlink(missing_ok=True)

    def _read(self) -> None:
        with contextlib.suppress(BlockingIOError):
            if b"READY=1" in self._socket.recv(4096).split(b"\n"):
                self._started()
