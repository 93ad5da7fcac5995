"""What a run leaves under runs/<env>/<id>/: events as they happen, the run after every stage, the reports at its end.

events.jsonl   one Event a line, flushed as it happens: a kill loses at most the line being written
run.json       the whole Run, replaced after each stage
report.html, junit.xml
"""

from __future__ import annotations

import dataclasses
import json
import secrets
import time
from pathlib import Path
from typing import IO

from supernode import workspace
from supernode.records import Event, Run
from supernode.report import json as run_json
from supernode.workspace import EnvironmentFolder


def new_id(now: float | None = None) -> str:
    """Return a run id that sorts by time: `20261130-184501-3f2a` (UTC)."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now if now is not None else time.time()))
    return f"{stamp}-{secrets.token_hex(2)}"


class RunFolder:
    """One run's folder; open for as long as the run goes on.

    Args:
        folder: the environment.
        run_id: its name under runs/<env>/.
    """

    def __init__(self, folder: EnvironmentFolder, run_id: str) -> None:
        self.path: Path = folder.runs / run_id
        folder.runs.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path.mkdir(mode=0o700)
        self._events: IO[str] = (self.path / "events.jsonl").open("a", encoding="utf-8")

    def event(self, event: Event) -> None:
        """Write one event and push it out of the process."""
        self._events.write(json.dumps(dataclasses.asdict(event)) + "\n")
        self._events.flush()

    def save(self, run: Run) -> None:
        """Replace run.json."""
        workspace.write_atomically(self.path / "run.json", json.dumps(run_json.to_json(run), indent=1) + "\n")

    def write(self, name: str, text: str) -> Path:
        """Write a report beside it and return its path."""
        workspace.write_atomically(self.path / name, text)
        return self.path / name

    def close(self) -> None:
        """End the event log."""
        self._events.close()
