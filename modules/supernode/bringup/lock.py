"""One run at a time for each environment; the lock says who holds it, and goes with its process."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from supernode.errors import CouldNotRun


@contextmanager
def held(path: Path, what: str) -> Iterator[None]:
    """Hold the lock file for as long as the context lasts; the kernel lets it go when the process dies.

    Args:
        path: the lock file; made when missing, and left in place.
        what: what is locked, for the message.

    Raises:
        CouldNotRun: another process holds it; names that process.
    """
    with path.open("a+", encoding="utf-8") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            stream.seek(0)
            holder = stream.read().strip() or "another process"
            raise CouldNotRun(what, f"is being worked on by {holder}", "wait for that run to end") from None
        stream.truncate(0)
        stream.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        stream.flush()
        yield
