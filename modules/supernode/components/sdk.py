"""The resources of our provider as Pulumi classes; inputs are plain JSON with the names of the wire."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi


def _with_outputs(resource: type[pulumi.CustomResource], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Name what the provider adds, so that the SDK makes an output of each."""
    return {**dict.fromkeys(resource.__annotations__), **inputs}


class Machine(pulumi.CustomResource):
    """One slot's machine: BIOS, firmware, image and boot are phases of it, not resources beside it."""

    status: pulumi.Output[str]
    phase: pulumi.Output[str]
    reason: pulumi.Output[str]

    def __init__(self, name: str, inputs: Mapping[str, Any], opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("supernode:index:Machine", name, _with_outputs(Machine, inputs), opts)


class SwitchConfig(pulumi.CustomResource):
    """One switch's configuration files, in force and saved."""

    status: pulumi.Output[str]
    phase: pulumi.Output[str]
    reason: pulumi.Output[str]

    def __init__(self, name: str, inputs: Mapping[str, Any], opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("supernode:index:SwitchConfig", name, _with_outputs(SwitchConfig, inputs), opts)


class Tunnel(pulumi.CustomResource):
    """Both gateways of a tunnel to another site."""

    status: pulumi.Output[str]
    phase: pulumi.Output[str]
    reason: pulumi.Output[str]

    def __init__(self, name: str, inputs: Mapping[str, Any], opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("supernode:index:Tunnel", name, _with_outputs(Tunnel, inputs), opts)
