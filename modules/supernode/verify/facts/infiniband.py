"""An InfiniBand subnet as one of its hosts sees it: every link from both ends, and who manages it.

One host's walk over the subnet is to this fabric what LLDP on every device is to a routed one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from supernode.verify.facts.raw import NotSeenError, Raw

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "ibnetdiscover": ("sudo", "-n", "ibnetdiscover", "-p"),
    "iblinkinfo": ("sudo", "-n", "iblinkinfo", "-l"),
    "sminfo": ("sudo", "-n", "sminfo"),
    "opensm": ("systemctl", "is-active", "supernode-opensm.service"),
}
# SW     3  2 0x0000000000200001 1x HDR - CA     7  1 0x0000000000100007 ( 'su01-leaf1' - 'gpu-002 mlx5_1' )
# SW     3  4 0x0000000000200001 4x SDR                                    'su01-leaf1'
_HEAD = r"(?P<sort>CA|SW|RT)\s+\d+\s+(?P<port>\d+)\s+(?P<guid>0x[0-9a-f]+)\s+(?P<width>\d+x|\?\?)\s+(?P<speed>\S+)"
_JOINED = re.compile(
    _HEAD + r"\s+-\s+(?:CA|SW|RT)\s+\d+\s+(?P<there>\d+)\s+(?P<far>0x[0-9a-f]+)\s+\( '(?P<name>.*)' - '(?P<peer>.*)' \)"
)
_BARE = re.compile(_HEAD + r"\s+'(?P<name>.*)'")
# 0x…01 "  su01-leaf1"  3  2[  ] ==( 1X  53.125 Gbps Active/  LinkUp)==>  0x…07  7  1[  ] "gpu-002 mlx5_1" ( )
_STATE = re.compile(
    r'^(?P<guid>0x[0-9a-f]+)\s+".*?"\s+\d+\s+(?P<port>\d+)\[.*?\]\s+==\((?P<inside>[^)]*)/\s*(?P<physical>\w+)\)==>'
)
_MANAGER = re.compile(
    r"sm lid (?P<lid>\d+) sm guid (?P<guid>0x[0-9a-f]+), .*priority (?P<priority>\d+) state \d+ SMINFO_(?P<state>\w+)"
)


@dataclass(frozen=True)
class LinkEnd:
    """One port of the subnet.

    Attributes:
        node: what it calls itself, and the number of the port.
        peer: the same of the port at the other end; None where nobody is.
        width: how many lanes run.
        speed: of each, e.g. "HDR".
        state: "Active", "Initialize", "Down", …; empty where it was not seen.
    """

    node: tuple[str, int]
    guid: int
    peer: tuple[str, int] | None
    width: int
    speed: str
    state: str = ""


@dataclass(frozen=True)
class Manager:
    """The subnet manager that a host's port obeys."""

    guid: int
    priority: int
    state: str


@dataclass(frozen=True)
class SubnetFacts:
    """What one host saw.

    Attributes:
        manager: None where none answered.
        service: what systemd says of the host's own manager.
    """

    ends: tuple[LinkEnd, ...]
    manager: Manager | None
    service: str

    def owner(self, guid: int) -> str:
        """Return the node that a port's GUID belongs to, or ""."""
        return next((end.node[0] for end in self.ends if end.guid == guid), "")


def parse(raw: Mapping[str, Raw]) -> SubnetFacts:
    """Read what the tools printed.

    Raises:
        NotSeenError: a tool is not there or no adapter answers it.
    """
    states = link_states(raw["iblinkinfo"].must())
    ends = link_ends(raw["ibnetdiscover"].must(), states)
    if not ends:
        raise NotSeenError("ibnetdiscover found no port")
    said = raw["sminfo"]
    return SubnetFacts(ends, manager(said.out) if said.rc == 0 else None, raw["opensm"].out.strip())


def link_ends(text: str, states: Mapping[tuple[int, int], str]) -> tuple[LinkEnd, ...]:
    """Read `ibnetdiscover -p`: one line for each port, with the one at its other end."""
    found = []
    for line in text.splitlines():
        joined = _JOINED.match(line)
        row = joined or _BARE.match(line)
        if row is None:
            continue
        peer = (joined["peer"], int(joined["there"])) if joined else None
        port, guid = int(row["port"]), int(row["guid"], 16)
        state = states.get((guid, port), "")
        width = int(row["width"].rstrip("x")) if row["width"] != "??" else 0
        found.append(LinkEnd((row["name"], port), guid, peer, width, row["speed"], state))
    return tuple(found)


def link_states(text: str) -> dict[tuple[int, int], str]:
    """Read the ports' states from `iblinkinfo -l`, by GUID and port."""
    rows = filter(None, map(_STATE.match, text.splitlines()))
    return {(int(row["guid"], 16), int(row["port"])): row["inside"].split()[-1] for row in rows}


def manager(text: str) -> Manager | None:
    """Read `sminfo`."""
    row = _MANAGER.search(text)
    return Manager(int(row["guid"], 16), int(row["priority"]), row["state"]) if row else None
