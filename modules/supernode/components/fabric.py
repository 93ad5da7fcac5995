"""The compute fabric's share of a stack: one resource for each switch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

from supernode.components.sdk import SwitchConfig


@dataclass(frozen=True)
class FabricArgs:
    """What a Fabric holds.

    Attributes:
        switches: the inputs of each SwitchConfig, by designed name.
    """

    switches: Mapping[str, Mapping[str, Any]]


class Fabric(pulumi.ComponentResource):
    """Leaves and spines, each with its rendered configuration.

    Attributes:
        switches: the resources, by designed name.
    """

    switches: Mapping[str, SwitchConfig]

    def __init__(self, name: str, args: FabricArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("supernode:fabric:Fabric", name, None, opts)
        under = pulumi.ResourceOptions(parent=self)
        self.switches = {switch: SwitchConfig(switch, inputs, under) for switch, inputs in args.switches.items()}
        self.register_outputs({"switches": len(self.switches)})
