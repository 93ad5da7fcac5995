"""Collective libraries: the variables that each reads, and what their values may be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Class = Literal["system", "debugging", "undocumented"]


@dataclass(frozen=True)
class Variable:
    """A variable that a library reads.

    Attributes:
        kind: "system" may stay in a configuration; the others are there for a stated reason, if at all.
        since: the version that brought it; empty where no document says it.
        exact: its value is a list of names, which are prefixes unless "=" stands before them.
        range: what a number may be.
        choices: what a word may be.
    """

    name: str
    kind: Class
    since: str = ""
    exact: bool = False
    range: tuple[int, int] | None = None
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class CollectiveLibrary:
    """A library.

    Attributes:
        version: the newest whose names are known.
        variables: by their full names.
        gone: names that circulate and that it does not read, each with what there is to say of it.
    """

    name: str
    version: str
    source: str
    prefix: str
    variables: Mapping[str, Variable]
    gone: Mapping[str, str]


def read(name: str, row: Mapping[str, Any]) -> CollectiveLibrary:
    """Read a library's file."""
    prefix: str = row["prefix"]
    known: dict[str, Variable] = {}
    for kind, names in _classes(row):
        for short, since in names.items():
            known[prefix + short] = Variable(
                prefix + short,
                kind,
                since,
                exact=short in row["exact"],
                range=_pair(row["ranges"].get(short)),
                choices=tuple(row["choices"].get(short, ())),
            )
    gone = {prefix + short: why for short, why in row["gone"].items()}
    return CollectiveLibrary(name, row["version"], row["source"], prefix, known, gone)


def _classes(row: Mapping[str, Any]) -> Iterator[tuple[Class, Mapping[str, str]]]:
    """Yield the names of each class with their versions: words such as IB_TC=2.1.15, or the name alone."""
    classes: tuple[Class, ...] = ("undocumented", "debugging", "system")
    for kind in classes:
        pairs = (word.partition("=") for word in str(row[kind]).split())
        yield kind, {name: since for name, _, since in pairs}


def _pair(limits: Sequence[int] | None) -> tuple[int, int] | None:
    return (limits[0], limits[1]) if limits else None


def number(version: str) -> tuple[int, ...]:
    """Return a version such as "2.30.5" in a form that compares."""
    return tuple(int(part) for part in version.split("."))
