"""What one stack declares, component by component."""

from __future__ import annotations

import pulumi

from supernode.components import cloud
from supernode.components.fabric import Fabric, FabricArgs
from supernode.components.supernode import Supernode, SupernodeArgs
from supernode.components.vpn import VpnLink, VpnLinkArgs
from supernode.plan.resources import Stack


def declare(share: Stack) -> None:
    """Declare a stack's share in the running program.

    Raises:
        CouldNotRun: a provider's SDK is not installed.
    """
    fabric = Fabric("fabric", FabricArgs(share.switches))
    after: dict[str, list[pulumi.Resource]] = {
        machine: [fabric.switches[name] for name in names] for machine, names in share.after.items()
    }
    for site, inputs in share.links.items():
        link = VpnLink(f"vpn-{site}", VpnLinkArgs(site, inputs))
        for machine in share.behind[site]:  # nothing else leads there
            after.setdefault(machine, []).append(link.tunnel)
    Supernode("supernode", SupernodeArgs(share.machines, after))
    cloud.declare(share.cloud)
