"""The Pulumi program: documents -> spec -> design -> this stack's share of the machines and switches."""

import re
import sys

import pulumi

from supernode import design, spec, workspace
from supernode.boot import facts
from supernode.components.program import declare
from supernode.errors import SupernodeError
from supernode.plan import resources


def main() -> None:
    """Read, compute, declare; exports what a reader of the state needs to know of its origin."""
    stack = pulumi.get_stack()
    place = pulumi.Config("supernode").get("folder") or "inventories/" + re.sub(
        r"-(su\d+(-\d+)?|fabric\d+)$", "", stack
    )
    folder = workspace.find(str(workspace.root() / place))
    designed = design.build(spec.read(folder.texts(), name=folder.name))
    prepared = facts.read(folder)
    if prepared.design != designed.digest:
        pulumi.log.warn(f"boot prepared another design than this one: `supernode image {folder.name}` before an update")
    declare(resources.stack(designed, stack, prepared, folder.ssh_key))
    pulumi.export("design", designed.digest)


try:
    main()
except SupernodeError as error:
    hint = getattr(error, "hint", None)
    pulumi.log.error(f"{error}\nhint: {hint}" if hint else str(error))
    sys.exit(32)  # what the language host takes for "the person has been told": no traceback, no second message
