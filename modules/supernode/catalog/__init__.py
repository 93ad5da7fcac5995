"""Hardware kinds as data: what a machine, switch or cooling unit has; each file under data/ names its source."""

from supernode.catalog.cdu import CduKind, DetectorInput, Register, Signal
from supernode.catalog.cloud import CloudShape, NetworkCard, Price
from supernode.catalog.kinds import (
    cdu,
    cdu_kinds,
    library,
    optics,
    price,
    server,
    server_kinds,
    switch,
    switch_kinds,
)
from supernode.catalog.model import BiosAttribute, Disk, Nic, ServerKind, SwitchKind
from supernode.catalog.plugs import Product

__all__ = [
    "BiosAttribute",
    "CduKind",
    "CloudShape",
    "DetectorInput",
    "Disk",
    "NetworkCard",
    "Nic",
    "Price",
    "Product",
    "Register",
    "ServerKind",
    "Signal",
    "SwitchKind",
    "cdu",
    "cdu_kinds",
    "library",
    "optics",
    "price",
    "server",
    "server_kinds",
    "switch",
    "switch_kinds",
]
