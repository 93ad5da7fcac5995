"""Slurm's topology.conf (tree), its block form for NVLink domains, and topology.yaml, which replaces both."""

from __future__ import annotations

from collections.abc import Iterator

from supernode.design.exports.units import domains, parents, units
from supernode.design.model import Design
from supernode.design.scheduler import hostlist


def tree(design: Design) -> Iterator[str]:
    """Yield topology.conf of TopologyPlugin=topology/tree."""
    found = units(design)
    yield from (f"SwitchName={unit.name} Nodes={unit.nodes}\n" for unit in found)
    yield from (f"SwitchName={name} Switches={','.join(below)}\n" for name, below in parents(found))


def blocks(design: Design) -> Iterator[str]:
    """Yield topology.conf of TopologyPlugin=topology/block: a block for each NVLink domain."""
    found = domains(design)
    yield from (f"BlockName={name} Nodes={hostlist(hosts)}\n" for name, hosts in found.items())
    yield f"BlockSizes={','.join(map(str, sizes(design)))}\n"


def sizes(design: Design) -> list[int]:
    """Return the sizes to plan with: the smallest domain, and twice it for as long as there are as many domains."""
    found = domains(design)
    if not found:
        return []
    least = min(len(hosts) for hosts in found.values())
    return [least << power for power in range(len(found).bit_length())]


def document(design: Design) -> Iterator[str]:
    """Yield topology.yaml (Slurm 25.05): the tree, and where there are NVLink domains the blocks as the default."""
    found, nvlink = units(design), domains(design)
    if nvlink:
        yield "- topology: nvlink\n  cluster_default: true\n  block:\n"
        yield f"    block_sizes: [{', '.join(map(str, sizes(design)))}]\n    blocks:\n"
        for name, hosts in nvlink.items():
            yield f"      - block: {name}\n        nodes: {hostlist(hosts)}\n"
    yield f"- topology: fabric\n  cluster_default: {'false' if nvlink else 'true'}\n  tree:\n    switches:\n"
    yield from (f"      - switch: {unit.name}\n        nodes: {unit.nodes}\n" for unit in found)
    for name, below in parents(found):
        yield f"      - switch: {name}\n        children: {','.join(below)}\n"
