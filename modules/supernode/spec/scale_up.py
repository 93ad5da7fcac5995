"""The scale-up layer: how the accelerators of a pool are joined with each other, beside the fabric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, ValidationError, WithJsonSchema

from supernode import catalog
from supernode.errors import Path, Problem
from supernode.spec.parts import Document, Name, Rate

if TYPE_CHECKING:
    from supernode.families import Parameters
    from supernode.spec.environment import Environment, Pool

PATH: Path = ("scale_up", "topology")
OFFERED = 4  # that a refusal names


class ScaleUp(Document):
    """Domains of accelerators: NVLink, UB, PCIe or a direct mesh.

    `topology` is a family with its parameters; every domain of the pool is one of these. `rate` is what a link carries
    in one direction. `pool` may be left out where one pool has accelerators. More hops than `max_hops` between two
    cards of a domain are refused.
    """

    rate: Rate
    topology: Annotated[
        Mapping[str, Any],
        WithJsonSchema({"type": "object", "required": ["family"], "properties": {"family": {"type": "string"}}}),
    ]
    pool: Name | None = None
    max_hops: Annotated[int, Field(ge=1)] | None = None


def pool_of(env: Environment) -> Pool | None:
    """Return the pool whose accelerators are joined; None where that is not told."""
    known = catalog.server_kinds()
    named = env.scale_up.pool if env.scale_up else None
    pools = [pool for pool in env.pools if pool.kind in known and catalog.server(pool.kind).gpus]
    pools = [pool for pool in pools if named in (None, pool.name)]
    return pools[0] if len(pools) == 1 else None


def parameters(scale_up: ScaleUp) -> Parameters:
    """Return the family's parameters of a section that was checked."""
    from supernode.families import family

    return family(str(scale_up.topology["family"])).Parameters.model_validate(_plain(scale_up.topology))


def consistency(env: Environment) -> Iterator[Problem]:
    """Yield what of the section contradicts itself, the pools, or what it asks for."""
    if env.scale_up is None:
        return
    pool = pool_of(env)
    if pool is None:
        hint = "pools with accelerators: " + ", ".join(_accelerated(env)) if _accelerated(env) else None
        yield Problem(("scale_up",), "scale_up does not name one pool with accelerators", hint)
    problems = list(_topology(env.scale_up))
    yield from problems
    if not problems:
        yield from _hops(env.scale_up)
        if pool is not None:
            yield from _domains(env.scale_up, pool)


def _accelerated(env: Environment) -> list[str]:
    known = catalog.server_kinds()
    return [pool.name for pool in env.pools if pool.kind in known and catalog.server(pool.kind).gpus]


def _topology(scale_up: ScaleUp) -> Iterator[Problem]:
    """Hold the parameters against the family's own model, which is loaded for this alone."""
    from supernode.families import families
    from supernode.spec import wording

    name = scale_up.topology.get("family")
    if not isinstance(name, str) or name not in families():
        what = f"scale_up.topology.family is {name}" if name is not None else "scale_up.topology.family is missing"
        at = (*PATH, "family") if name is not None else PATH
        yield Problem(at, what, f"families: {', '.join(families())}")
        return
    model = families()[name].Parameters
    try:
        model.model_validate(_plain(scale_up.topology))
    except ValidationError as error:
        for found in wording.problems(wording.telling(error.errors(include_url=False)), model, "environment"):
            hint = found.hint and found.hint.replace("the file", "scale_up.topology")
            yield Problem((*PATH, *found.path), f"scale_up.topology: {found.what.removeprefix(': ')}", hint)


def _plain(topology: Mapping[str, Any]) -> dict[str, Any]:
    """Make lists tuples, as a family has them."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in topology.items()}


def _hops(scale_up: ScaleUp) -> Iterator[Problem]:
    """Measure what was promised, and say what would keep it."""
    from supernode import families
    from supernode.families import nearest

    if scale_up.max_hops is None:
        return
    p = parameters(scale_up)
    _, proofs = families.proved(p)
    if proofs.diameter > scale_up.max_hops:
        cards, most = proofs.cards, scale_up.max_hops
        what = (
            f"{nearest.described(p)} needs {proofs.diameter} hops between the farthest of its {cards} cards "
            f"({proofs.ports_per_card} ports a card, measured over all), max_hops is {most}"
        )
        yield Problem(("scale_up", "max_hops"), what, _instead(cards, most))


def _instead(cards: int, most: int) -> str:
    from supernode.families import nearest

    least = nearest.least_ports(cards, most)
    bound = f"{cards} cards within {most} hops need {least} ports a card in any direct network"
    offered = ", ".join(str(found) for found in nearest.nearest(cards, most)[:OFFERED])
    return f"{bound}; nearest: {offered}" if offered else bound


def _domains(scale_up: ScaleUp, pool: Pool) -> Iterator[Problem]:
    from supernode import families

    size = families.family(str(scale_up.topology["family"])).size(parameters(scale_up))
    each = catalog.server(pool.kind).gpus
    hosts = pool.count + pool.spares
    if size % each and each % size:
        what = f"a domain of {size} cards is no whole number of {pool.kind}, which have {each} each"
        yield Problem(PATH, what, f"a multiple of {each}, or a divisor of it")
    elif hosts * each % size:
        what = f"pool {pool.name} has {hosts} hosts with {hosts * each} cards, domains have {size}"
        yield Problem(PATH, what, f"hosts by the {max(size // each, 1)}")
