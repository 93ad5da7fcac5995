"""CSV as people keep it: a mark in front, semicolons, lines of title, merged cells, headings in any case."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from supernode.verify.sheets.rows import Row, Unreadable

_ENDS = ("a_device", "a_port", "b_device", "b_port")
_COLUMNS = (*_ENDS, "cable", "length_m")
# The headings of our own cabling.csv, and those of the point-to-point sheet of UFM's Cable Validation Tool.
_KNOWN: tuple[Mapping[str, str], ...] = (
    {name: name for name in _COLUMNS},
    {"a_device": "A-Node Name", "a_port": "A-Port", "b_device": "Z-Node Name", "b_port": "Z-Port"},
)
_LOOKED_AT = 50  # lines above the headings


@dataclass(frozen=True)
class ColumnMap:
    """Where a sheet keeps what.

    Attributes:
        columns: heading, or number of the column from 1, of a_device, a_port, b_device, b_port, cable and length_m.
        devices: the design's name of a device by the sheet's.
        ports: the design's name of a port by the sheet's, for all devices.
    """

    columns: Mapping[str, str | int]
    devices: Mapping[str, str] = field(default_factory=dict)
    ports: Mapping[str, str] = field(default_factory=dict)


def column_map(document: Any) -> ColumnMap:
    """Check a map as it was read from YAML.

    Raises:
        Unreadable: with every problem of it.
    """
    if not isinstance(document, dict):
        raise Unreadable([(0, "the map is no mapping")], "begin it with `columns:`")
    problems = [f"{key} is no key of a map" for key in document if key not in ("columns", "devices", "ports")]
    tables: dict[str, dict[str, Any]] = {}
    for name in ("columns", "devices", "ports"):
        table = document.get(name) or {}
        if not isinstance(table, dict) or not all(isinstance(value, (str, int)) for value in table.values()):
            problems.append(f"{name} is no mapping of names")
            continue
        tables[name] = {str(key): value for key, value in table.items()}
    columns = tables.get("columns", {})
    problems += [f"columns.{key} is none of {', '.join(_COLUMNS)}" for key in columns if key not in _COLUMNS]
    problems += [f"columns.{key} is missing" for key in _ENDS if "columns" in tables and key not in columns]
    problems += [
        f"columns.{key}: columns count from 1" for key, at in columns.items() if isinstance(at, int) and at < 1
    ]
    if problems:
        raise Unreadable([(0, what) for what in problems], "docs/exports.md shows a map")
    named = ({_fold(key): str(value) for key, value in tables[name].items()} for name in ("devices", "ports"))
    return ColumnMap(columns, *named)


def decode(data: bytes) -> str:
    """Return the text of a sheet: UTF-8 or UTF-16 by its mark, else UTF-8, else what Windows writes."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def read(text: str, wanted: ColumnMap | None = None) -> list[Row]:
    """Return the rows that name a port; a blank device is the one above, as merged cells leave it.

    Raises:
        Unreadable: no line has the headings, or a length is no number.
    """
    records = list(_records(text))
    start, at = _headings(records, wanted)
    problems: list[tuple[int, str]] = []
    found: list[Row] = []
    above = {"a_device": "", "b_device": ""}
    for line, cells in records[start:]:
        values = {key: cells[column].strip() if column < len(cells) else "" for key, column in at.items()}
        if not values["a_port"] and not values["b_port"]:
            continue
        for key in above:
            above[key] = values[key] = values[key] or above[key]
        length, wrong = _length(values.get("length_m", ""))
        problems += [(line, wrong)] if wrong else []
        a_device, a_port, b_device, b_port = (values[key] for key in _ENDS)
        found.append(Row((line,), a_device, a_port, b_device, b_port, values.get("cable", ""), length))
    if problems:
        raise Unreadable(problems)
    return found


def _records(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the records with the line on which each begins; a quoted cell may go over several."""
    head = "\n".join(text.splitlines()[:_LOOKED_AT])
    delimiter = max(",;\t", key=head.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    line = 1
    try:
        for cells in reader:
            yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        raise Unreadable([(line, f"no CSV: {error}")]) from error


def _headings(records: list[tuple[int, list[str]]], wanted: ColumnMap | None) -> tuple[int, dict[str, int]]:
    """Return where the rows begin, and the 0-based column of each thing."""
    maps = (wanted.columns,) if wanted is not None else _KNOWN
    for index, (_, cells) in enumerate(records[:_LOOKED_AT]):
        names = [_fold(cell) for cell in cells]
        for columns in maps:
            at = {key: _column(names, heading) for key, heading in columns.items()}
            named = any(isinstance(heading, str) for heading in columns.values())
            if named and all(at.get(key) is not None for key in _ENDS):
                return index + 1, {key: column for key, column in at.items() if column is not None}
    if wanted is not None and all(isinstance(heading, int) for heading in wanted.columns.values()):
        return 0, {key: int(heading) - 1 for key, heading in wanted.columns.items()}
    said = ", ".join(str(heading) for heading in (wanted.columns if wanted else _KNOWN[1]).values())
    hint = "name the sheet's headings, or the numbers of its columns, in a map: --map map.yml"
    raise Unreadable([(1, f"none of the first {_LOOKED_AT} lines has the headings {said}")], hint)


def _column(names: list[str], heading: str | int) -> int | None:
    if isinstance(heading, int):
        return heading - 1
    return names.index(_fold(heading)) if _fold(heading) in names else None


def _length(text: str) -> tuple[float | None, str]:
    """Read metres: `3`, `3.5 m`, `3,5`, `300 cm`."""
    if not text:
        return None, ""
    match = re.fullmatch(r"(\d+(?:[.,]\d+)?)\s*(m|cm)?", text.lower())
    if match is None:
        return None, f"{text!r} is no length in metres"
    metres = float(match[1].replace(",", "."))
    return (metres / 100 if match[2] == "cm" else metres), ""


def _fold(text: str) -> str:
    return " ".join(text.lower().split())
