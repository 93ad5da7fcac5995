"""A support bundle: what another engineer needs to understand a run, without a secret in it."""

from __future__ import annotations

from supernode.bringup.bundle.contents import Item, gather
from supernode.bringup.bundle.journal import journals
from supernode.bringup.bundle.looked_for import Secrets, known
from supernode.bringup.bundle.writing import leaks, write

__all__ = ["Item", "Secrets", "gather", "journals", "known", "leaks", "write"]
