"""A proposed document while it grows: each value with where it comes from."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from supernode.bringup.survey.voting import Vote
from supernode.records import Finding, Verdict
from supernode.spec.yamltext import spell

OBSERVED, DOCUMENT, DEFAULT, NOBODY = "observed", "document", "default", "nobody"
Path = tuple[str | int, ...]
_ORDER = (
    "schema", "name", "site", "bmc", "access", "racks", "pools", "fabric", "software", "machines", "stacks", "budgets",
    "verify",
)  # fmt: skip
_MISSING = object()


@dataclass(frozen=True)
class Source:
    """Where a value comes from.

    Attributes:
        origin: "observed", "document" (the environment's own), "default", or "nobody": it has to be filled in.
        how: what showed it, or why it could not be observed.
    """

    path: str
    value: Any
    origin: str
    how: str


@dataclass
class Draft:
    """A document in the making.

    Attributes:
        document: the environment's own, {} where there is none: what cannot be observed is taken from it.
    """

    document: Mapping[str, Any] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    sources: list[Source] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def see(self, path: Path, value: Any, how: str) -> None:
        """Put what was observed."""
        self._put(path, value)
        self.note(path, value, OBSERVED, how)

    def elect(self, path: Path, found: Vote[Any] | None, why: str, default: Any = _MISSING, write: Any = None) -> None:
        """Put what most places show, listing those that show something else; where none does, what `keep` would.

        Args:
            path: where.
            found: the vote.
            why: it could not be observed, where it was not.
            default: see `keep`.
            write: turns a value into what the document writes.
        """
        if found is None or not found.sure:
            self.keep(path, why if found is None else f"no majority: {found.how} say {found.value}", default)
        else:
            self.see(path, write(found.value) if write else found.value, found.how)
        if found is not None:
            self.differ(spell(path), found)

    def differ(self, what: str, found: Vote[Any], hint: str = "") -> None:
        """List the places that show something else than most."""
        most = f"{found.how} have {_shown(found.value)}"
        for place, value in found.others:
            cause = f"{place} has another {what} than most: {_shown(value)}, {most}"
            wanted = f"{what} as on most: {_shown(found.value)}"
            self.findings.append(Finding("alike", place, Verdict.FAIL, wanted, _shown(value), cause=cause, hint=hint))

    def keep(self, path: Path, why: str, default: Any = _MISSING) -> None:
        """Put what the environment's document says, else the default; list either as not observed."""
        value = self.known(path)
        if value is not None:
            self._put(path, copy.deepcopy(value))
            self.note(path, value, DOCUMENT, why)
        elif default is None:
            return
        elif default is not _MISSING:
            self._put(path, default)
            self.note(path, default, DEFAULT, why)
        else:
            self.note(path, None, NOBODY, why)

    def keep_rest(self, path: Path, why: str) -> None:
        """Take over from the document what nothing was said of under a path."""
        for key, value in (self.known(path) or {}).items():
            there = self._at(path)
            if not isinstance(there, Mapping) or key not in there:
                self._put((*path, key), copy.deepcopy(value))
                self.note((*path, key), value, DOCUMENT, why)

    def note(self, path: Path, value: Any, origin: str, how: str) -> None:
        """Say where a value comes from."""
        self.sources.append(Source(spell(path), value, origin, how))

    def known(self, path: Path) -> Any:
        """Return what the environment's document says at a path, None where it says nothing."""
        return _find(self.document, path)

    def _at(self, path: Path) -> Any:
        return _find(self.values, path)

    def _put(self, path: Path, value: Any) -> None:
        at: Any = self.values
        for key in path[:-1]:
            at = at.setdefault(key, {})
        at[path[-1]] = value

    def text(self, head: Iterable[str] = ()) -> str:
        """Write the document, what was not observed named in its head."""
        rows = [s for s in self.sources if s.origin != OBSERVED]
        lines = [*head, *(f"# not observed: {row.path}: {_told(row)}" for row in rows)]
        ordered = {key: self.values[key] for key in _ORDER if key in self.values}
        ordered |= {key: value for key, value in self.values.items() if key not in ordered}
        body = yaml.safe_dump(ordered, sort_keys=False, default_flow_style=None, width=120, allow_unicode=True)
        return "".join(f"{' '.join(line.split())}\n" for line in lines) + body


def _told(row: Source) -> str:
    taken = {DOCUMENT: "taken from the environment's document", DEFAULT: "the default"}
    return f"{taken.get(row.origin, 'nobody says it: fill it in')} ({row.how})"


def _find(document: Any, path: Path) -> Any:
    for key in path:
        if isinstance(document, Mapping):
            document = document.get(key)
        elif isinstance(document, list) and isinstance(key, int) and key < len(document):
            document = document[key]
        else:
            return None
    return document


def _shown(value: Hashable) -> str:
    return ", ".join(map(str, value)) or "none" if isinstance(value, tuple) else str(value)
