"""How often in a row passwords were sent to one controller that it did not take.

A controller locks an account after a few wrong passwords (three on some), and with it everyone out. A login whose
answer never came may have been refused all the same. So each is counted before it is sent, and taken back only where
nothing was sent, or where the controller was too busy to look at it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from supernode.clients.answer import BUSY, CHANGE_REQUIRED, LOGIN_REFUSED, SESSIONS_TAKEN, Answer

MOST = 2


def digest(username: str, password: str) -> str:
    """Return what is remembered of an account and its password, in memory alone."""
    return hashlib.sha256(f"{username}\0{password}".encode()).hexdigest()


@dataclass
class Tries:
    """The count of one controller.

    What this process saw taken is not counted, however often its answers are lost, until it is refused.

    Attributes:
        count: how many logins in a row were sent and not taken.
        refusals: digests of what was refused, by its own words, since something was taken.
    """

    count: int = 0
    refusals: set[str] = field(default_factory=set, repr=False)
    _taken: str = field(default="", repr=False)

    def may(self, key: str) -> bool:
        """Tell whether this may be sent."""
        return self.known(key) or self.count < MOST

    def known(self, key: str) -> bool:
        """Tell whether this was taken, and not refused since."""
        return key == self._taken

    def sent(self, key: str) -> None:
        """Count it; to be called before it is sent."""
        if not self.known(key):
            self.keep(self.count + 1)

    def unsent(self, key: str) -> None:
        """Take it back: it was not sent, or not looked at."""
        if not self.known(key):
            self.keep(max(0, self.count - 1))

    def refused(self, key: str) -> None:
        """Remember that it was refused."""
        if self.known(key):
            self._taken = ""
            self.keep(self.count + 1)
        self.refusals.add(key)

    def taken(self, key: str) -> None:
        """Remember that it was taken: the controller counts anew, and so do we."""
        self._taken = key
        self.refusals.clear()
        if self.count:
            self.keep(0)

    def keep(self, count: int) -> None:
        """Set the count."""
        self.count = count


def judge(tries: Tries, key: str, answer: Answer, *, proves: bool, login: bool) -> None:
    """Count what an answer means for the password that was sent; one that says nothing of it takes its try back.

    Args:
        tries: the controller's.
        key: what was sent.
        answer: what came.
        proves: only accounts are answered there.
        login: a session was asked for: an error of another kind may still have been a refusal.
    """
    if answer.status == 401 or answer.says(LOGIN_REFUSED):
        tries.refused(key)
    elif answer.says(CHANGE_REQUIRED) or (answer.status < 300 and proves):
        tries.taken(key)
    elif not login or answer.status in BUSY or answer.says(SESSIONS_TAKEN):
        tries.unsent(key)
