"""Blast radius: how many machines in service one run may change, the one answer for plan, provider and playbooks."""

from __future__ import annotations

import math


def at_once(share: float, serving: int) -> int:
    """Return how many of the machines in service may be changed in one run; one may always be.

    Args:
        share: `machines.change_at_once`.
        serving: how many are in service.
    """
    return max(1, math.floor(share * serving))
