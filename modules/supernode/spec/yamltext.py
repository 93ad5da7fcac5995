"""YAML with its lines: what a document says, and where it says it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from supernode.errors import Path, Problem
from supernode.spec import ranges

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parse(text: str, document: str) -> tuple[Any, list[Problem]]:
    """Return what the text says and what keeps it from being read: bad syntax, keys given twice."""
    loader = _LOADER(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None, [Problem((), "the file is empty", document=document)]
        problems = [_twice(path, line, document) for path, line in _duplicates(node, ())]
        return loader.construct_document(node), problems
    except yaml.YAMLError as error:
        return None, [Problem((), _syntax(error), "YAML: check indentation, quotes and brackets just above", document)]
    finally:
        loader.dispose()


def _syntax(error: yaml.YAMLError) -> str:
    what = getattr(error, "problem", None) or str(error).splitlines()[0]
    return f"this is no YAML: {what}"


def _twice(path: Path, line: int, document: str) -> Problem:
    return Problem(path, f"{spell(path)} is given twice, first on line {line}", "keep one of the two", document)


def _duplicates(node: yaml.Node, path: Path) -> Iterator[tuple[Path, int]]:
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield from _duplicates(item, (*path, index))
    if isinstance(node, yaml.MappingNode):
        seen: dict[str, int] = {}
        for key, value in node.value:
            name = str(key.value)
            if name in seen:
                yield (*path, name), seen[name]
            seen.setdefault(name, key.start_mark.line + 1)
            yield from _duplicates(value, (*path, name))


def locate(text: str, path: Path) -> int:
    """Return the line, from 1, of the last thing on `path` that the text holds.

    A key that is missing is located at what should hold it; text that is no YAML, where the parser stopped. Of a key
    given twice, the last one counts.
    """
    try:
        node = yaml.compose(text, Loader=_LOADER)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        return int(mark.line) + 1 if mark else 1
    line, holder = 1, ""
    for part in path:
        found = _step(node, part, holder)
        holder = str(part)
        if found is None:
            break
        line, node = found
    return line


def _step(node: yaml.Node | None, part: str | int, holder: str) -> tuple[int, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in reversed(node.value):
            if str(key.value) == str(part):
                return key.start_mark.line + 1, value
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int):
        for item in node.value:
            part -= ranges.width(_name(item)) if holder == ranges.KEY else 1
            if part < 0:
                return item.start_mark.line + 1, item
    return None


def _name(item: yaml.Node) -> object:
    """Return what an entry of a list is called: itself, or its name."""
    if isinstance(item, yaml.MappingNode):
        return next((value.value for key, value in item.value if key.value == "name"), None)
    return item.value


def spell(path: Path) -> str:
    """Write a path as a person does: pools[0].count."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text
