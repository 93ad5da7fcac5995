"""`supernode cabling`: what others say of the cables, held against the design before one is laid."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from supernode.cli import inputs
from supernode.cli.output import emit, errors_end_the_process
from supernode.errors import WrongInput

if TYPE_CHECKING:
    from supernode.design import Design
    from supernode.verify.sheets.compare import Comparison
    from supernode.verify.sheets.table import ColumnMap

app = typer.Typer(help="Hold a vendor's point-to-point sheet against the design.", no_args_is_help=True)


@app.callback()
def _together() -> None:
    """Keep `check` a word of its own while it is the only one."""


@app.command()
def check(
    environment: Annotated[str, typer.Argument(help="a folder under inventories/, or a path")],
    sheet: Annotated[Path, typer.Argument(help="CSV, or a .topo file of ibdiagnet and UFM")],
    columns: Annotated[Path | None, typer.Option("--map", help="YAML: where the sheet keeps what")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print the differences as JSON")] = False,
) -> None:
    """Compare a point-to-point sheet with the design and say what to change, each with its lines in the sheet.

    A sheet with the headings of cabling.csv or of UFM's Cable Validation Tool needs no map; docs/exports.md shows one.

    Exit code 0: every designed cable is there and nothing else; 1: there are differences; 2: the sheet or the map
    cannot be read.

    Example: supernode cabling check lab point-to-point.csv --map map.yml
    Example: supernode cabling check lab-ib fabric.topo --json
    """
    from supernode.verify.sheets.rows import Unreadable

    folder, locate = inputs.find(environment)
    with errors_end_the_process(locate):
        design = inputs.design(folder)
        data, document = _bytes(sheet), None if columns is None else _document(columns)
    at = columns
    try:
        wanted = None if columns is None else _columns(document)
        at = sheet
        found = _compare(design, data, wanted)
    except Unreadable as error:
        lines = [f"error: {at}{f':{line}' if line else ''}: {what}" for line, what in error.problems]
        sys.stderr.write("\n".join([*lines, *(["", f"hint: {error.hint}"] if error.hint else [])]) + "\n")
        raise SystemExit(error.exit_code) from error
    emit({"sheet": str(sheet), **asdict(found)}, as_json=as_json, text=lambda: _text(sheet, found))
    raise SystemExit(1 if found.differences else 0)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise WrongInput(str(path), f"cannot be read: {error.strerror}") from error


def _document(path: Path) -> object:
    import yaml

    try:
        return yaml.safe_load(_bytes(path))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise WrongInput(str(path), f"is no YAML: {' '.join(str(error).split())}") from error


def _columns(document: object) -> ColumnMap:
    from supernode.verify.sheets import table

    return table.column_map(document)


def _compare(design: Design, data: bytes, wanted: ColumnMap | None) -> Comparison:
    from supernode.verify.sheets import compare, table, topology

    text = table.decode(data)
    rows = topology.read(text) if topology.is_topo(text) else table.read(text, wanted)
    return compare.compare(design, rows, wanted)


def _text(sheet: Path, found: Comparison) -> str:
    lines = []
    for row in found.differences:
        where = f"{sheet}:{row.lines[0]}" if row.lines else str(sheet)
        more = f" (also line{'s' * (len(row.lines) > 2)} {_spans(row.lines[1:])})" if len(row.lines) > 1 else ""
        lines.append(f"{where}: {row.kind}: {row.what}{more}" + (f"\n    {row.fix}" if row.fix else ""))
    said = f"{found.rows} rows, {found.agreeing} of {found.designed} designed cables as designed"
    return "\n".join([*lines, f"{said}, {len(found.differences)} differences"])


def _spans(numbers: tuple[int, ...]) -> str:
    """Write 3, 4, 5, 9 as "3-5, 9"."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)
