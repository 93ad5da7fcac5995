"""Built things, kept by the digest of what they were built from.

<cache>/<kind>/<inputs digest>/     whole or absent: built beside it, renamed in one step
<cache>/<kind>/<inputs digest>.lock held while it is built, so that two runs build once
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

Progress = Callable[[str], None]

_CHUNK = 1 << 20


def silent(_line: str) -> None:
    """Take a progress line and drop it."""


def default() -> Path:
    """Return SUPERNODE_CACHE, else ~/.cache/supernode."""
    named = os.environ.get("SUPERNODE_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "supernode"


def digest_of(parts: dict[str, bytes]) -> str:
    """Return one SHA-256 (hex) over named inputs; order does not matter, names and lengths do."""
    total = hashlib.sha256()
    for name in sorted(parts):
        total.update(f"{name}\0{len(parts[name])}\0".encode())
        total.update(parts[name])
    return total.hexdigest()


def file_digest(path: Path) -> str:
    """Return the SHA-256 (hex) of a file."""
    total = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            total.update(chunk)
    return total.hexdigest()


@contextmanager
def lock(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a file; the kernel drops it with the process, so a kill leaves none behind."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def place(cache: Path, kind: str, digest: str, build: Callable[[Path], None]) -> Path:
    """Return <cache>/<kind>/<digest>, calling `build(folder)` first when it is not there yet.

    `build` fills an empty folder on the same file system; it is renamed into place when build returns and removed when
    it raises.
    """
    wanted = cache / kind / digest
    if wanted.is_dir():
        return wanted
    with lock(cache / kind / f"{digest}.lock"):
        if wanted.is_dir():
            return wanted
        _clear_remains(cache / kind, digest)
        work = Path(tempfile.mkdtemp(dir=cache / kind, prefix=f".{digest[:12]}."))
        try:
            work.chmod(0o755)
            build(work)
            work.rename(wanted)
        except BaseException:
            shutil.rmtree(work, ignore_errors=True)
            raise
    return wanted


def _clear_remains(folder: Path, digest: str) -> None:
    """Remove what a killed build of the same thing left; its lock is ours now, so nobody uses it."""
    for remains in folder.glob(f".{digest[:12]}.*"):
        shutil.rmtree(remains, ignore_errors=True)
