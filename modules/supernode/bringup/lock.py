"""One at a time for each environment; the lock says who holds it, and goes with its process.

Taken by whatever runs stages, writes documents or writes state: bringup, verify (two that measure at once measure each
other), plan --live, destroy, allocate, assign, quarantine, drain, release, lab up. No process that a holder starts
inherits it.
"""

from __future__ import annotations

import fcntl
import getpass
import json
import os
import shlex
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from supernode import workspace
from supernode.engine import running
from supernode.errors import CouldNotRun
from supernode.workspace import EnvironmentFolder

LIMIT_S = 3600.0
_CLOCK_S = 1.0  # the file system's clock may lag behind


@contextmanager
def held(folder: EnvironmentFolder, verb: str) -> Iterator[None]:
    """Hold an environment for as long as the context lasts; the kernel lets it go when the process dies.

    Args:
        folder: the environment.
        verb: what is done with it, for whom is refused meanwhile.

    What root writes meanwhile is given to whoever keeps the environment.

    Raises:
        CouldNotRun: another process holds it; says who, since when and for what. Or it is not ours to write in.
    """
    since = time.time() - _CLOCK_S
    with _opened(folder) as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _refusal(folder, Path(stream.name)) from None
        stream.truncate(0)
        stream.write(json.dumps(_holder(verb)) + "\n")
        stream.flush()
        try:
            yield
        finally:
            workspace.hand_over(folder, since)


def _opened(folder: EnvironmentFolder) -> TextIO:
    """Open the lock's file; made where there is none."""
    try:
        return (folder.state / "run.lock").open("a+", encoding="utf-8")
    except PermissionError as error:
        places = [folder.root / ".supernode", folder.root / "runs", folder.folder]
        theirs = shlex.join(str(place) for place in places if place.exists())
        hint = f"a run as another user left it, which was cut: sudo chown -R {os.getuid()}:{os.getgid()} {theirs}"
        raise CouldNotRun(str(error.filename), "belongs to another user", hint) from None


@contextmanager
def occupied(
    folder: EnvironmentFolder, verb: str, tell: Callable[[str], None], limit_s: float = LIMIT_S
) -> Iterator[None]:
    """Hold an environment, and wait for what a killed run left working: its engine ends in order, without it.

    Args:
        folder: the environment.
        verb: what is done with it.
        tell: told what is waited for.
        limit_s: how long at most.

    Raises:
        CouldNotRun: another process holds it, or an engine does not end in that time.
    """
    with held(folder, verb):
        running.wait(running.place(folder), limit_s, tell)
        yield


def _holder(verb: str) -> dict[str, Any]:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # an account without a name
        user = str(os.getuid())
    return {"user": user, "host": socket.gethostname(), "pid": os.getpid(), "verb": verb, "since": time.time()}


def _refusal(folder: EnvironmentFolder, path: Path) -> CouldNotRun:
    try:
        row = json.loads(path.read_text(encoding="utf-8"))
        since = datetime.fromtimestamp(row["since"], UTC)
        what = f"`supernode {row['verb']}`, process {row['pid']}, since {since:%H:%M:%S} UTC"
        who = f"{row['user']} on {row['host']} ({what})"
    except (ValueError, KeyError, TypeError):  # between taking it and writing the name
        who = "another process"
    hint = f"wait for its end; `supernode runs {folder.name}` shows the runs"
    return CouldNotRun(f"environment {folder.name}", f"is being worked on by {who}", hint)
