"""Racks by the thousand: one line for r[0001-4096] becomes as many entries, each still found on that line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from supernode.errors import Path, Problem

KEY = "racks"  # the lists of this name hold ranges
NAME = r"^[a-z][a-z0-9]*(\[\d+-\d+\])?$"
MOST = 100_000
_RANGE = re.compile(r"([a-z][a-z0-9]*)\[(\d+)-(\d+)\]")
_LIKE = re.compile(r".*[\[\]].*")


def names(text: str) -> list[str]:
    """Return the names that a range stands for; of any other text, itself.

    The numbers are as wide as they are written: r[01-12] is r01 … r12, and r[1-12] is r1 … r12.

    Raises:
        ValueError: it looks like a range and is none.
    """
    if not _LIKE.fullmatch(text):
        return [text]
    match = _RANGE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text} is no range such as r[001-128]")
    prefix, first, last = match.groups()
    if len(first) != len(last) and "0" in (first[0], last[0]):
        raise ValueError(f"{text} begins and ends with numbers of different width")
    count = int(last) - int(first) + 1
    if count < 1:
        raise ValueError(f"{text} ends before it begins")
    if count > MOST:
        raise ValueError(f"{text} stands for {count} racks, at most {MOST} are taken")
    width = len(first) if len(first) == len(last) else 0
    return [f"{prefix}{number:0{width}d}" for number in range(int(first), int(last) + 1)]


def width(text: object) -> int:
    """Return for how many entries a name stands; what cannot be read stands for itself."""
    try:
        return len(names(text)) if isinstance(text, str) else 1
    except ValueError:
        return 1


def expand(data: Any) -> tuple[Any, list[Problem]]:
    """Return environment.yml's content with every range of racks written out, and the ranges that are none.

    Paths count the entries as they are written out; `spec.locate` does, too.
    """
    problems: list[Problem] = []
    return _expand(data, (), problems), problems


def _expand(value: Any, path: Path, problems: list[Problem]) -> Any:
    if isinstance(value, dict):
        return {key: _expand(inner, (*path, key), problems) for key, inner in value.items()}
    if not isinstance(value, list):
        return value
    if not path or path[-1] != KEY:
        return [_expand(inner, (*path, index), problems) for index, inner in enumerate(value)]
    found: list[Any] = []
    for item in value:
        try:
            found += _entries(item)
        except ValueError as error:
            problems.append(Problem((*path, len(found)), str(error), "write r[001-128], or name racks one by one"))
            found.append(item)
    return found


def _entries(item: Any) -> Iterator[Any]:
    if isinstance(item, str):
        yield from names(item)
    elif isinstance(item, dict) and isinstance(item.get("name"), str):
        yield from _racks(item)
    else:
        yield item


def _racks(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    listed, each = names(item["name"]), item.get("per_row")
    if listed == [item["name"]]:
        yield item
        return
    rest = {key: value for key, value in item.items() if key != "per_row"}
    row, position = item.get("row", 1), item.get("position")
    if not all(isinstance(value, int | None) for value in (row, position, each)) or (each is not None and each < 1):
        raise ValueError(f"rack range {item['name']}: row, position and per_row are whole numbers, at least 1")
    for index, name in enumerate(listed):
        across, along = divmod(index, each) if each else (0, index)
        place = {} if position is None else {"position": position + along}
        yield {**rest, "name": name, "row": row + across, **place}
