"""The Design: every host, switch, cable, address and file of an environment, computed from its documents alone."""

from supernode.design.building import build
from supernode.design.cooling import CoolingUnit
from supernode.design.model import Design
from supernode.design.rows import Host, Link, RenderedFile, Switch

__all__ = ["CoolingUnit", "Design", "Host", "Link", "RenderedFile", "Switch", "build"]
