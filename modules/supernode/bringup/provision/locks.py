"""Whose lock lies on a stack, and whether its process still lives: only this machine's own are ever judged dead."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from supernode.engine import guard
from supernode.engine.running import Record

_LOCK = re.compile(r"created by (?P<user>\S+?)@(?P<host>\S+) \(pid (?P<pid>\d+)\)(?: at (?P<at>\S+))?")
# A lock is younger than its process, but for the rounding of both times.
_ROUNDED_S = 5.0
ENGINE = "pulumi"


@dataclass(frozen=True)
class Lock:
    """What the engine says of one lock.

    Attributes:
        at: when it was taken, seconds since the epoch; None when that is not said.
    """

    user: str
    host: str
    pid: int
    at: float | None

    def __str__(self) -> str:
        since = f" since {datetime.fromtimestamp(self.at, UTC):%Y-%m-%d %H:%M:%S} UTC" if self.at is not None else ""
        return f"process {self.pid} of {self.user} on {self.host}{since}"


def read(text: str) -> list[Lock]:
    """Read the locks that the engine names when a stack is locked."""
    return [Lock(row["user"], row["host"], int(row["pid"]), _moment(row["at"])) for row in _LOCK.finditer(text)]


def _moment(text: str | None) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp() if text else None
    except ValueError:
        return None


def stale(lock: Lock, records: Sequence[Record], *, shared: bool = False) -> bool:
    """Tell whether the process that took a lock is dead.

    It is where its pid is free; where our own record of it has another boot or start time than the process that has the
    pid now; and where that one began after the lock. What is named like an engine and could have taken the lock counts
    as living: to take the lock of one that works would be far worse than to ask a person. So does, where the state is
    shared over a network, what we have no record of: another machine may have this one's name.

    Args:
        lock: the lock.
        records: of what we have started.
        shared: the state lies elsewhere than on this machine's disk.
    """
    if lock.host != socket.gethostname():
        return False
    own = [record for record in records if record.here and lock.pid in record.processes]
    if any(lock.pid in record.alive for record in own):
        return False
    if shared and not own:
        return False
    if not guard.started(lock.pid):
        return True
    engine = _name(lock.pid) == ENGINE
    if engine and not own:
        return False
    if own and not engine:
        return True
    return lock.at is not None and lock.at < _began(lock.pid) - _ROUNDED_S


def _began(pid: int) -> float:
    """Return when a process began, seconds since the epoch; no process is older than the boot."""
    lines = Path("/proc/stat").read_text(encoding="ascii").splitlines()
    booted = next(float(line.split()[1]) for line in lines if line.startswith("btime "))
    return booted + int(guard.started(pid) or 0) / os.sysconf("SC_CLK_TCK")


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
    except OSError:
        return ""
