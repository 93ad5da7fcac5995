"""Failure domains: what is lost when one thing fails.

A GPU is lost with its host, and cut off when every cable of its port ends at what failed; what stays of the host is
then reached through the scale-up domain alone. The share of the bisection is that of the links between two tiers that
go, where it is highest: half of a tier's cross the middle of a fat tree, whichever way that is cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from supernode import catalog

if TYPE_CHECKING:
    from supernode.design.model import Design
    from supernode.design.runs import Numbers

HEADER = "domain,name,hosts,gpus_lost,gpus_cut_off,bisection_lost\n"
NONE = -1


@dataclass(frozen=True)
class Loss:
    """What goes with one domain.

    Attributes:
        domain: "rack", "feed", "cooling", "leaf", "spine" or "core".
        hosts: that stop.
        gpus_lost: of those hosts.
        gpus_cut_off: of hosts that go on, without any way into the fabric of their own.
        bisection_lost: share, 0 to 1.
    """

    domain: str
    name: str
    hosts: int
    gpus_lost: int
    gpus_cut_off: int
    bisection_lost: float


@dataclass(frozen=True, eq=False)
class _Layout:
    """A design as arrays: GPUs of each host, and of each link which devices it joins.

    Attributes:
        host_rack: NONE for a rented host.
        ports: of each rail link, the number of the port whose links it is one of.
        port_host: of each port its host.
        leaf: of each rail link.
        uplinks: tier by tier, the lower and the upper switch of each link.
    """

    gpus: Numbers
    host_rack: Numbers
    switch_rack: Numbers
    ports: Numbers
    port_host: Numbers
    leaf: Numbers
    uplinks: tuple[tuple[Numbers, Numbers], ...]


def losses(design: Design) -> Iterator[Loss]:
    """Yield the losses of every rack that holds something, power feed, cooling unit and switch."""
    found, names = _layout(design), design.columns.racks
    yield from _of_racks(found, "rack", names, {name: (name,) for name in names}, names)
    feeds = {rack.name: rack.feeds for rack in design.environment.racks}
    yield from _of_racks(found, "feed", list(dict.fromkeys(f for row in feeds.values() for f in row)), feeds, names)
    units = {rack: (unit.name,) for unit in design.cooling for rack in unit.racks}
    yield from _of_racks(found, "cooling", [unit.name for unit in design.cooling], units, names)
    switches = [switch.name for switch in design.switches]
    tiers = design.columns.switch_tiers
    own = np.arange(len(switches))
    stays = np.full(len(found.gpus), NONE)
    for number, row in enumerate(_losses(found, stays, own, len(switches))):
        yield Loss(("leaf", "spine", "core")[tiers[number]], switches[number], *row)


def _layout(design: Design) -> _Layout:
    hosts, links = design.columns.hosts, design.columns.links
    per_pool = np.array([catalog.server(pool.kind).gpus for pool in design.environment.pools])
    tiers = design.columns.link_tiers
    rail, above = links[tiers == 0], [links[tiers == tier] for tier in range(1, int(tiers.max(initial=0)) + 1)]
    key = rail["a"].astype(np.int64) << 16 | rail["a_port"]
    _ports, first, of_link = np.unique(key, return_index=True, return_inverse=True)
    return _Layout(
        gpus=per_pool[hosts["pool"]],
        host_rack=np.where(hosts["unit"] > 0, hosts["rack"].astype(np.int64), NONE),
        switch_rack=design.columns.switches["rack"].astype(np.int64),
        ports=of_link.reshape(-1),
        port_host=rail["a"][first].astype(np.int64),
        leaf=rail["b"].astype(np.int64),
        uplinks=tuple((rows["a"].astype(np.int64), rows["b"].astype(np.int64)) for rows in above),
    )


def _of_racks(
    found: _Layout, domain: str, failing: Sequence[str], of_rack: Mapping[str, Sequence[str]], racks: Sequence[str]
) -> Iterator[Loss]:
    """Yield the losses of what racks hang on; one that hangs on several stops with none of them."""
    number = {name: index for index, name in enumerate(failing)}
    alone = {rack: number[names[0]] for rack, names in of_rack.items() if len(names) == 1}
    label = np.array([alone.get(rack, NONE) for rack in racks])
    hosts = np.where(found.host_rack == NONE, NONE, label[found.host_rack])
    switches = label[found.switch_rack]
    used = set(hosts.tolist()) | set(switches.tolist())
    for index, row in enumerate(_losses(found, hosts, switches, len(failing))):
        if index in used or domain != "rack":
            yield Loss(domain, failing[index], *row)


def _losses(found: _Layout, host_in: Numbers, switch_in: Numbers, count: int) -> Iterator[tuple[int, int, int, float]]:
    """Yield, domain by domain, hosts, GPUs lost, GPUs cut off and the share of the bisection.

    Args:
        found: the design.
        host_in: the domain of each host, NONE where it is in none.
        switch_in: the same of each switch.
        count: how many domains there are.
    """
    hosts = _count(host_in, count)
    gpus = _count(host_in, count, found.gpus)
    domain = switch_in[found.leaf]
    lowest = np.full(len(found.port_host), np.iinfo(np.int64).max)
    highest = np.full(len(found.port_host), NONE)
    np.minimum.at(lowest, found.ports, domain)
    np.maximum.at(highest, found.ports, domain)
    alone = (lowest == highest) & (host_in[found.port_host] != lowest)
    each = found.gpus[found.port_host] / np.bincount(found.port_host)[found.port_host]
    cut = _count(np.where(alone, lowest, NONE), count, each)
    tiers = [_gone(switch_in[low], switch_in[high], count) for low, high in found.uplinks]
    share = np.max(tiers or [hosts * 0], axis=0)
    for number in range(count):
        yield int(hosts[number]), int(gpus[number]), round(float(cut[number])), float(share[number])


def _gone(low: Numbers, high: Numbers, count: int) -> npt.NDArray[np.float64]:
    """Return for each domain the share of links of which an end is in it."""
    lost = _count(low, count) + _count(np.where(high == low, NONE, high), count)
    return np.asarray(lost / max(len(low), 1), np.float64)


def _count(labels: Numbers, count: int, weights: npt.NDArray[np.generic] | None = None) -> npt.NDArray[np.float64]:
    """Return how many, or how much, is in each domain."""
    inside = labels >= 0
    of_each = None if weights is None else weights[inside].astype(np.float64)
    return np.bincount(labels[inside], of_each, minlength=count).astype(np.float64)


def domains_csv(rows: Iterator[Loss]) -> Iterator[str]:
    """Yield failure-domains.csv line by line."""
    yield HEADER
    for row in rows:
        lost = f"{row.hosts},{row.gpus_lost},{row.gpus_cut_off},{row.bisection_lost:.4f}"
        yield f"{row.domain},{row.name},{lost}\n"
