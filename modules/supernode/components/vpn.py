"""The tunnels of a stack to other sites: one resource for each, with both its gateways."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

from supernode.components.sdk import Tunnel


@dataclass(frozen=True)
class VpnLinkArgs:
    """What a VpnLink holds.

    Attributes:
        site: where it leads.
        tunnel: the inputs of its Tunnel.
    """

    site: str
    tunnel: Mapping[str, Any]


class VpnLink(pulumi.ComponentResource):
    """The way to another site; what stands there depends on it.

    Attributes:
        tunnel: the resource that owns tunnel, routes and firewall of both gateways.
    """

    tunnel: Tunnel

    def __init__(self, name: str, args: VpnLinkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("supernode:vpn:VpnLink", name, None, opts)
        self.tunnel = Tunnel(args.site, args.tunnel, pulumi.ResourceOptions(parent=self))
        self.register_outputs({"status": self.tunnel.status})
