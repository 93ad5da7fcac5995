"""What a run would change: steps, file diffs, cables to move; computed from the Design and what the last run left.

The provider asks `plan.machine` and `plan.share` alone, in a process that starts with each engine run; what needs the
Design, and with it numeric libraries and the models of all documents, is loaded by whoever names it first.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from supernode.plan import machine

if TYPE_CHECKING:
    from supernode.plan.comparing import compare
    from supernode.plan.model import FileDiff, Move, Plan, Step
    from supernode.plan.recording import snapshot

__all__ = ["FileDiff", "Move", "Plan", "Step", "compare", "machine", "snapshot"]

_HOME = {"compare": "comparing", "snapshot": "recording"}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME.get(name, 'model')}"), name)
