"""A scalable unit's machines, or several units': one resource for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi

from supernode.components.sdk import Machine


@dataclass(frozen=True)
class SupernodeArgs:
    """What a Supernode holds.

    Attributes:
        machines: the inputs of each Machine, by designed name.
        after: what a machine waits for, by its name: the switches that fence, before a spare is touched.
    """

    machines: Mapping[str, Mapping[str, Any]]
    after: Mapping[str, Sequence[pulumi.Resource]] = field(default_factory=dict)


class Supernode(pulumi.ComponentResource):
    """The machines of a stack.

    Attributes:
        machines: the resources, by designed name.
    """

    machines: Mapping[str, Machine]

    def __init__(self, name: str, args: SupernodeArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("supernode:cluster:Supernode", name, None, opts)
        self.machines = {
            machine: Machine(
                machine, inputs, pulumi.ResourceOptions(parent=self, depends_on=list(args.after.get(machine, ())))
            )
            for machine, inputs in args.machines.items()
        }
        self.register_outputs({"machines": len(self.machines)})
