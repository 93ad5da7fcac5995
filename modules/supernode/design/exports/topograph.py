"""What NVIDIA topograph (1.0) would find: its labels of Kubernetes' nodes, and a model for its own simulation."""

from __future__ import annotations

from collections.abc import Iterator

from supernode.design.exports.units import domains, parents, units
from supernode.design.model import Design

TIER, DOMAIN = "fabric.topograph.run/tier-", "accelerator.topograph.run/domain"


def labels(design: Design) -> Iterator[str]:
    """Yield one Node a host for `kubectl apply --server-side`; tier 0 is nearest to the host.

    `sub-domain` is not written: it stands for a part of an NVLink domain, and no design divides one.
    """
    domain = {host.name: name for name, hosts in domains(design).items() for host in hosts}
    for unit in units(design):
        tiers = [f'    {TIER}{number}: "{name}"\n' for number, name in enumerate((unit.name, *unit.above))]
        for host in unit.hosts:
            mine = [f'    {DOMAIN}: "{domain[host.name]}"\n'] if host.name in domain else []
            yield f"---\napiVersion: v1\nkind: Node\nmetadata:\n  name: {host.name}\n  labels:\n"
            yield from (*tiers, *mine)


def model(design: Design) -> Iterator[str]:
    """Yield the model: the switches as a tree, and the nodes below the lowest of them."""
    found, nvlink = units(design), domains(design)
    yield "switches:\n"
    for name, below in parents(found):
        yield f"  {name}:\n    switches: [{', '.join(below)}]\n"
    yield from (f"  {unit.name}: {{}}\n" for unit in found)
    yield "blocks:\n"
    for unit in found:
        beside = [host for host in unit.hosts if not any(host in hosts for hosts in nvlink.values())]
        groups = [("", beside)] if beside else []
        groups += [(name, [host for host in hosts if host.su == unit.hosts[0].su]) for name, hosts in nvlink.items()]
        for name, hosts in groups:
            if hosts:
                yield f"- switch: {unit.name}\n  nodes: [{', '.join(host.name for host in hosts)}]\n"
                yield f"  labels: {{{DOMAIN}: {name}}}\n" if name else ""
