"""The Pulumi program: documents -> spec -> design -> this stack's share of the machines and switches."""

import re

import pulumi

from supernode import design, spec, workspace
from supernode.boot import facts
from supernode.components import inputs
from supernode.components.fabric import Fabric, FabricArgs
from supernode.components.supernode import Supernode, SupernodeArgs
from supernode.errors import SupernodeError


def main() -> None:
    """Read, compute, declare; exports what a reader of the state needs to know of its origin."""
    stack = pulumi.get_stack()
    place = pulumi.Config("supernode").get("folder") or "inventories/" + re.sub(
        r"-(su\d+(-\d+)?|fabric\d+)$", "", stack
    )
    folder = workspace.find(str(workspace.root() / place))
    designed = design.build(spec.read(folder.texts()))
    share = inputs.stack(designed, stack, facts.read(folder), inputs.ssh_key(folder))
    fabric = Fabric("fabric", FabricArgs(share.switches))
    after = {machine: [fabric.switches[name] for name in names] for machine, names in share.after.items()}
    Supernode("supernode", SupernodeArgs(share.machines, after))
    pulumi.export("design", designed.digest)


try:
    main()
except SupernodeError as error:
    raise pulumi.RunError(str(error)) from None
