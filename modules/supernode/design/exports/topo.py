"""The `.topo` file of ibdiagnet 2, which UFM's topology compare and Cable Validation Tool read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from supernode.catalog import infiniband
from supernode.design.infiniband import node, port_number
from supernode.design.model import Design
from supernode.design.rows import Link


def lines(design: Design) -> Iterator[str]:
    """Yield a block for each switch: its type and name, then each of its cables with what is at the other end.

    A host's end is `<adapter>/P1`: the adapter is that of the rail, as rdma-ndd tells it to the subnet.
    """
    for switch in design.switches:
        yield f"{_switch(design, switch.name)}\n"
        yield from (f"   {_line(design, link, switch.name)}\n" for link in design.links_of(switch.name))


def _line(design: Design, link: Link, mine: str) -> str:
    here, there = (link.b_port, link.a_device) if link.b_device == mine else (link.a_port, link.b_device)
    lane = infiniband.SPEEDS[infiniband.speed(link.rate)] / 1000
    far = _host(design, link) if design.is_host(there) else f"{_switch(design, there)} P{_far(link, mine)}"
    return f"P{port_number(here)} -{infiniband.LANES}x-{lane:g}G-> {far}"


def _far(link: Link, mine: str) -> int:
    return port_number(link.a_port if link.b_device == mine else link.b_port)


def _host(design: Design, link: Link) -> str:
    name, adapter = node(design, link.a_device, link.rail).split(" ", 1)
    return f"HCA_mlx5_{len(design.server_kind(design.host(name)).nics)} {name} {adapter}/P1"


def _switch(design: Design, name: str) -> str:
    """Return a switch's system type, which NVIDIA writes with an M before the model, and its name."""
    model = design.switch_kind(design.switch(name)).model
    kind = f"M{model}" if re.fullmatch(r"QM\d{4}", model) else re.sub(r"[^\w-]+", "_", model)
    return f"{kind} {name}"
