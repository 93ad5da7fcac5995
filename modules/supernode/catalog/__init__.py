"""Hardware kinds as data: what a server or a switch of a kind has, with the source of each figure in its file under data/."""

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
