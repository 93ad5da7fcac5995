"""Contradictions that one document shows by itself or against the catalogue."""

from __future__ import annotations

from supernode.errors import Problem
from supernode.spec.allocation import Allocation
from supernode.spec.environment import Environment
from supernode.spec.machines import Machines


def environment(env: Environment) -> list[Problem]:
    """Return what is wrong with an environment whose every value is right by itself."""
    return []


def machines(found: Machines) -> list[Problem]:
    """Return identities that two slots claim."""
    return []


def allocation(env: Environment, saved: Allocation) -> list[Problem]:
    """Return what is wrong with an allocation by itself."""
    return []
