"""Hosts that did not answer, looked at once more by way of their controllers: the report says what became of them.

A host that is silent may be off, hung, or another machine by now. The engine's state says that it is ready until
somebody looks; the look writes there what it finds, so that the next run mends what may be mended. It changes no
machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from supernode.bringup import provision, stragglers
from supernode.design import Design
from supernode.errors import SupernodeError
from supernode.records import Event, Finding, Outputs, State
from supernode.workspace import EnvironmentFolder


def look(
    folder: EnvironmentFolder,
    design: Design,
    outputs: Outputs,
    names: Iterable[str],
    on_event: Callable[[Event], None],
) -> Outputs:
    """Look at these hosts and return the Outputs as they are then; where no look can be had, as they were.

    Args:
        folder: the environment.
        design: what was brought up.
        outputs: as they were.
        names: the hosts that did not answer.
        on_event: told of what differs.
    """
    wanted = sorted(names)
    try:
        rows = provision.refresh(folder, design, on_event, only=wanted)
        found = provision.outputs(folder)
    except SupernodeError as error:
        on_event(Event(time.time(), "configure", None, "look", State.PROGRESS, f"cannot be looked at: {error}"))
        return outputs
    for row in rows:
        on_event(Event(time.time(), "configure", row.resource, "look", State.PROGRESS, row.detail))
    return found


def retold(findings: Iterable[Finding], design: Design, outputs: Outputs, names: Iterable[str]) -> list[Finding]:
    """Return the findings with what the look said of these hosts in the place of what provisioning had said."""
    seen = set(names)
    kept = [row for row in findings if not (row.check == stragglers.CHECK and row.place in seen)]
    return kept + [row for row in stragglers.findings(design, outputs) if row.place in seen]
