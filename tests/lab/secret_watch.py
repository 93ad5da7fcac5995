"""Watches what every process on the machine shows of itself, and searches files, for secrets that must be in neither.

A sample reads /proc/*/environ and /proc/*/cmdline of all processes. What was read is kept, each distinct text once, and
searched afterwards: a token that was only made during the run is looked for from the first sample on.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from supernode.clients.needles import needles

EVERY_S = 0.05
SHOWN = ("environ", "cmdline")
_CHUNK = 8 << 20


@dataclass
class Watch:
    """Samples from `with` to its end; `longest_s` is the longest that two samples lay apart, `seconds` all the time."""

    samples: int = 0
    longest_s: float = 0.0
    seconds: float = 0.0
    seen: dict[bytes, str] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _begun: float = 0.0

    def __enter__(self) -> Watch:
        self._begun = time.monotonic()
        self._thread = threading.Thread(target=self._watch, name="secret-watch", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        ended = time.monotonic()
        self._stop.set()
        self._thread.join()
        self.seconds = ended - self._begun

    def _watch(self) -> None:
        last = due = time.monotonic()
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            self.longest_s, last = max(self.longest_s, time.monotonic() - last), time.monotonic()
            self.sample()
            self.samples += 1
            due = max(due + EVERY_S, time.monotonic())

    def sample(self) -> None:
        for entry in os.listdir("/proc"):  # noqa: PTH208 - twenty times a second
            if entry.isdigit():
                for what in SHOWN:
                    text = _read(f"/proc/{entry}/{what}")
                    if text and text not in self.seen:
                        self.seen[text] = f"{what} of process {entry} ({_read(f'/proc/{entry}/comm').decode().strip()})"

    def starved(self) -> str:
        """Say how many samples there were of how many, where that is less than a third: finding nothing proves nothing.

        That bounds the watch, not what is watched.
        """
        ideal = int(self.seconds / EVERY_S)
        enough = self.samples > 0 and 3 * self.samples >= ideal
        return "" if enough else f"{self.samples} samples in {self.seconds:.1f} s, which takes {ideal}"

    def found(self, secrets: Mapping[str, str]) -> list[str]:
        """Name the secrets that a process showed, and where; never the secret."""
        return [
            f"{name} in {where}"
            for name, secret in secrets.items()
            for text, where in self.seen.items()
            if any(needle in text for needle in needles(secret))
        ]


def _read(path: str) -> bytes:
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        parts = []
        while chunk := os.read(handle, 1 << 20):
            parts.append(chunk)
        return b"".join(parts)
    except OSError:  # it ended while it was read
        return b""
    finally:
        os.close(handle)


def files(*roots: Path) -> Iterator[Path]:
    """Every file under some folders; a link is not followed: what it names is searched where it lies."""
    for root in roots:
        for folder, _, names in os.walk(root):
            yield from (path for name in names if (path := Path(folder, name)).is_file() and not path.is_symlink())


def holders(paths: Iterable[Path], secrets: Mapping[str, str]) -> list[tuple[str, Path]]:
    """Name each secret that a file holds, with the file; a text that many files have is searched once."""
    forms = {name: needles(secret) for name, secret in secrets.items()}
    longest = max((len(form) for all_forms in forms.values() for form in all_forms), default=1)
    found: list[tuple[str, Path]] = []
    searched: dict[bytes, set[str]] = {}
    for path in _with_any(paths, [form for each in forms.values() for form in each]):
        names: set[str] = set()
        with path.open("rb") as stream:
            tail = b""
            while chunk := stream.read(_CHUNK):
                text = tail + chunk
                digest = hashlib.sha256(text).digest()
                if digest not in searched:
                    searched[digest] = {n for n, each in forms.items() if any(form in text for form in each)}
                names |= searched[digest]
                tail = text[-longest:]
        found += [(name, path) for name in sorted(names)]
    return found


def _with_any(paths: Iterable[Path], forms: Iterable[bytes]) -> list[Path]:
    """Return the files that hold any of the texts, by grep: the disks of ten hosts are too much for one `in` each."""
    patterns = b"\n".join(forms)
    if not patterns:
        return []
    held = os.memfd_create("needles")  # in no file that the search itself would find
    try:
        os.write(held, patterns)
        done = subprocess.run(
            ["xargs", "-0", "-r", "grep", "-lZaF", f"--file=/proc/self/fd/{held}", "--"],
            input=b"\0".join(os.fsencode(path) for path in paths),
            capture_output=True,
            pass_fds=(held,),
            env={**os.environ, "LC_ALL": "C"},
            check=False,
        )
    finally:
        os.close(held)
    # 123 is that of a share that held nothing, and of one that could not be read: that one says so.
    assert done.stderr == b"", done.stderr.decode()[-500:]
    assert done.returncode in (0, 123)
    return [Path(os.fsdecode(name)) for name in done.stdout.split(b"\0") if name]
