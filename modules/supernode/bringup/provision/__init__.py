"""The engine's side of a run: preview, update, refresh, destroy every stack, and read what came back."""

from __future__ import annotations

from supernode.bringup.provision.events import Row
from supernode.bringup.provision.run import destroy, exported, fence, forget, outputs, preview, refresh, up
from supernode.bringup.provision.session import Session, prepare_stack

__all__ = [
    "Row",
    "Session",
    "destroy",
    "exported",
    "fence",
    "forget",
    "outputs",
    "prepare_stack",
    "preview",
    "refresh",
    "up",
]
