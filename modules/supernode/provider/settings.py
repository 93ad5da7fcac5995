"""The provider's configuration, as the engine hands it over."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from supernode import workspace

_PLAN = re.compile(r"^[0-9a-f]{8,64}$")
_SECONDS = re.compile(r"^\d{1,12}$", re.ASCII)
_UNIT = re.compile(r"-(su\d+(-\d+)?|fabric\d+)$")  # how an environment's further stacks are named


class ConfigError(ValueError):
    """A value of the provider's configuration that cannot be used.

    Attributes:
        key: the configuration key.
    """

    def __init__(self, key: str, what: str) -> None:
        super().__init__(f"supernode:{key} {what}")
        self.key, self.what = key, what


@dataclass(frozen=True)
class Settings:
    """What holds for every resource of a stack.

    Attributes:
        folder: the environment's folder as configured; None means that of the stack's name.
        reinstall: slots in service that may be powered off and reinstalled; empty unless a plan's hash came with it and
            a time that is still to come.
        power_off_on_delete: a machine that is deleted is switched off.
    """

    folder: str | None = None
    reinstall: frozenset[str] = field(default_factory=frozenset)
    power_off_on_delete: bool = False

    @classmethod
    def read(cls, config: Mapping[str, str], now: float | None = None) -> Settings:
        """Read the configuration.

        Args:
            config: key to text, without the namespace.
            now: seconds since the epoch; the clock's when not given.

        Raises:
            ConfigError: a value cannot be used.
        """
        plan = config.get("plan", "")
        if plan and not _PLAN.match(plan):
            raise ConfigError("plan", f"{plan!r} is not the hash of a plan")
        slots = _slots(config.get("reinstall", ""))
        holds = _until(config.get("until", "")) > (time.time() if now is None else now)
        off = config.get("powerOffOnDelete", "false") or "false"
        if off not in ("true", "false"):
            raise ConfigError("powerOffOnDelete", f"{off!r} is neither true nor false")
        return cls(config.get("folder") or None, frozenset(slots if plan and holds else ()), off == "true")

    def base(self, urn: str) -> Path:
        """Return the folder that references are relative to, for a resource of this URN."""
        if self.folder:
            return workspace.root() / Path(self.folder).expanduser()
        stack = _UNIT.sub("", urn.split("::")[0].removeprefix("urn:pulumi:"))
        inventories = workspace.root() / "inventories"
        places = (inventories / stack, inventories / "examples" / stack)
        return next((p for p in places if p.is_dir()), places[0])


def _until(text: str) -> int:
    """Read when a confirmation ends; one without an end is over: who was killed left it behind."""
    if text and not _SECONDS.match(text):
        raise ConfigError("until", f"{text!r} is not a time in seconds since 1970")
    return int(text or 0)


def _slots(text: str) -> list[str]:
    if not text:
        return []
    try:
        slots = json.loads(text)
    except ValueError:
        slots = None
    if not isinstance(slots, list) or not all(isinstance(s, str) for s in slots):
        raise ConfigError("reinstall", 'is not a JSON list of slots such as ["r01u05"]')
    return slots
