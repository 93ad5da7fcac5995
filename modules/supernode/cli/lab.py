"""`supernode lab …`: a datacentre on this machine, to rehearse in."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from supernode.cli import inputs
from supernode.cli.output import emit, errors_end_the_process, say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.table import Table

    from supernode.design import Design
    from supernode.lab.doctor import Trait
    from supernode.lab.starter import Started
    from supernode.workspace import EnvironmentFolder

app = typer.Typer(
    help="A datacentre on this machine: BMCs, switches, systems, faults. Example: sudo supernode lab start lab",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Environment = Annotated[str, typer.Argument(help="a folder under inventories/, or a path")]
AsJson = Annotated[bool, typer.Option("--json", help="print one JSON document")]
MADE_HERE = "made-by-lab"  # in delivery/: the machines that this environment knows are a lab's
COLOURS = {"ok": "green", "missing": "red", "stand-in": "yellow", "unknown": "yellow"}


@app.command()
def start(environment: Environment, as_json: AsJson = False) -> None:
    """Start the environment's lab: switches up and empty, machines off and empty; writes the delivery sheets.

    Does nothing when a healthy lab of the same cabling runs already, and ends any other remains first. Needs root.

    Example: sudo supernode lab start lab
    """
    from supernode.lab.places import roots_alone

    folder, locate = inputs.find(environment)
    with errors_end_the_process(locate):
        design = inputs.design(folder)
        with roots_alone(folder.name):
            started = begin(folder, design)
    done = "runs already" if started.unchanged else f"started in {started.seconds:.1f} s"
    data = {"lab": folder.name, "unchanged": started.unchanged, "seconds": round(started.seconds, 3)}
    emit(
        data, as_json=as_json, text=lambda: f"the lab {folder.name} {done}; its delivery is in {folder.folder}/delivery"
    )


@app.command()
def stop(environment: Environment, as_json: AsJson = False) -> None:
    """End the lab, its faults and the environment's server; no process, namespace, mount or route of it is left.

    Example: sudo supernode lab stop lab
    """
    from contextlib import suppress

    from supernode import workspace
    from supernode.boot import server
    from supernode.errors import CouldNotRun
    from supernode.lab import starter

    name = Path(environment).name
    with errors_end_the_process():
        found = starter.stop(name)
        with suppress(CouldNotRun):  # a lab outlives its environment's folder
            server.stop(workspace.find(environment))
    emit(
        {"lab": name, "stopped": found},
        as_json=as_json,
        text=lambda: f"the lab {name} {'ended' if found else 'was not there'}",
    )


@app.command()
def status(environment: Environment, as_json: AsJson = False) -> None:
    """Show the lab's machines and switches, and the faults that stand.

    Example: sudo supernode lab status lab
    """
    from supernode.lab import control
    from supernode.lab.places import Places

    with errors_end_the_process():
        answer = control.ask(Places.of(Path(environment).name).control, {"do": "status"})
    emit(answer, as_json=as_json, text=lambda: _status_table(answer))


@app.command()
def console(
    environment: Environment,
    device: Annotated[str, typer.Argument(help="a host or switch, by its name or slot")],
    lines: Annotated[int, typer.Option("--lines", "-n", help="how many lines to begin with")] = 40,
    follow: Annotated[bool, typer.Option("--follow/--no-follow", help="go on until Ctrl-C")] = True,
    as_json: AsJson = False,
) -> None:
    """Show a machine's serial console, and go on with what it writes.

    Example: sudo supernode lab console lab gpu-001
    """
    from supernode.lab import artefacts
    from supernode.lab.places import Places, roots_alone

    name = Path(environment).name
    with errors_end_the_process(), roots_alone(name):
        places = Places.of(name)
        path = places.slot(artefacts.read(places.artefacts).slot(device)).console
        tail = path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:] if path.is_file() else []
        if as_json:
            emit({"device": device, "lines": tail}, as_json=True)
            return
        for line in tail:
            sys.stdout.write(line + "\n")
        if follow:
            _follow(path)


@app.command()
def fault(
    environment: Environment,
    name: Annotated[str | None, typer.Argument(help="the fault; without it, those that stand are listed")] = None,
    targets: Annotated[list[str] | None, typer.Argument(help="a server, or a cable (C00001 or gpu-001:rail0)")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="an argument, e.g. factor=0.3")] = None,
    clear: Annotated[bool, typer.Option("--clear", help="take it away")] = False,
    known: Annotated[bool, typer.Option("--known", help="list the faults that there are")] = False,
    as_json: AsJson = False,
) -> None:
    """Inject a fault, take one away, or list them. Without a running lab it waits for the next start; stop forgets all.

    Example: sudo supernode lab fault lab swap-cable gpu-002:rail1 gpu-002:rail5
    Example: sudo supernode lab fault lab slow-link C00042 --set factor=0.3
    Example: sudo supernode lab fault lab slow-link C00042 --clear
    Example: supernode lab fault lab --known
    """
    from supernode.errors import WrongInput
    from supernode.lab import faults, inject

    lab = Path(environment).name
    if known:
        rows = _known_faults()
        emit(rows, as_json=as_json, text=lambda: _known_lines(rows))
        return
    with errors_end_the_process():
        if name is None:
            stand = inject.standing(lab)
        else:
            arguments = dict(pair.partition("=")[::2] for pair in set_ or ())
            if any("=" not in pair for pair in set_ or ()):
                raise WrongInput(
                    "--set", "takes name=value", f"supernode lab fault {lab} slow-link C00001 --set factor=0.3"
                )
            chosen = faults.checked(name, targets or (), arguments)
            stand = (inject.clear if clear else inject.inject)(lab, chosen)
    emit({"lab": lab, "faults": stand}, as_json=as_json, text=lambda: _fault_lines(stand))


@app.command()
def doctor(
    environment: Annotated[
        str | None, typer.Argument(help="also hold this environment's rates against the machine")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say what the lab needs of this machine, what is missing, and what stands in for it.

    Example: sudo supernode lab doctor lab
    """
    from supernode.lab import doctor as examiner
    from supernode.lab.places import roots_alone

    traits = list(examiner.examine())
    if environment is not None:
        folder, locate = inputs.find(environment)
        with errors_end_the_process(locate):
            design = inputs.design(folder)
            with roots_alone(folder.name):
                traits.append(_capacity(design))
    rows = [{**vars(trait), "verdict": trait.verdict} for trait in traits]
    emit(rows, as_json=as_json, text=lambda: _doctor_table(traits))
    if any(trait.verdict == "missing" for trait in traits):
        raise typer.Exit(3)


