"""What a connection that only looks may run: programs that read, word by word; everything else is not on the list.

A command is words, never a shell's line, so that nothing in it can be expanded, redirected or chained. A rule is the
words that it begins with and what each further word may be.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from supernode.errors import CouldNotRun

_UP = r"(?!.*/\.\.(?:/|$))"  # no way up and out of where a rule says
_PATH = _UP + r"/[A-Za-z0-9_.:@+-]+(/[A-Za-z0-9_.:@+-]+)*/?"
_FILE = r"(?!/(?:dev|proc)/)" + _PATH  # to open some devices is to set them going; reading some of /proc empties them
_SYS = _UP + r"/sys/[A-Za-z0-9_.:@+-]+(/[A-Za-z0-9_.:@+-]+)*"
_NAME = r"[A-Za-z0-9][A-Za-z0-9_.:@+-]*"


class LookOnly(CouldNotRun):
    """A connection that only looks was asked for something that is not on its list; nothing was sent."""


@dataclass(frozen=True)
class Rule:
    """One kind of command.

    Attributes:
        words: what it begins with.
        rest: what each further word must match whole; empty where there may be none.
    """

    words: tuple[str, ...]
    rest: str = ""

    def admits(self, command: Sequence[str]) -> bool:
        """Tell whether a command is of this kind."""
        more = command[len(self.words) :]
        if tuple(command[: len(self.words)]) != self.words:
            return False
        return bool(more) and all(re.fullmatch(self.rest, w) for w in more) if self.rest else not more


RULES: tuple[Rule, ...] = (
    Rule(("hostname",)),
    Rule(("hostname", "-f")),
    Rule(("uname", "-r")),
    Rule(("uptime", "-p")),
    Rule(("ip", "-j", "-s", "addr", "show")),
    Rule(("ip", "-j", "-4", "route", "show", "table", "main")),
    Rule(("sudo", "-n", "lldpcli", "-f", "json0", "show", "neighbors")),
    Rule(("chronyc", "-n", "-c", "tracking")),
    Rule(("chronyc", "-n", "-c", "sources")),
    Rule(("apt-mark", "showmanual")),
    Rule(("dpkg-query", "-W", "-f", r"${Package}\t${Version}\n")),
    Rule(("cat",), _FILE),
    Rule(("ls", "-1"), _PATH),
    Rule(("ls", "-1d"), _PATH),
    Rule(("grep", "-H", "-s", "."), _SYS),
    Rule(("readlink", "-f"), _PATH),
    Rule(("df", "-P"), _PATH),
    Rule(("lsblk", "-J", "-b")),
    Rule(("getent", "hosts"), _NAME),
    Rule(("systemctl", "is-active"), _NAME),
    Rule(("sudo", "-n", "journalctl", "--no-pager", "--boot", "--priority=warning", "--lines=1000")),
    # The serial numbers and the UUID of a board are root's to read.
    Rule(("sudo", "-n", "cat"), r"/sys/class/dmi/id/[a-z_]+"),
    Rule(("sudo", "-n", "vtysh", "-c", "show running-config")),
    Rule(("sudo", "-n", "vtysh", "-c", "show bgp summary json")),
)


def admitted(command: str | Sequence[str]) -> bool:
    """Tell whether a command only looks; a shell's line never does, whatever it says."""
    return not isinstance(command, str) and any(rule.admits(command) for rule in RULES)


def refuse(address: str, what: str) -> LookOnly:
    """Return the refusal of something that is not on the list."""
    return LookOnly(address, f"{what} is not among the commands that only look", "nothing was sent")
