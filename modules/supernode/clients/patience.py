"""How long a BMC is tried, and what is said when that was in vain."""

from __future__ import annotations

import random
from dataclasses import dataclass

from supernode.errors import CouldNotRun


class Unreachable(CouldNotRun):
    """The BMC gave no answer within the time allowed, however often asked."""


class Ambiguous(CouldNotRun):
    """An action was sent and no answer came: it may or may not have happened. Read back before repeating it."""


class LookOnly(CouldNotRun):
    """A client that only looks was asked to change something; nothing was sent."""


@dataclass(frozen=True)
class Patience:
    """How long to try.

    Attributes:
        answer_s: for one answer.
        tries: how often a request is sent at most.
        first_s, longest_s: the first wait between two tries, which doubles, and its ceiling, also for Retry-After.
    """

    answer_s: float = 30.0
    tries: int = 6
    first_s: float = 0.5
    longest_s: float = 15.0

    def waits(self, attempt: int, retry_after: str | None) -> float:
        """Return the seconds to wait after a failed attempt (from 0).

        Spread, so that requests that failed together do not come again together.
        """
        if retry_after and retry_after.strip().isdecimal():
            return min(float(retry_after), self.longest_s)
        return float(min(self.first_s * 2**attempt, self.longest_s)) * random.uniform(0.7, 1.0)  # noqa: S311 - no secret hangs on it
