"""What runs have started and not seen the end of: the records that `engine.guard` keeps, and what they are worth.

A record counts while a process of it lives: on this host, since this boot, with the start time that was written down.
A pid alone may be another process by now, and what another host wrote says nothing here.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from supernode.engine import guard
from supernode.errors import CouldNotRun
from supernode.workspace import EnvironmentFolder

_LOOK_S = 0.3


@dataclass(frozen=True)
class Record:
    """What a guard wrote of the command that it started.

    Attributes:
        what: the command, for a person ("engine of stack lab").
        run: the run's id, or "".
        boot: the id of the host's boot.
        processes: start time by pid: the command, then its guard.
    """

    file: Path
    what: str
    run: str
    host: str
    boot: str
    processes: Mapping[int, str]

    @property
    def here(self) -> bool:
        """Whether it was written on this host."""
        return self.host == socket.gethostname()

    @property
    def alive(self) -> tuple[int, ...]:
        """The pids of it that are still the same processes."""
        if not self.here or self.boot != guard.boot():
            return ()
        return tuple(pid for pid, since in self.processes.items() if since and guard.started(pid) == since)


def place(folder: EnvironmentFolder) -> Path:
    """Return the folder of an environment's records; it is made."""
    made = folder.state / "processes"
    made.mkdir(mode=0o700, exist_ok=True)
    return made


def new(folder: Path) -> Path:
    """Return where the next record is to lie."""
    return folder / f"{secrets.token_hex(6)}.json"


def guarded(command: list[str], record: Path, what: str, *options: str) -> list[str]:
    """Return the command line that runs a command under a guard of this process, with a record.

    Args:
        command: what to run.
        record: where its record lies while it runs.
        what: the command, for a person.
        options: the guard's own.
    """
    own = ["--parent", str(os.getpid()), "--record", str(record), "--told", what, *options]
    return [sys.executable, "-I", "-S", guard.__file__, *own, "--", *command]


def records(folder: Path) -> list[Record]:
    """Read the records in a folder; one that cannot be read is none."""
    found = []
    for file in sorted(folder.glob("*.json")):
        try:
            row = json.loads(file.read_text(encoding="utf-8"))
            processes = {int(pid): str(since) for pid, since in row["processes"].items()}
            found.append(Record(file, row["what"], row["run"], row["host"], row["boot"], processes))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
    return found


def prune(folder: Path) -> None:
    """Remove the records of what is dead on this host; their locks must have been judged before."""
    for record in records(folder):
        if record.here and not record.alive:
            record.file.unlink(missing_ok=True)


def wait(folder: Path, limit_s: float, tell: Callable[[str], None]) -> None:
    """Wait until nothing of an earlier run works any more, and say for what.

    Args:
        folder: the records'.
        limit_s: for all of them together.
        tell: told one line for each that is waited for.

    Raises:
        CouldNotRun: one still works after the limit.
    """
    until, told = time.monotonic() + limit_s, set()
    while working := [record for record in records(folder) if record.alive]:
        for record in working:
            if record.file not in told:
                told.add(record.file)
                tell(f"waiting for the {_name(record)} to end")
        if time.monotonic() > until:
            hint = "look at it with `ps -fp`; `kill -INT` lets it end in order"
            raise CouldNotRun(_name(working[0]), f"still works after {limit_s:.0f} s, its run is dead", hint)
        time.sleep(_LOOK_S)


def _name(record: Record) -> str:
    alive = record.alive or tuple(record.processes)
    return f"{record.what}{f' of run {record.run}' if record.run else ''} (process {alive[0]})"
