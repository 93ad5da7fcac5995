"""What a run would change: steps, file diffs, cables to move; computed from the Design and what the last run left."""

from supernode.plan import machine
from supernode.plan.comparing import compare
from supernode.plan.model import FileDiff, Move, Plan, Step
from supernode.plan.recording import snapshot

__all__ = ["FileDiff", "Move", "Plan", "Step", "compare", "machine", "snapshot"]
