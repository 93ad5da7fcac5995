"""Hardware kinds as data: what a server or a switch of a kind has; each file under data/ names its source."""

from supernode.catalog.kinds import server, server_kinds, switch, switch_kinds
from supernode.catalog.model import BiosAttribute, Disk, Nic, ServerKind, SwitchKind

__all__ = [
    "BiosAttribute",
    "Disk",
    "Nic",
    "ServerKind",
    "SwitchKind",
    "server",
    "server_kinds",
    "switch",
    "switch_kinds",
]
