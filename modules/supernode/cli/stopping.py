"""Being told to stop: a closed terminal and a plain `kill` end a verb in order, as Ctrl-C does.

The first word ends it in order. A second Ctrl-C cuts what is waited for; a third ends this process at once, and what
it started then ends by itself (`engine.guard`). A closed terminal is told of more than once: only Ctrl-C counts again.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130
_AT_ONCE = 3
_USUAL = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,
}


class _Stops:
    """Counts how often the verb was told."""

    def __init__(self) -> None:
        self._told = 0

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        if self._told and number != signal.SIGINT:
            return
        self._told += 1
        if self._told >= _AT_ONCE:
            os._exit(INTERRUPTED)
        raise KeyboardInterrupt


@contextmanager
def stops_interrupt() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into KeyboardInterrupt inside the block; what is ignored (nohup) stays ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may say what a signal does
        return
    stops = _Stops()
    changed = {number: usual for number, usual in _USUAL.items() if signal.getsignal(number) is usual}
    for number in changed:
        signal.signal(number, stops)
    try:
        yield
    finally:
        for number, handler in changed.items():
            signal.signal(number, handler)
