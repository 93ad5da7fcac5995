"""A node as Slurm's controller shows it: `scontrol --oneliner show node`."""

from __future__ import annotations

import re
from dataclasses import dataclass

OURS = "supernode: "  # how every reason begins that we gave
_OWN_USER = "slurm"  # whose reasons are the controller's own: "Not responding", "gres/gpu count reported lower ..."
_ABSENT = re.compile(r"Node \S+ not found")
_REASON = re.compile(r"\bReason=(?P<why>.*?)(?: \[(?P<user>[^\s@\]]+)@[^\]]*\])?\s*$")
_CLOSED = {"DRAIN", "DRAINING", "DRAINED", "DOWN", "FAIL", "INVALID_REG"}


@dataclass(frozen=True)
class Node:
    """One node.

    Attributes:
        known: the controller has it in its configuration.
        registered: its slurmd has told the controller what the node has, since either was configured.
        states: the base state and its flags, e.g. IDLE and DRAIN.
        reason, user: why it takes no jobs, and who said so; empty for the reason of the configuration.
    """

    name: str
    known: bool = True
    registered: bool = False
    states: frozenset[str] = frozenset()
    gres: str = ""
    reason: str = ""
    user: str = ""

    @property
    def closed(self) -> bool:
        """Whether it takes no jobs."""
        return bool(self.states & _CLOSED)

    @property
    def by_hand(self) -> bool:
        """Whether a person closed it: neither we nor the controller itself gave the reason."""
        return self.closed and bool(self.reason) and not self.reason.startswith(OURS) and self.user != _OWN_USER


def parse(line: str) -> Node:
    """Read one line.

    Raises:
        ValueError: it describes no node.
    """
    if _ABSENT.search(line):
        return Node(line.split()[1], known=False)
    # Where a reason holds words such as State=, they are its author's.
    fields = dict(word.split("=", 1) for word in line.partition(" Reason=")[0].split() if "=" in word)
    if "NodeName" not in fields or "State" not in fields:
        raise ValueError(f"no node of scontrol: {line[:80]!r}")
    why = _REASON.search(line)
    gres = fields.get("Gres", "")
    return Node(
        fields["NodeName"],
        registered=fields.get("SlurmdStartTime", "None") != "None",
        states=frozenset(fields["State"].replace("*", "+NOT_RESPONDING").split("+")),
        gres="" if gres == "(null)" else gres,
        reason=why["why"] if why else "",
        user=(why["user"] or "") if why else "",
    )