def begin(folder: EnvironmentFolder, design: Design) -> Started:
    """Hand the environment's exported artefacts to the lab, and start it from them."""
    import tempfile

    from supernode.boot import cache
    from supernode.lab import starter
    from supernode.workspace import give

    with tempfile.TemporaryDirectory(prefix="supernode-artefacts.") as scratch:
        _export(design, folder, Path(scratch))
        started = starter.start(folder.name, Path(scratch), folder.folder / "delivery", cache.default(), say)
    if not folder.document("machines").exists():
        mark = folder.folder / "delivery" / MADE_HERE
        mark.touch()
        give(mark, folder.folder)
    return started


def _export(design: Design, folder: EnvironmentFolder, target: Path) -> None:
    """Write the artefacts that the lab is built from (contracts, section 3)."""
    from supernode.boot import sshkey
    from supernode.design import artefacts
    from supernode.workspace import give

    for sheet in artefacts.of(design, artefacts.SHEETS):
        with (target / sheet.name).open("w", encoding="utf-8") as stream:
            stream.writelines(sheet.lines(design))
    (target / "authorized_keys").write_text(sshkey.ensure(folder) + "\n", encoding="utf-8")
    for path in (folder.state.parent, folder.state):  # root starts labs; whoever keeps the environment logs in
        give(path, folder.folder)


def _capacity(design: Design) -> Trait:
    """Hold what all rails need at once against what the machine carries."""
    from supernode.lab import capacity
    from supernode.lab.doctor import Trait
    from supernode.lab.places import labs_root
    from supernode.units import MbitPerS, format_rate

    rails = [link.rate for link in design.links if link.kind == "rail"]
    found = capacity.measured(labs_root() / "capacity.json")
    wanted = MbitPerS(sum(rails))
    allowed = MbitPerS(round(found * capacity.SHARE))
    about = f"{len(rails)} rails need {format_rate(wanted)} of {format_rate(allowed)} at most"
    return Trait("room", "capacity", True, wanted <= allowed, about)


def _follow(path: Path) -> None:
    with path.open(encoding="utf-8", errors="replace") as stream:
        stream.seek(0, 2)
        while True:
            text = stream.read()
            if text:
                sys.stdout.write(text)
                sys.stdout.flush()
            else:
                time.sleep(0.2)


def _status_table(answer: Mapping[str, Any]) -> Any:
    from rich.console import Group

    servers = _table("slot", "device", "power", "progress", "disk", "bmc", "management")
    for row in answer["servers"]:
        servers.add_row(*(str(row[column.header]) for column in servers.columns))
    switches = _table("slot", "device", "state", "management")
    for row in answer["switches"]:
        switches.add_row(*(str(row[column.header]) for column in switches.columns))
    headline = f"lab {answer['lab']}: {answer['phase']}, {answer['cables']} cables"
    tables = [servers, switches]
    if answer["cooling"]:
        tables.append(_table("unit", "kind", "address", "racks", "faults"))
        for row in answer["cooling"]:
            tables[-1].add_row(*(str(row[column.header]) for column in tables[-1].columns))
    return Group(headline, *tables, _fault_lines(answer["faults"]))


def _known_faults() -> list[dict[str, Any]]:
    from supernode.lab import faults

    return [
        {"name": k.name, "about": k.about, "targets": k.targets, "arguments": dict(k.arguments), "source": k.source}
        for k in faults.KINDS.values()
    ]


def _known_lines(rows: Sequence[Mapping[str, Any]]) -> str:
    blocks = []
    for row in rows:
        arguments = " ".join(f"--set {key}={value}" for key, value in row["arguments"].items())
        lines = [" ".join(filter(None, [row["name"], *row["targets"], arguments])), f"    {row['about']}"]
        blocks.append("\n".join([*lines, *([f"    seen: {row['source']}"] if row["source"] else [])]))
    return "\n".join(blocks)


def _fault_lines(stand: Sequence[Mapping[str, Any]]) -> str:
    if not stand:
        return "no fault stands"
    return "\n".join(_fault_line(row) for row in stand)


def _fault_line(row: Mapping[str, Any]) -> str:
    arguments = " ".join(f"{key}={value}" for key, value in row["arguments"].items())
    return f"fault {row['name']} {' '.join(row['targets'])} {arguments}".rstrip()


def _doctor_table(traits: Sequence[Trait]) -> Any:
    table = _table("verdict", "what", "about", "instead")
    for trait in traits:
        table.add_row(
            trait.verdict,
            trait.name,
            trait.about,
            "" if trait.present else trait.stand_in,
            style=COLOURS[trait.verdict],
        )
    return table


def _table(*columns: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column)
    return table
