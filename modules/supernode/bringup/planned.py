"""The plan of an environment as it lies on disk: what `supernode plan` shows is what `supernode bringup` executes."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from supernode import plan as planning
from supernode import workspace
from supernode.boot import facts
from supernode.design import Design
from supernode.errors import CouldNotRun
from supernode.plan import Plan
from supernode.workspace import EnvironmentFolder


def last_design(folder: EnvironmentFolder) -> Path:
    """Return where the snapshot of the last design that was applied lies."""
    return folder.runs / "last-design.json"


def load_plan(folder: EnvironmentFolder, design: Design, reinstall: tuple[str, ...] = ()) -> Plan:
    """Compare the Design with what the last run left: the plan that `supernode plan` shows and `bringup` executes."""
    last_file = last_design(folder)
    last = json.loads(last_file.read_text(encoding="utf-8")) if last_file.is_file() else None
    outputs, image = None, ""
    with suppress(CouldNotRun):
        outputs = workspace.read_outputs(folder)
        image = facts.read(folder).image
    return planning.compare(design, last, outputs, reinstall, image)
