"""What every verb prints with: data on stdout, talk on stderr, errors in one form, one exit code each."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console

from supernode.cli.stopping import INTERRUPTED, stops_interrupt
from supernode.errors import CouldNotRun, Problem, Refusal, SupernodeError

console = Console(highlight=False)
talk = Console(stderr=True, highlight=False)


def emit(data: Any, *, as_json: bool, text: Callable[[], Any] | None = None) -> None:
    """Print `data` as one JSON document, or what `text()` returns (a string or a rich renderable) for a person."""
    if as_json:
        sys.stdout.write(json.dumps(data, indent=2, default=str) + "\n")
    else:
        # A text is printed as it is: a path, a diff or a file must not be broken at the terminal's width.
        shown = text() if text is not None else data
        console.print(shown, markup=False, soft_wrap=isinstance(shown, str))


def emit_lines(records: Iterable[Any]) -> None:
    """Print JSON Lines: one record a line, as they come."""
    for record in records:
        sys.stdout.write(json.dumps(record, default=str) + "\n")


def say(line: str) -> None:
    """Tell the person at the terminal what is going on; never part of the data."""
    talk.print(line, markup=False)


def describe(error: SupernodeError, locate: Callable[[Problem], str] | None = None) -> str:
    """Write an error as `error: <where>: <what>` lines, an empty line, then each hint once."""
    if isinstance(error, Refusal):
        lines = [f"error: {_where(p, locate)}: {p.what}" for p in error.problems]
        hints = list(dict.fromkeys(p.hint for p in error.problems if p.hint))
    elif isinstance(error, CouldNotRun):
        lines, hints = [f"error: {error.where}: {error.what}"], [error.hint] if error.hint else []
    else:
        lines, hints = [f"error: {error}"], []
    return "\n".join([*lines, *([""] if hints else []), *(f"hint: {hint}" for hint in hints)])


def _where(problem: Problem, locate: Callable[[Problem], str] | None) -> str:
    if locate is not None:
        return locate(problem)
    return f"{problem.document}.yml: {'.'.join(map(str, problem.path))}"


@contextmanager
def errors_end_the_process(locate: Callable[[Problem], str] | None = None) -> Iterator[None]:
    """Turn an error of ours into its message and exit code; Ctrl-C, SIGTERM, SIGHUP, a question denied: 130."""
    try:
        with stops_interrupt():
            yield
    except SupernodeError as error:
        sys.stderr.write(describe(error, locate) + "\n")
        raise SystemExit(error.exit_code) from error
    except (KeyboardInterrupt, typer.Abort) as stop:
        sys.stderr.write("interrupted\n")
        raise SystemExit(INTERRUPTED) from stop
