"""Deadlines, and waiting for something to become true."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

UNTIL = "SUPERNODE_UNTIL"
"""When the run that started this process ends its provisioning, in seconds since 1970; a bare `pulumi up` has none."""
AT_LEAST_S = 60.0
_T = TypeVar("_T")


def within_the_run(seconds: float) -> float:
    """Cut a machine's deadline at the end of the run; for a look at it there is always time."""
    until = os.environ.get(UNTIL, "")
    return min(seconds, max(AT_LEAST_S, int(until) - time.time())) if until.isdecimal() else seconds


class Deadline:
    """A point in time that everything done for one machine shares."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._at = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds left; never negative."""
        return max(0.0, self._at - time.monotonic())

    def part(self, seconds: float) -> Deadline:
        """Return a deadline of its own, which never goes beyond this one."""
        return Deadline(min(seconds, self.left))


class LateError(Exception):
    """Something did not become true in time.

    Attributes:
        what: what was waited for.
    """

    def __init__(self, what: str, seconds: float) -> None:
        super().__init__(f"{what} within {seconds:.0f} s")
        self.what = what


async def until(
    look: Callable[[], Awaitable[_T | None]],
    deadline: Deadline,
    what: str,
    *,
    first_s: float = 0.2,
    longest_s: float = 5.0,
) -> _T:
    """Look again and again, ever more slowly, until there is something.

    Args:
        look: returns None to be asked again.
        deadline: when to give up.
        what: what did not happen, e.g. "power did not come on".
        first_s: the first wait between two looks.
        longest_s: the longest.

    Raises:
        LateError: at the deadline.
    """
    wait = first_s
    while True:
        found = await look()
        if found is not None:
            return found
        if deadline.left <= 0:
            raise LateError(what, deadline.seconds)
        await asyncio.sleep(min(wait, deadline.left))
        wait = min(wait * 1.5, longest_s)
