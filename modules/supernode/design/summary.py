"""The design in a few numbers: what `supernode design --json` prints and `supernode compare` puts side by side."""

from __future__ import annotations

from typing import Any

import numpy as np

from supernode import catalog
from supernode.design import layers, physical
from supernode.design.model import Design
from supernode.design.naming import TIERS

LINKS = ("host_leaf", "leaf_spine", "spine_core")


def build(design: Design) -> dict[str, Any]:
    """Return the summary.

    `gpus` and `hosts` are those that shall work, spares not among them. `links` are logical ones at line rate,
    `cables` physical ones: where a socket is divided, one cable carries several links. `management_links` has one for
    every management port: of a host, its controller and a switch. What a design does not have is left out.
    """
    columns, env = design.columns, design.environment
    working = np.array([state == "active" for state in design.states()], dtype=bool)
    active = np.bincount(columns.hosts["pool"][working], minlength=len(env.pools)).tolist()
    rented = [bool(pool.cloud) for pool in env.pools]
    owned = int(np.count_nonzero(~np.array(rented)[columns.hosts["pool"]]))
    found: dict[str, Any] = {
        "name": design.name,
        "digest": design.digest,
        "gpus": sum(n * catalog.server(pool.kind).gpus for n, pool in zip(active, env.pools, strict=True)),
        "hosts": sum(active),
        "switches": _counted(columns.switches["tier"], TIERS),
        "links": _counted(columns.links["tier"], LINKS),
        "cables": physical.cables(physical.fitted(design)) + (design.scale_up.cables if design.scale_up else 0),
        "management_links": 2 * owned + len(columns.switches),
    }
    if design.scale_up:
        found["scale_up"] = design.scale_up.figures()
    return found | {"scale_out": layers.scale_out(design)}


def _counted(column: Any, names: tuple[str, ...]) -> dict[str, int]:
    counts = np.bincount(column, minlength=len(names)).tolist()
    return {name: count for name, count in zip(names, counts, strict=True) if count}
