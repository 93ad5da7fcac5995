"""topology.dot: Graphviz's language as Prescriptive Topology Manager and UFM's Cable Validation Tool read it."""

from __future__ import annotations

from collections.abc import Iterator

from supernode.design.model import Design

_ROLES = {"leaf": "leaf", "spine": "spine", "core": "super_spine"}
_SYSTEMS = {"frr": "cumulus"}  # of the systems that they know, the one that runs FRR


def lines(design: Design) -> Iterator[str]:
    """Yield the graph: each switch with its role and system, then each cable as `"switch":"port" -- "host":"rail3"`."""
    yield "graph network {\n"
    for switch in design.switches:
        system = design.switch_kind(switch).os
        role = _ROLES.get(switch.tier, switch.tier)
        yield f'"{switch.name}" [label="{switch.name}" role="{role}" os="{_SYSTEMS.get(system, system)}"]\n'
    for link in design.links:
        yield f'"{link.b_device}":"{link.b_port}" -- "{link.a_device}":"{link.a_port}"\n'
    yield "}\n"
