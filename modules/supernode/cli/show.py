"""`supernode show`: one host or switch, whole."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated, Any

import typer

from supernode.cli import inputs
from supernode.cli.output import emit, errors_end_the_process
from supernode.errors import WrongInput

if TYPE_CHECKING:
    from rich.console import RenderableType

    from supernode.design import Design
    from supernode.workspace import EnvironmentFolder


def show(
    environment: Annotated[str, typer.Argument(help="a folder under inventories/, or a path")],
    device: Annotated[str, typer.Argument(help="a host, a switch or a slot, e.g. gpu-001, su01-leaf0, r01u01")],
    file: Annotated[str | None, typer.Option(help="print this file of the device, as it shall stand there")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print it as JSON")] = False,
) -> None:
    """Show a device's place, addresses, identity, cables and files, as designed; and how it last came up.

    Example: supernode show lab gpu-001
    Example: supernode show lab su01-leaf0 --file /etc/frr/frr.conf
    """
    folder, locate = inputs.find(environment)
    with errors_end_the_process(locate):
        computed = inputs.design(folder)
        name = _name(computed, device)
        found = document(computed, name) | {"last": _last(folder, name)}
        if file is not None:
            if file not in found["files"]:
                raise WrongInput(name, f"no file {file} is designed for it", f"files: {', '.join(found['files'])}")
            emit({file: found["files"][file]}, as_json=as_json, text=lambda: found["files"][file].rstrip("\n"))
            return
    emit(found, as_json=as_json, text=lambda: _text(name, found))


def _name(computed: Design, device: str) -> str:
    import difflib

    names = set(computed.slots.values())
    name = computed.slots.get(device, device)
    if name not in names:
        near = difflib.get_close_matches(device, [*names, *computed.slots], n=1)
        raise WrongInput(
            device,
            f"{computed.name} has no such device or slot",
            f"did you mean {near[0]}?" if near else f"`supernode design {computed.name}` lists them",
        )
    return name


def document(computed: Design, name: str) -> dict[str, Any]:
    """Return all that the design says of a device, as a JSON document."""
    from supernode.design import parking

    is_host = computed.is_host(name)
    row = computed.host(name) if is_host else computed.switch(name)
    files = computed.files(name) if is_host else computed.switch_files(name)
    record = computed.machines.slots.get(row.slot)
    successor = parking.successors(computed.machines).get(row.slot)
    facts = {k: v for k, v in dataclasses.asdict(row).items() if k != "identity"}
    return {
        "device": facts,
        "machine": record.model_dump(mode="json") if record else None,
        "replaced_by": computed.slots[successor] if successor else None,
        "cables": [dataclasses.asdict(link) for link in computed.links_of(name)],
        "files": {file.path: file.content for file in files},
    }


def _last(folder: EnvironmentFolder, name: str) -> dict[str, Any] | None:
    """Return what the last provisioning said of a device; None where nothing is known."""
    from supernode import workspace
    from supernode.errors import CouldNotRun

    try:
        output = workspace.read_outputs(folder).devices.get(name)
    except CouldNotRun:
        return None
    wanted = ("state", "phase", "reason", "evidence")
    return {key: value for key, value in dataclasses.asdict(output).items() if key in wanted} if output else None


def _text(name: str, found: dict[str, Any]) -> RenderableType:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from supernode.units import format_rate

    facts = Table(show_header=False, box=None, pad_edge=False)
    for key, value in found["device"].items():
        facts.add_row(Text(key, style="bold"), "" if value is None else str(value))
    machine = found["machine"]
    facts.add_row(Text("machine", style="bold"), _machine(machine) if machine else "none is bound to the slot")
    if found["replaced_by"]:
        facts.add_row(Text("replaced by", style="bold"), found["replaced_by"])
    if found["last"]:
        facts.add_row(Text("last came up", style="bold"), _came_up(found["last"]))
    cables = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("cable", "port", "to", "address", "rate", "length", ""):
        cables.add_column(column)
    for link in found["cables"]:
        near, far = ("a", "b") if link["a_device"] == name else ("b", "a")
        cables.add_row(
            link["cable"],
            link[f"{near}_port"],
            f"{link[f'{far}_device']} {link[f'{far}_port']}",
            str(link[f"{near}_address"] or ""),
            format_rate(link["rate"]),
            f"{link['length']:g} m",
            "shut" if link["shut"] else "",
        )
    return Group(facts, Text(""), cables, Text(""), Text("files: " + " ".join(found["files"])))


def _machine(record: dict[str, Any]) -> str:
    known = ", ".join(f"{key} {value}" for key, value in record["identity"].items() if value)
    replaces = f"; takes over for {record['replaces']}" if record["replaces"] else ""
    reason = f"; {record['reason']}" if record["reason"] else ""
    return f"{record['state']}; {known or 'nothing known'}{replaces}{reason}"


def _came_up(last: dict[str, Any]) -> str:
    said = f"{last['state']} in {last['phase']}: {last['reason']}" if last["phase"] else last["state"]
    return "\n".join([said, *(f"  {line}" for line in last["evidence"])])
