"""Controllers' doors, as one process knows them: who is inside, and which passwords were refused.

A controller locks an account after a few wrong passwords (three on some), and with it everyone out. So a password that
was refused is not tried again by this process, and of all of them not more than TRIES in a row.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

TRIES = 2


@dataclass(frozen=True)
class Key:
    """An account and its password."""

    username: str
    password: str = field(repr=False)

    @property
    def digest(self) -> str:
        """What is remembered of it."""
        return hashlib.sha256(f"{self.username}\0{self.password}".encode()).hexdigest()


class Doors:
    """The doors of all controllers; addresses name them."""

    def __init__(self) -> None:
        self._inside: dict[str, asyncio.Lock] = {}
        self._refused: dict[str, list[str]] = {}

    @asynccontextmanager
    async def hold(self, address: str) -> AsyncIterator[None]:
        """Be the only one of this process at work on a controller, for as long as the block lasts."""
        async with self._inside.setdefault(address, asyncio.Lock()):
            yield

    def may_try(self, address: str, key: Key) -> bool:
        """Tell whether a key may be tried: it was not refused before, and not too many others were."""
        refused = self._refused.get(address, [])
        return len(refused) < TRIES and key.digest not in refused

    def refused(self, address: str, key: Key) -> None:
        """Remember that a key was refused."""
        self._refused.setdefault(address, []).append(key.digest)

    def opened(self, address: str) -> None:
        """Remember that a key was taken: the controller counts anew, and so do we."""
        self._refused.pop(address, None)
