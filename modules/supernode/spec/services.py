"""Sections that name a pool for their daemon: it runs on that pool's first active host (`Design.service_host`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from supernode.errors import Path, Problem

if TYPE_CHECKING:
    from supernode.spec.environment import Environment


def pool_named(env: Environment, path: Path, pool: str) -> Iterator[Problem]:
    """Yield what is wrong with a pool that a section names: any pool will do, one that is not there will not."""
    pools = [row.name for row in env.pools]
    if pool not in pools:
        yield Problem(path, f"there is no pool {pool} to run on", f"pools: {', '.join(dict.fromkeys(pools))}")
