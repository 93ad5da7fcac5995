"""Where engines are kept: `<cache>/engine/<version>/bin/`, whole or not at all, made by one run at a time."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from supernode.errors import CouldNotRun

FILES = ("pulumi", "pulumi-language-python", "pulumi-language-python-exec")


def root() -> Path:
    """Return the cache: SUPERNODE_CACHE, else supernode's folder in the user's cache."""
    named = os.environ.get("SUPERNODE_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "supernode"


def folder(version: str) -> Path:
    """Return the folder of an engine of this version, there or not."""
    return root() / "engine" / version


def placed(version: str) -> Path | None:
    """Return the `pulumi` of a complete engine in the cache, else None."""
    place = folder(version) / "bin"
    return place / "pulumi" if all((place / name).is_file() for name in FILES) else None


@contextmanager
def locked(version: str, progress: Callable[[str], None]) -> Iterator[None]:
    """Hold the right to make this version; the lock ends with the process, however it ends."""
    base = folder(version).parent
    base.mkdir(parents=True, exist_ok=True)
    with (base / f".{version}.lock").open("a+", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            progress(f"process {lock.read().strip() or '?'} is getting the engine; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield


def place(version: str, fill: Callable[[Path], None]) -> Path:
    """Make an engine: `fill` puts the files into an empty folder, which then takes its name in one step.

    Call it with the lock held: what a killed run left is removed first.

    Returns:
        The `pulumi` program.
    """
    target = folder(version)
    for leftover in target.parent.glob(f".{version}.making-*"):
        shutil.rmtree(leftover)
    making = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{version}.making-"))
    try:
        making.chmod(0o755)
        (making / "bin").mkdir()
        fill(making / "bin")
        missing = [name for name in FILES if not (making / "bin" / name).is_file()]
        if missing:
            raise CouldNotRun(str(making), f"the engine lacks {', '.join(missing)}")
        if target.exists():  # an incomplete one: `placed` said no
            shutil.rmtree(target)
        making.rename(target)
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return target / "bin" / "pulumi"
