"""What the agent is told: one JSON document, rendered from the Design (`design.cooling_agent`)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from supernode.clients.cdu import Access
from supernode.errors import CouldNotRun


@dataclass(frozen=True)
class Unit:
    """One cooling unit: how it is reached, how often, and whose heat it moves."""

    access: Access
    interval_s: float
    racks: tuple[str, ...]

    @property
    def name(self) -> str:
        """Its designed name."""
        return self.access.unit


@dataclass(frozen=True)
class Settings:
    """The whole document.

    Attributes:
        address, port: where metrics are served.
    """

    address: str
    port: int
    units: tuple[Unit, ...]


def read(path: Path) -> Settings:
    """Read the document.

    Raises:
        CouldNotRun: it cannot be read, or is not what the Design renders.
    """
    try:
        return parse(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise CouldNotRun(str(path), f"cannot be read: {error.strerror}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise CouldNotRun(str(path), f"is no configuration of this agent: {error!r}") from error


def parse(document: Any) -> Settings:
    """Make settings of the document's content; an unknown kind is a KeyError like a missing key."""
    units = tuple(
        Unit(Access.of(row), float(row["interval_s"]), tuple(str(rack) for rack in row["racks"]))
        for row in document["units"]
    )
    for unit in units:
        _ = unit.access.hardware  # a kind that this agent does not know ends it now, not at the first poll
    return Settings(str(document["listen"]["address"]), int(document["listen"]["port"]), units)
