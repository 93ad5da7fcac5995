"""What one stack declares, component by component."""

from __future__ import annotations

from supernode.components import cloud
from supernode.components.fabric import Fabric, FabricArgs
from supernode.components.supernode import Supernode, SupernodeArgs
from supernode.plan.resources import Stack


def declare(share: Stack) -> None:
    """Declare a stack's share in the running program.

    Raises:
        CouldNotRun: a provider's SDK is not installed.
    """
    fabric = Fabric("fabric", FabricArgs(share.switches))
    after = {machine: [fabric.switches[name] for name in names] for machine, names in share.after.items()}
    Supernode("supernode", SupernodeArgs(share.machines, after))
    cloud.declare(share.cloud)
