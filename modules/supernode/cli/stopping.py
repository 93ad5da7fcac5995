"""Being told to stop: a closed terminal and a plain `kill` end a verb in order, as Ctrl-C does."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def stops_interrupt() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into KeyboardInterrupt inside the block; what is ignored (nohup) stays ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may say what a signal does
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    changed = {number: handler for number, handler in before.items() if handler is signal.SIG_DFL}
    for number in changed:
        signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number, handler in changed.items():
            signal.signal(number, handler)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
