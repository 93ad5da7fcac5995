"""A machine's own kernel log: a pipe in the place of /dev/kmsg, so that a message shows in that machine alone."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from pathlib import Path

from supernode.errors import CouldNotRun


class KernelLog:
    """The kernel's side of one machine's /dev/kmsg.

    Args:
        path: where the pipe lies.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._sequence = 0
        self._handle: int | None = None

    def open(self) -> None:
        """Make the pipe anew; a kernel's log does not outlive its boot."""
        self.close()
        self.path.unlink(missing_ok=True)
        os.mkfifo(self.path, 0o600)
        self._handle = os.open(self.path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        # Packet mode (pipe(2)): each write is one read, as each record of /dev/kmsg is.
        fcntl.fcntl(self._handle, fcntl.F_SETFL, os.O_NONBLOCK | os.O_DIRECT)

    def close(self) -> None:
        """Let go of the pipe."""
        if self._handle is not None:
            with contextlib.suppress(OSError):
                os.close(self._handle)
        self._handle = None

    def write(self, text: str, level: int = 3) -> None:
        """Add a record, such as a driver's `NVRM: Xid` line.

        Args:
            text: one line.
            level: as syslog's; 3 is error, 4 warning.

        Raises:
            CouldNotRun: the machine is off, or its log is full because nobody reads it.
        """
        if self._handle is None:
            raise CouldNotRun(str(self.path), "has no kernel: the machine is off")
        record = f"{level},{self._sequence},{int(time.monotonic() * 1e6)},-;{text}\n"
        try:
            os.write(self._handle, record.encode())
        except BlockingIOError as error:
            raise CouldNotRun(str(self.path), "is full: nobody reads it") from error
        self._sequence += 1
