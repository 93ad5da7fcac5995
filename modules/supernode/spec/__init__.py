"""The three documents of an environment, read and checked: text in, frozen types or every problem at once out."""

from supernode.spec.allocation import (
    Allocation,
    CoreBlock,
    HostBlock,
    Places,
    SwitchBlock,
    UplinkBlock,
    allocation_text,
)
from supernode.spec.cloud import Cloud
from supernode.spec.cooling import Cooling
from supernode.spec.environment import Environment, Fabric, Pool, Rack, Software
from supernode.spec.machines import PINS, Identity, Machines, SlotRecord, SlotState, machines_text
from supernode.spec.parts import references
from supernode.spec.reading import Inputs, locate, read
from supernode.spec.schema import schema_text

__all__ = [
    "PINS",
    "Allocation",
    "Cloud",
    "CoreBlock",
    "Cooling",
    "Environment",
    "Fabric",
    "HostBlock",
    "Identity",
    "Inputs",
    "Machines",
    "Places",
    "Pool",
    "Rack",
    "SlotRecord",
    "SlotState",
    "Software",
    "SwitchBlock",
    "UplinkBlock",
    "allocation_text",
    "locate",
    "machines_text",
    "read",
    "references",
    "schema_text",
]
