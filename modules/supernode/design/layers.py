"""The two layers of a design as figures: the scale-up domains and the scale-out fabric."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from supernode import catalog, families
from supernode.design.columns import CORE, LEAF, SPINE
from supernode.families import Graph, Parameters, Proofs
from supernode.spec import scale_up as spec_scale_up
from supernode.spec import sizing
from supernode.units import MbitPerS

if TYPE_CHECKING:
    from supernode.design.model import Design
    from supernode.spec import Environment

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ScaleUpLayer:
    """The domains of a pool; all are alike.

    Card i of a domain is accelerator i % gpus of its host i // gpus, in the order of the hosts' ordinals.

    Attributes:
        graph: of one domain.
        domains: how many the pool has, spares included.
        gpus: accelerators of a host.
        rate: of a link of full share, in one direction.
    """

    family: str
    parameters: Parameters
    graph: Graph
    proofs: Proofs
    pool: str
    domains: int
    gpus: int
    rate: MbitPerS

    @cached_property
    def holder(self) -> Numbers:
        """The host, inside the domain, that each card and switch is built into; -1 for a switch that stands apart.

        A switch is built into a host when all cards and switches below it are.
        """
        found = np.full(self.graph.vertices, -1, dtype=np.int64)
        found[: self.graph.cards] = np.arange(self.graph.cards) // self.gpus
        links = self.graph.links
        first = self.graph.cards
        for tier in self.graph.tiers:
            mine = (links["b"] >= first) & (links["b"] < first + tier) & (links["a"] < first)
            below, switch = found[links["a"][mine]], links["b"][mine].astype(np.int64) - first
            least, most = np.full(tier, np.iinfo(np.int64).max), np.full(tier, -1)
            np.minimum.at(least, switch, below)
            np.maximum.at(most, switch, below)
            found[first : first + tier] = np.where(least == most, most, -1)
            first += tier
        return found

    @cached_property
    def cabled(self) -> npt.NDArray[np.bool_]:
        """Which links of a domain leave a host: these are cables, the others are traces and backplanes."""
        a, b = self.holder[self.graph.links["a"]], self.holder[self.graph.links["b"]]
        return np.asarray((a != b) | (a < 0))

    @property
    def cables(self) -> int:
        """How many cables all domains have."""
        return int(np.count_nonzero(self.cabled)) * self.domains

    def figures(self) -> dict[str, Any]:
        """Return the figures of a domain, and how many there are."""
        proofs = self.proofs
        over = {"oversubscription": round(max(proofs.oversubscription), 4)} if proofs.oversubscription else {}
        return {
            "family": self.family,
            "domains": self.domains,
            "cards": proofs.cards,
            "switches": sum(proofs.switches),
            "diameter": proofs.diameter,
            "mean_hops": round(proofs.mean_hops, 4),
            "ports_per_card": proofs.ports_per_card,
            "links": proofs.links,
            **over,
            "bisection_gbps": round(proofs.bisection * self.rate / 1000, 3),
        }


def scale_up(env: Environment) -> ScaleUpLayer | None:
    """Return the scale-up layer of a checked environment; None where it says nothing of one."""
    pool = spec_scale_up.pool_of(env)
    if env.scale_up is None or pool is None:
        return None
    p = spec_scale_up.parameters(env.scale_up)
    graph, proofs = families.proved(p)
    gpus = catalog.server(pool.kind).gpus
    return ScaleUpLayer(
        family=str(env.scale_up.topology["family"]),
        parameters=p,
        graph=graph,
        proofs=proofs,
        pool=pool.name,
        domains=(pool.count + pool.spares) * gpus // proofs.cards,
        gpus=gpus,
        rate=MbitPerS(env.scale_up.rate),
    )


def scale_out(design: Design) -> dict[str, Any]:
    """Return the figures of the fabric: hops are switches passed, bisection and oversubscription as it is cabled.

    Hops are counted between ports that the fabric joins: those of one plane, and of one rail where rails never meet.
    """
    env, links = design.environment, design.columns.links
    fabric, down = env.fabric, links[(links["tier"] == LEAF) & (links["plane"] == 1)]
    near, far, ports = _pairs(design, down)
    pairs = _joined(design, down)
    three = bool(np.any(links["tier"] == CORE))
    beyond = pairs - far
    total = near + 3 * (far - near) + 5 * beyond if three else near + 3 * (pairs - near)
    gpus = {catalog.server(pool.kind).gpus for pool in env.pools if sizing.on_fabric(pool)} - {0}
    over = max(_oversubscription(design))
    return {
        "family": fabric.family,
        "diameter": 1 if pairs == near else 5 if three and beyond else 3,
        "mean_hops": round(total / pairs, 4) if pairs else 0.0,
        **({"ports_per_card": sizing.rails(env) * fabric.planes / gpus.pop()} if len(gpus) == 1 else {}),
        "links": len(links),
        "oversubscription": round(over, 4),
        "bisection_gbps": round(ports * fabric.planes * fabric.rates.rail / 2 / max(over, 1.0) / 1000, 3),
    }


def _pairs(design: Design, down: npt.NDArray[np.void]) -> tuple[int, int, int]:
    """Return how many ordered pairs of ports share a leaf, share a pod (all, in two tiers), and how many ports are."""
    switches, links = design.columns.switches, design.columns.links
    each = np.bincount(down["b"], minlength=len(switches))
    near = int(np.sum(each * (each - 1)))
    pod = np.zeros(len(switches), dtype=np.int64)
    up = links[links["tier"] == SPINE]
    # A leaf is of the pod of the spines that it is cabled to.
    pod[up["a"]] = switches["pod"][up["b"]]
    rail = np.where(switches["rail"] < 0, 0, switches["rail"]) if _apart(design) else np.zeros(len(switches), int)
    shared = np.bincount(pod * (int(rail.max()) + 1) + rail, each).astype(np.int64)
    return near, int(np.sum(shared * (shared - 1))), int(each.sum())


def _joined(design: Design, down: npt.NDArray[np.void]) -> int:
    rails = np.bincount(down["a_port"]) if _apart(design) else np.array([len(down)])
    return int(np.sum(rails * (rails - 1)))


def _apart(design: Design) -> bool:
    return design.environment.fabric.family == "rail-only"


def _oversubscription(design: Design) -> tuple[float, ...]:
    """Return what comes from below over what goes up: at the leaf and at the spine below cores, the highest each."""
    links, rate = design.columns.links, design.environment.fabric.rates.uplink
    if not np.any(links["tier"] == CORE):
        return (design.oversubscription(),)
    down = np.bincount(links["b"][links["tier"] == SPINE], minlength=len(design.columns.switches)) * rate
    up = np.bincount(links["a"][links["tier"] == CORE], minlength=len(design.columns.switches)) * rate
    return design.oversubscription(), float(np.max(down[up > 0] / up[up > 0]))
