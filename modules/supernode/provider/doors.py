"""Controllers' doors, as one run knows them: who is inside, and which passwords were refused.

A password that was refused is not tried again by this process, and of all of them not more than `tries.MOST` in a row
are sent without one being taken. The count goes from one engine of a run to the next by a small file for each
controller, which holds a number and a time: of a password there is nothing in it, not even a hash.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from supernode import workspace
from supernode.clients import tries
from supernode.clients.tries import Tries
from supernode.errors import CouldNotRun
from supernode.provider.interlock import Units

RUN = "SUPERNODE_RUN"
"""The run that started this process; a bare `pulumi up` has none, and counts by itself."""
FOR_S = 900.0  # by then controllers have forgotten, or unlocked


@dataclass(frozen=True)
class Key:
    """An account and its password."""

    username: str
    password: str = field(repr=False)

    @property
    def digest(self) -> str:
        """What is remembered of it."""
        return tries.digest(self.username, self.password)


@dataclass
class KeptTries(Tries):
    """A count that the run's other engines know, too."""

    path: Path = Path()
    run: str = ""

    def __post_init__(self) -> None:
        """Take up what an engine of this run left."""
        try:
            found = json.loads(self.path.read_text(encoding="ascii"))
            if found["run"] == self.run and 0 <= time.time() - float(found["at"]) < FOR_S:
                self.count = max(0, int(found["tries"]))
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            pass  # none, or half of one: nothing is known

    def keep(self, count: int) -> None:
        """Set the count, on disk before anything is sent."""
        super().keep(count)
        if count:
            text = json.dumps({"run": self.run, "tries": count, "at": time.time()})
            try:
                workspace.write_atomically(self.path, text, mode=0o600)
            except OSError as error:
                raise CouldNotRun(str(self.path), f"cannot be written: {error.strerror}") from error
        else:
            self.path.unlink(missing_ok=True)


class Doors:
    """The doors of all controllers; addresses name them.

    Attributes:
        units: the cooling units that are asked before a machine is switched on.
    """

    def __init__(self) -> None:
        self._inside: dict[str, asyncio.Lock] = {}
        self._tries: dict[str, Tries] = {}
        self.units = Units()

    @asynccontextmanager
    async def hold(self, address: str) -> AsyncIterator[None]:
        """Be the only one of this process at work on a controller, for as long as the block lasts."""
        async with self._inside.setdefault(address, asyncio.Lock()):
            yield

    def tries(self, address: str, state: Callable[[], Path] | None = None) -> Tries:
        """Return the count of a controller.

        Args:
            address: the controller's.
            state: gives .supernode/<env>, where it is kept for the other engines of a run.
        """
        if address not in self._tries:
            run = os.environ.get(RUN, "")
            name = "".join(c if c.isalnum() or c in ".-" else "_" for c in address)
            kept = KeptTries(path=state() / "logins" / f"{name}.json", run=run) if state and run else Tries()
            self._tries[address] = kept
        return self._tries[address]
