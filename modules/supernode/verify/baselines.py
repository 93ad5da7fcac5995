"""The last good baseline: .supernode/<env>/baseline.json, written by a clean run, read by every verification."""

from __future__ import annotations

import json

from supernode import workspace
from supernode.verify.marks import Baseline
from supernode.workspace import EnvironmentFolder

NAME = "baseline.json"


def read(folder: EnvironmentFolder) -> Baseline | None:
    """Return the last good baseline; None where there is none that can be read: then nothing is calibrated."""
    path = folder.state / NAME
    try:
        return Baseline.from_json(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def write(folder: EnvironmentFolder, baseline: Baseline) -> None:
    """Keep a clean run's."""
    workspace.write_atomically(folder.state / NAME, json.dumps(baseline.to_json(), indent=1) + "\n")
