"""The scheduler that hands the verified machines to jobs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from supernode import catalog
from supernode.errors import Path, Problem
from supernode.spec import services
from supernode.spec.parts import Document, Name

if TYPE_CHECKING:
    from supernode.spec.environment import Environment


class Scheduler(Document):
    """Slurm of the suite.

    `controller` is the pool on whose first host its controller runs; every host with accelerators is a node.
    """

    kind: Literal["slurm"]
    controller: Name
    partition: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$", max_length=32)] = "batch"


def consistency(env: Environment) -> Iterator[Problem]:
    """Check that there is a machine for the controller that runs no jobs, and that there are nodes whose devices show.

    Slurm hands accelerators out by their device files, which only a driver makes.
    """
    if env.scheduler is None:
        return
    place: Path = ("scheduler", "controller")
    yield from services.pool_named(env, place, env.scheduler.controller)
    known = {pool.name: catalog.server(pool.kind) for pool in env.pools if pool.kind in catalog.server_kinds()}
    mine = known.get(env.scheduler.controller)
    if mine is not None and mine.gpus:
        what = f"pool {env.scheduler.controller} runs jobs: its machines may be full, drained or taken out"
        yield Problem(place, what, "name a pool without accelerators, a service pool")
    nodes = [kind for kind in known.values() if kind.gpus]
    if len(known) == len(env.pools) and not nodes:
        yield Problem(("scheduler",), "no pool has accelerators: there is nothing to schedule", None)
    strange = sorted({kind.name for kind in nodes if not kind.gpu_vendor})
    if strange:
        what = f"it is not known which device files the accelerators of {', '.join(strange)} have"
        yield Problem(("scheduler",), what, "leave the section out; a kind says it by `gpu_id` in the catalogue")
    elif nodes and env.gpu_driver is None:
        what = "accelerators are handed out by their device files, and no driver is there that makes them"
        yield Problem(("scheduler",), what, "add the section gpu_driver")
