"""The Design: every host, switch, cable, address and file of an environment, computed from its documents alone."""

from supernode.design.building import build
from supernode.design.cooling import CoolingUnit
from supernode.design.model import Design
from supernode.design.rows import Host, Link, RenderedFile, Switch
from supernode.design.vpn import Gateway, VpnLink

__all__ = ["CoolingUnit", "Design", "Gateway", "Host", "Link", "RenderedFile", "Switch", "VpnLink", "build"]
