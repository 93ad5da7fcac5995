"""How Ansible is ended: by its guard, in order, when a person says so or its time is over; hard, when told twice.

ansible-runner's own way is SIGKILL for the process group, which its workers are not in. It asks `Ending` each second
whether to do so, and the answer is always no: the guard has been told, and what the playbook says is still read.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from supernode.engine import running

GRACE_S = 20
GUARD = ("--grace", str(GRACE_S), "--patience", "3")
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_TWICE = 2


class Ending:
    """Hears the signals of one run of Ansible, watches its time, and tells its guard.

    Attributes:
        asked: how often a person said stop.
        over: its time is over.

    Args:
        record: where the guard's record lies while it works.
        limit_s: the time; None for any.
    """

    def __init__(self, record: Path, limit_s: float | None) -> None:
        self.asked, self.over = 0, False
        self._record, self._told = record, 0
        self._until = None if limit_s is None else time.monotonic() + limit_s

    def __call__(self) -> bool:
        """Tell the guard what there is to tell."""
        self.over = self.over or (self._until is not None and time.monotonic() > self._until)
        if self._told < max(min(self.asked, _TWICE), int(self.over)):
            self._told += self._tell()
        return False

    @contextlib.contextmanager
    def heard(self) -> Iterator[None]:
        """Take the signals instead of KeyboardInterrupt, which would leave Ansible behind; what is ignored stays so."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.getsignal(number) for number in _SIGNALS}
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, self._hear)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        # A closed terminal is told of by more than one; only a person who says it twice means it twice.
        self.asked = self.asked + 1 if number == signal.SIGINT else max(self.asked, 1)

    def _tell(self) -> bool:
        """Signal the guard; it has no record yet in its first moments, and is told the next time."""
        for record in running.records(self._record.parent):
            if record.file == self._record and record.alive:
                os.kill(record.alive[-1], signal.SIGTERM)
                return True
        return False
