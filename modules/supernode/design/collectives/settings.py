"""What a host's collective library is told, line by line, and what it is deliberately not told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from supernode import catalog
from supernode.catalog.libraries import Class
from supernode.spec.collectives import Collectives

Owner = Literal["ours", "image-owned", "plugin-owned"]


@dataclass(frozen=True)
class Setting:
    """One variable.

    Attributes:
        kind: where the library's guide has it.
        reason: why it has this value.
        source: what the value was taken from: a place in environment.yml, the catalogue, or the library's guide.
    """

    name: str
    value: str
    kind: Class
    reason: str
    source: str
    owner: Owner = "ours"


@dataclass(frozen=True)
class Left:
    """A variable that one might expect and that is not written."""

    name: str
    reason: str
    owner: Owner | None = None


@dataclass(frozen=True)
class Tuning:
    """Everything about one host's library.

    Attributes:
        version: the oldest that reads it.
        settings: in the order of the file.
        left: what is not written, and why.
    """

    library: str
    version: str
    settings: tuple[Setting, ...]
    left: tuple[Left, ...]

    def values(self) -> dict[str, str]:
        """Return the variables and their values."""
        return {row.name: row.value for row in self.settings}


class Draft:
    """Settings while they are collected: what environment.yml says goes before what the design says."""

    def __init__(self, section: Collectives, owners: Mapping[str, Owner]) -> None:
        self.section, self.owners = section, owners
        self.known = catalog.library(section.library).variables
        self.rows: dict[str, Setting | Left] = {}

    def set(self, name: str, value: str, reason: str, source: str) -> None:
        """Write a variable, unless the machine's image or the network plugin owns it."""
        owner = self.owners.get(name)
        if owner is not None:
            self.leave(name, f"the {owner.removesuffix('-owned')} of these machines sets it itself", owner)
        else:
            self.rows[name] = Setting(name, value, self.known[name].kind, reason, source)

    def leave(self, name: str, reason: str, owner: Owner | None = None) -> None:
        """Say that a variable is not written."""
        self.rows[name] = Left(name, reason, owner)

    def finish(self) -> Tuning:
        """Apply what environment.yml says and return the whole."""
        for name, setting in self.section.settings.items():
            reason = setting.because or "asked for in environment.yml"
            self.rows[name] = Setting(
                name, setting.value, self.known[name].kind, reason, f"environment.yml: collectives.settings.{name}"
            )
        rows = self.rows.values()
        return Tuning(
            self.section.library,
            self.section.version,
            tuple(row for row in rows if isinstance(row, Setting)),
            tuple(row for row in rows if isinstance(row, Left)),
        )
