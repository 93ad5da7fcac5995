"""`supernode assign`: bind the machines that were delivered to the slots they stand in."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from supernode.cli import inputs
from supernode.cli.output import emit, errors_end_the_process
from supernode.errors import Problem, WrongInput

if TYPE_CHECKING:
    from supernode.design.assigning import Binding, Delivered


def assign(
    environment: Annotated[str, typer.Argument(help="a folder under inventories/, or a path")],
    slot: Annotated[str | None, typer.Argument(help="one slot, e.g. r01u01; without it, --sheet")] = None,
    sheet: Annotated[Path | None, typer.Option(help="folder with the delivery's machines.csv and switches.csv")] = None,
    serial: Annotated[str, typer.Option(help="system serial number")] = "",
    board_serial: Annotated[str, typer.Option(help="board serial number")] = "",
    chassis_serial: Annotated[str, typer.Option(help="chassis serial number")] = "",
    uuid: Annotated[str, typer.Option(help="system UUID")] = "",
    bmc_mac: Annotated[str, typer.Option(help="MAC address of the management controller")] = "",
    management_mac: Annotated[str, typer.Option(help="MAC address of the management port")] = "",
    bmc_fingerprint: Annotated[
        str, typer.Option(help="SHA-256 of the management controller's certificate, which is then trusted alone")
    ] = "",
    host_key: Annotated[str, typer.Option(help="public SSH host key of a switch or a rented host")] = "",
    replace: Annotated[
        bool, typer.Option("--replace", help="another machine took the place of one in service")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="say what would be bound, and write nothing")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print what changed as JSON")] = False,
) -> None:
    """Bind machines to slots in machines.yml: a whole delivery from its sheets, or one slot by hand.

    Placeholders, duplicates and unknown slots are refused. What is bound keeps its state; twice is the same as once.
    Another machine in a bound slot starts anew: what hung on the one that left is listed, with what becomes of it, and
    the next run installs the new one. A slot together with --sheet takes that slot's row alone.

    Example: supernode assign lab --sheet inventories/lab/delivery
    Example: supernode assign lab r01u09 --serial SN0042 --bmc-mac 02:00:00:00:00:09
    Example: supernode assign lab r01u09 --serial SN0043 --sheet inventories/lab/delivery --replace --dry-run
    """
    from contextlib import nullcontext

    from supernode import spec
    from supernode.bringup import lock
    from supernode.design import assigning

    folder, locate = inputs.find(environment)
    identity = {
        "system_serial": serial,
        "board_serial": board_serial,
        "chassis_serial": chassis_serial,
        "uuid": uuid,
        "bmc_mac": bmc_mac,
        "management_mac": management_mac,
        "ssh_host_key": host_key,
        "bmc_fingerprint": bmc_fingerprint,
    }
    alone = nullcontext() if dry_run else lock.held(folder, "assign")
    with errors_end_the_process(_in_sheets(sheet, locate)), alone:
        rows = _rows(slot, sheet, {key: value for key, value in identity.items() if value})
        binding = assigning.bind(inputs.design(folder), rows, replace=replace)
        if binding.changes and not dry_run:
            folder.write("machines", spec.machines_text(binding.machines))
    data = {
        "changes": list(binding.changes),
        "dependants": {slot: [dataclasses.asdict(row) for row in rows] for slot, rows in binding.dependants.items()},
        "written": bool(binding.changes) and not dry_run,
    }
    emit(data, as_json=as_json, text=lambda: _text(binding))


def _text(binding: Binding) -> str:
    if not binding.changes:
        return "nothing changes: all of it is bound already"
    return "\n".join(line for change in binding.changes for line in (change, *_dependants(binding, change.split()[0])))


def _dependants(binding: Binding, slot: str) -> Iterator[str]:
    """Write what hung on the machine that left: what it is, how it stood, what becomes of it."""
    rows = binding.dependants.get(slot, ())
    width = max((len(row.what) for row in rows), default=0)
    for row in rows:
        yield f"  {row.what:<{width}}  {row.was}"
        yield f"  {'':<{width}}  -> {row.becomes}{f' (missing: {row.wanted})' if row.wanted else ''}"


def _in_sheets(sheet: Path | None, locate: Callable[[Problem], str]) -> Callable[[Problem], str]:
    """Say where a problem of a sheet lies; a problem of the command line lies in the command line."""

    def where(problem: Problem) -> str:
        if problem.document.endswith(".csv") and sheet is not None:
            return f"{sheet / problem.document}:{problem.path[0]}"
        return locate(problem) if problem.path else "assign"

    return where


def _rows(slot: str | None, sheet: Path | None, identity: dict[str, str]) -> list[Delivered]:
    from supernode.design import assigning

    if slot is None and sheet is None:
        what = "takes a slot, --sheet or both"
        raise WrongInput(
            "assign", what, "--sheet DIR binds a delivery; a slot and its --serial or --bmc-mac one machine"
        )
    if slot is not None:
        typed = assigning.Delivered(slot, "", identity)
        return [typed if sheet is None else assigning.completed(typed, _of_sheets(sheet))]
    if identity or sheet is None:
        raise WrongInput("--sheet", "brings the identities itself", "leave --serial and the like out, or name one slot")
    return _of_sheets(sheet)


def _of_sheets(sheet: Path) -> list[Delivered]:
    from supernode.design import assigning

    found = [name for name in assigning.COLUMNS if (sheet / name).is_file()]
    if not found:
        hint = f"name the folder of the delivery; it holds {' or '.join(assigning.COLUMNS)}"
        raise WrongInput(str(sheet), "no machines.csv or switches.csv lies there", hint)
    return [row for name in found for row in assigning.read_sheet(name, (sheet / name).read_text(encoding="utf-8"))]
