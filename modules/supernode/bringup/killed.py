"""What a killed run left unsaid: its record is completed from its events, and closed, by the next run.

Whoever calls this holds the environment: a run without an end is then a dead one.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from supernode import workspace
from supernode.records import Event, Run, State
from supernode.report import html
from supernode.report import json as run_json
from supernode.verify import checks
from supernode.workspace import EnvironmentFolder

EXIT_CODE = 137  # what a shell says of a process that SIGKILL ended
_BEFORE_STAGES = "prepare"


def close(folder: EnvironmentFolder, by: str) -> list[str]:
    """Close the record of every run that was killed, write its page, and return their ids.

    Args:
        folder: the environment, which the caller holds.
        by: the run that closes them, for their last event; it is left alone itself.
    """
    closed = []
    for path in sorted(folder.runs.glob("*/run.json")):
        if path.parent.name == by:
            continue
        try:
            run = run_json.from_json(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError):
            continue  # of another version: `supernode runs` says so
        if run.ended is None:
            _write(path, _completed(run, tuple(_events(path.with_name("events.jsonl"))), by))
            closed.append(run.id)
    return closed


def _completed(run: Run, events: tuple[Event, ...], by: str) -> Run:
    events = max(events, run.events, key=len)
    at = events[-1].at if events else run.started
    stage = events[-1].stage if events else _BEFORE_STAGES
    end = Event(at, stage, None, "run", State.FAILED, f"killed: the process ended without a word; closed by run {by}")
    return dataclasses.replace(run, events=(*events, end), ended=at, exit_code=EXIT_CODE)


def _write(path: Path, run: Run) -> None:
    page = html.render(run, None, html.Proof(*checks.proof()))
    workspace.write_atomically(path.with_name("report.html"), page)
    # Last: it says that the rest is done.
    workspace.write_atomically(path, json.dumps(run_json.to_json(run), indent=1) + "\n")


def _events(path: Path) -> Iterator[Event]:
    """Read the events as they happened; the last line may be half of one."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        with suppress(ValueError, KeyError, TypeError):
            row = json.loads(line)
            yield Event(**{**row, "state": State(row["state"])})
