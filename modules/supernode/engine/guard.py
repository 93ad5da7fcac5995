"""Runs one command for supernode, ends it when supernode dies, and leaves no process of it behind.

    python guard.py [--parent PID] [--record FILE] [--told TEXT] [--grace S] [--patience S] [--scratch DIR] -- COMMAND…

Whoever starts it may be killed outright; the command is then interrupted once, as by Ctrl-C. The kernel's parent-death
signal is no use for that: a process with threads that is killed dies thread by thread, each death may send the signal
anew, and the engine takes a second interrupt as an order to drop what it is doing. This process has one thread, so for
its own death the signal is right.

Started as a file, without site packages: it imports nothing of supernode, and starts in a few milliseconds.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

LOOK_S = 0.5
_SET_DEATH_SIGNAL, _SET_SUBREAPER = 1, 36  # of prctl(2)
_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_HEARD = {*_STOPS, signal.SIGCHLD}
_KILLED_S = 5.0


def started(pid: int) -> str:
    """Return a process's start time in clock ticks since boot, or "" when it is gone or a zombie."""
    fields = _stat(pid)
    return "" if not fields or fields[0] in "ZX" else fields[19]


def boot() -> str:
    """Return the id of this machine's boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/<pid>/stat from the state on; empty when there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def descendants(root: int) -> set[int]:
    """Return the living processes below one, however far."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        fields = _stat(int(entry.name))
        if fields and fields[0] not in "ZX":
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found: set[int] = set()
    todo = [root]
    while todo:
        new = [pid for pid in children.get(todo.pop(), ()) if pid not in found]
        found.update(new)
        todo += new
    return found


class Guard:
    """One command, from its start to the end of the last process that it left.

    Args:
        command: what to run.
        parent: whose death ends it.
        grace_s: after the first interrupt the command gets this long before it is killed; None: as long as it takes.
        patience_s: what the command leaves behind may take this long to end by itself.
    """

    def __init__(self, command: list[str], parent: int, grace_s: float | None, patience_s: float) -> None:
        self._parent = parent
        self._grace_s, self._patience_s = grace_s, patience_s
        self._until: float | None = None
        self._code: int | None = None
        _prctl(_SET_SUBREAPER, 1)  # what loses its parent becomes ours, and is found below us
        signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)
        # Kept, and never asked: a Popen that is dropped or polled takes the exit status that `_reap` waits for.
        self._process = subprocess.Popen(command, preexec_fn=_in_child)
        self.pid = self._process.pid

    def run(self) -> int:
        """Wait for the end and return the command's exit code, 128 + the signal that ended it."""
        while self._code is None:
            heard = signal.sigtimedwait(_HEARD, LOOK_S)
            told = heard is not None and heard.si_signo in _STOPS
            if told or (self._until is None and os.getppid() != self._parent):
                self._stop()
            if self._until is not None and time.monotonic() > self._until:
                self._signal(self.pid, signal.SIGKILL)
            self._reap()
        self._sweep()
        return self._code

    def _stop(self) -> None:
        """Interrupt the command; a second time, where it has a grace, kill it."""
        first = self._until is None
        grace = float("inf") if self._grace_s is None else self._grace_s
        self._until = time.monotonic() + (grace if first else 0 if self._grace_s is not None else grace)
        self._signal(self.pid, signal.SIGINT)

    def _reap(self) -> None:
        """Take note of every child that ended: ours, and those that lost their parents."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self._code = 1 if self._code is None else self._code
                return
            if pid == 0:
                return
            if pid == self.pid:
                code = os.waitstatus_to_exitcode(status)
                self._code = code if code >= 0 else 128 - code

    def _sweep(self) -> None:
        """End what the command left: first by itself, then by SIGTERM, then by SIGKILL."""
        for number, seconds in ((0, self._patience_s), (signal.SIGTERM, _KILLED_S), (signal.SIGKILL, _KILLED_S)):
            until = time.monotonic() + seconds
            while left := descendants(os.getpid()):
                for pid in left if number else ():
                    self._signal(pid, number)
                if time.monotonic() > until:
                    break
                signal.sigtimedwait({signal.SIGCHLD}, 0.1)
                self._reap()
            if not left:
                return

    @staticmethod
    def _signal(pid: int, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _in_child() -> None:
    """Before the command starts: it hears signals again, and our own death, which leaves it nobody, interrupts it.

    Started in the background, a shell has us ignore the interrupt, and what is ignored is inherited.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HEARD)
    _prctl(_SET_DEATH_SIGNAL, signal.SIGINT)


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


@contextlib.contextmanager
def recorded(file: Path | None, what: str, pid: int) -> Iterator[None]:
    """Keep a record of the command while it works: `supernode.engine.running` reads it."""
    if file is None:
        yield
        return
    row = {
        "what": what,
        "run": os.environ.get("SUPERNODE_RUN", ""),
        "host": socket.gethostname(),
        "boot": boot(),
        "since": time.time(),
        "processes": {str(number): started(number) for number in (pid, os.getpid())},
    }
    partial = file.with_suffix(".new")
    partial.write_text(json.dumps(row), encoding="utf-8")
    partial.replace(file)
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


def main() -> int:
    """Run the command to its end and return its exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--parent", type=int, default=os.getppid())
    parser.add_argument("--record", type=Path)
    parser.add_argument("--told", default="")
    parser.add_argument("--scratch", type=Path)
    parser.add_argument("--grace", type=float)
    parser.add_argument("--patience", type=float, default=12.0)
    parser.add_argument("command", nargs="+")
    asked = parser.parse_args()
    guard = Guard(asked.command, asked.parent, asked.grace, asked.patience)
    with recorded(asked.record, asked.told, guard.pid):
        code = guard.run()
        if asked.scratch is not None and os.getppid() != asked.parent:
            shutil.rmtree(asked.scratch, ignore_errors=True)  # whoever would have is dead
        return code


if __name__ == "__main__":
    sys.exit(main())
