"""What a machine wrote to its serial port: the last lines in memory, all of them in a file."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from pathlib import Path

KEPT = 1000


class Console:
    """The serial console of one machine.

    Args:
        path: the file that takes every line; its tail is read back, so that lines outlive the daemon. None: no file.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._lines: deque[str] = deque(maxlen=KEPT)
        if path is not None and path.is_file():
            self._lines.extend(path.read_text(encoding="utf-8", errors="replace").splitlines()[-KEPT:])

    def write(self, line: str) -> None:
        """Add one line, without its end."""
        self._lines.append(line)
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as stream:
                stream.write(line + "\n")

    def tail(self, lines: int) -> Sequence[str]:
        """Return the last lines, oldest first."""
        return list(self._lines)[-lines:] if lines > 0 else []
