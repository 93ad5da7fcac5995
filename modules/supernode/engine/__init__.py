"""The Pulumi engine: getting one, its settings, and a small Python language host for the one we build ourselves."""

from __future__ import annotations

from supernode.engine.acquire import Engine, ensure, find
from supernode.engine.settings import environment, renew_passphrase, wrong_passphrase

__all__ = ["Engine", "ensure", "find", "renew_passphrase", "environment", "wrong_passphrase"]
