"""`supernode survey`: look at what is there, propose its documents, list what is wrong. It changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from supernode.cli.output import emit, errors_end_the_process, say, talk
from supernode.errors import CouldNotRun, Problem, WrongInput

if TYPE_CHECKING:
    from supernode.bringup.survey.look import BmcAccess
    from supernode.bringup.survey.run import Survey

Show = Callable[[str, str], None]
SOURCE = typer.Argument(
    metavar="SOURCE...", help="controllers' addresses, @FILE with a list of them, a sheet (.csv), or an environment"
)


@dataclass(frozen=True)
class Options:
    """What was said beside the sources."""

    username: str
    password: str | None
    ca: Path | None
    fingerprint: str | None
    columns: str
    name: str
    whole: bool


def survey(
    sources: Annotated[list[str], SOURCE],
    username: Annotated[str, typer.Option(help="account on the controllers")] = "admin",
    password: Annotated[str | None, typer.Option(help="reference to its password: file:, vault: or exec:")] = None,
    ca: Annotated[Path | None, typer.Option(help="file of the CA that signed the controllers' certificates")] = None,
    fingerprint: Annotated[str | None, typer.Option(help="SHA-256 of the one controller's certificate")] = None,
    columns: Annotated[str, typer.Option("--map", help="columns of a sheet: rack=Cabinet,serial='Serial No'")] = "",
    name: Annotated[str, typer.Option(help="name of the proposed environment, unless it has one")] = "site",
    out: Annotated[Path | None, typer.Option(help="write the proposed documents into this folder")] = None,
    force: Annotated[bool, typer.Option("--force", help="overwrite documents that lie in --out")] = False,
    save: Annotated[Path | None, typer.Option(help="keep the controllers' Redfish trees here, without secrets")] = None,
    log: Annotated[Path | None, typer.Option(help="keep every request and command that was sent in this file")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print everything as JSON")] = False,
) -> None:
    """Look at controllers, at what a rack sheet lists, or at a running environment, and say what is there.

    It only looks: GET requests, and reading commands on hosts and switches. Of a running environment it reads
    addresses, accounts and keys; the proposed documents come from what it sees, and what does not show is named. A
    password is sent to nobody whose certificate is neither signed by --ca nor the one of --fingerprint.

    Exit code 0: nothing is wrong; 1: findings; 2: wrong input; 3: could not run, or nothing answered.

    Example: supernode survey lab --out proposed
    Example: supernode survey 10.20.0.11 --password file:bmc-password --ca bmc-ca.pem --save tree
    Example: supernode survey racks.csv --map rack=Cabinet,unit=U --out proposed
    """
    from supernode.bringup.survey import keeping

    options = Options(username, password, ca, fingerprint, columns, name, save is not None)
    with errors_end_the_process(_where):
        if out is not None:
            keeping.refuse_overwriting(out, ("environment", "machines", "allocation"), force=force)
        with _Progress() as progress:
            found = _survey(sources, options, progress.show)
        _keep(found, out, save, log)
    _print(found, as_json=as_json, proposed=out is not None or found.differs is not None)
    if not found.answered:
        say("error: nothing that was to be looked at could be")
        raise SystemExit(CouldNotRun.exit_code)
    raise SystemExit(int(bool(found.findings)))


def _where(problem: Problem) -> str:
    """Say where a problem of a sheet lies, or of a document."""
    if problem.path and isinstance(problem.path[0], int):
        return f"{problem.document}:{problem.path[0]}"
    return f"{problem.document}.yml: {'.'.join(map(str, problem.path))}"


def _survey(sources: list[str], options: Options, show: Show) -> Survey:
    from supernode.bringup.survey import sources as known

    if len(sources) == 1 and sources[0].endswith(".csv"):
        return _sheet(Path(sources[0]), options, show)
    if len(sources) == 1 and not sources[0].startswith("@") and not known.is_address(sources[0]):
        return _environment(sources[0], options, show)
    strangers = [word for word in sources if not word.startswith("@") and not known.is_address(word)]
    if strangers:
        what = "is no controller's address; a sheet or an environment is surveyed alone"
        raise WrongInput(strangers[0], what, "give addresses, @FILE, one .csv file or one environment")
    pairs = [pair for word in sources for pair in _listed(word)]
    accesses = asyncio.run(_accesses(pairs, options))
    return asyncio.run(_controllers(accesses, options, show))


def _environment(name: str, options: Options, show: Show) -> Survey:
    from supernode import workspace
    from supernode.bringup.survey import run
    from supernode.cli import inputs

    refused = [o for o, v in (("--password", options.password), ("--ca", options.ca), ("--map", options.columns)) if v]
    if refused:
        raise WrongInput(refused[0], "an environment says itself how it is reached", "leave it out")
    if options.whole:
        raise WrongInput("--save", "keeps the trees of controllers that are named", "give their addresses")
    folder, _ = inputs.find(name)
    design = inputs.design(folder)
    try:
        outputs = workspace.read_outputs(folder)
    except CouldNotRun:
        outputs = None
    return asyncio.run(run.of_environment(folder, design, outputs, show))


async def _controllers(accesses: list[BmcAccess], options: Options, show: Show) -> Survey:
    from supernode.bringup.survey import run

    return await run.of_controllers(accesses, Path.cwd(), options.name, show, whole=options.whole)


def _sheet(path: Path, options: Options, show: Show) -> Survey:
    from supernode.bringup.survey import run, sheet

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise WrongInput(str(path), f"cannot be read: {error}", "a text file of comma-separated values") from error
    rows = sheet.read(str(path), text, sheet.parse_map(options.columns) if options.columns else {})
    how = _how(options) if options.password else None
    if how is None and any(row.bmc for row in rows):
        say("the controllers are not looked at: that takes --password and --ca")
    return asyncio.run(run.of_sheet(rows, how, Path.cwd(), options.name, show, whole=options.whole))


def _how(options: Options) -> Callable[[str], BmcAccess]:
    from supernode.bringup.survey.look import BmcAccess

    pem = _pem(options.ca)
    if pem is None:
        raise WrongInput("--ca", "is missing: nothing says what the controllers' certificates should be", None)
    return lambda address: BmcAccess(address, options.username, _reference(options), "", pem)


def _listed(word: str) -> list[tuple[str, str]]:
    from supernode.bringup.survey import sources as known

    if not word.startswith("@"):
        return [(word, "")]
    path = Path(word[1:])
    try:
        return known.listed(str(path), path.read_text(encoding="utf-8"))
    except OSError as error:
        raise WrongInput(str(path), f"cannot be read: {error.strerror}", None) from error


async def _accesses(pairs: list[tuple[str, str]], options: Options) -> list[BmcAccess]:
    """Say how each controller is read; where nothing says whom to trust, show what it shows and ask."""
    from supernode.bringup.survey.look import BmcAccess
    from supernode.clients import redfish

    pem, pin = _pem(options.ca), (options.fingerprint or "").lower().replace(":", "")
    if pin and len(pairs) > 1:
        hint = "write each behind its address in a file, and give @FILE"
        raise WrongInput("--fingerprint", f"is of one controller, {len(pairs)} are named", hint)
    open_ = [address for address, own in pairs if not (own or pin or pem)]
    if open_:
        shown = [(address, await redfish.fingerprint(address)) for address in open_]
        lines = "; ".join(f"{address} shows {found}" for address, found in shown)
        hint = "compare it with what the controller's own screen or its sheet says, then give it with --fingerprint"
        raise WrongInput(open_[0], f"nothing says whom to trust, and no password was sent: {lines}", hint)
    return [BmcAccess(address, options.username, _reference(options), own or pin, pem) for address, own in pairs]


def _pem(path: Path | None) -> str | None:
    try:
        return path.read_text(encoding="utf-8") if path is not None else None
    except OSError as error:
        raise WrongInput(str(path), f"cannot be read: {error.strerror}", None) from error


def _reference(options: Options) -> str:
    from supernode.clients import secrets

    if options.password is None or not secrets.is_reference(options.password):
        # What was given is not repeated: it may be the password itself.
        what = (
            "is missing" if options.password is None else "is no reference, and a secret has no place on a command line"
        )
        raise WrongInput("--password", what, "write file:PATH, vault:MOUNT/PATH#KEY or exec:COMMAND")
    return options.password


class _Progress:
    """One line that changes at a terminal; elsewhere a line for each thing that was looked at."""

    def __init__(self) -> None:
        self._status = talk.status("looking") if talk.is_terminal else None
        self._open: set[str] = set()
        self._done = 0

    def __enter__(self) -> _Progress:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def show(self, place: str, what: str) -> None:
        """Take in that something is looked at, or what came of it."""
        if not what:
            self._open.add(place)
            return
        self._done += place in self._open
        self._open.discard(place)
        if self._status is None:
            say(f"{place}: {what}")
        else:
            self._status.update(escape(f"{self._done} looked at, {len(self._open)} under way; {place}: {what}"))


def _keep(found: Survey, out: Path | None, save: Path | None, log: Path | None) -> None:
    """Write what was asked for."""
    from supernode.bringup.survey import keeping

    try:
        for path in keeping.write_documents(out, found.conclusion.documents()) if out is not None else ():
            say(f"wrote {path}")
        for place, count in _save(save, found) if save is not None else ():
            say(f"kept {count} resources under {place}")
        if log is not None:
            log.write_text(found.log, encoding="utf-8")
    except OSError as error:
        raise CouldNotRun(str(error.filename), f"cannot be written: {error.strerror}") from error


def _save(folder: Path, found: Survey) -> list[tuple[Path, int]]:
    from supernode.bringup.survey import keeping

    one = len(found.controllers) == 1
    places = {a: folder if one else folder / keeping.folder_of(a) for a in found.trees}
    return [(place, keeping.write_tree(place, found.trees[address])) for address, place in places.items()]


def _print(found: Survey, *, as_json: bool, proposed: bool) -> None:
    from supernode.cli import surveyed

    data: dict[str, Any] | None = surveyed.document(found) if as_json else None
    emit(data, as_json=as_json, text=lambda: surveyed.text(found, proposed=proposed))
