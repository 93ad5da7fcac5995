"""Pace: while a machine is in service, what may stop a switch is done to one switch after the other.

The fabric has more than one way to a machine; two switches that restart at once may be both of them. The first that
does not come back ends it: the others keep what they have. In a fabric that serves nobody, all may go at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from weakref import WeakKeyDictionary

from supernode.provider import guard
from supernode.provider.job import RefusedError


class NotTouchedError(Exception):
    """Another switch did not come back; this one was left as it is."""


class Pace:
    """The turns of one process, which is those of one stack's run."""

    def __init__(self) -> None:
        self._gates: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
        self._down = ""

    @asynccontextmanager
    async def turn(self, name: str, folder: Path) -> AsyncIterator[None]:
        """Wait for this switch's turn; the block is what may stop it, up to the proof that it is back.

        Args:
            name: the switch.
            folder: the environment's, whose machines.yml says whether any machine is in service.

        Raises:
            NotTouchedError: a switch before it failed in its turn.
        """
        if not await _serves(folder):
            yield
            return
        async with self._gates.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
            if self._down not in ("", name):
                raise NotTouchedError(f"not touched: {self._down} did not come back")
            self._down = name  # until it is back
            yield
            self._down = ""


async def _serves(folder: Path) -> bool:
    """Say whether any machine is in service; where nobody can say, one is."""
    try:
        return await guard.any_in_service(folder)
    except RefusedError:
        return True
