"""ansible-runner's event dictionaries as Events.

Their form is whatever Ansible's callbacks send: few keys are read, the rest is tolerated, and no result is passed on
whole.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from supernode.records import Event, State

STAGE = "configure"
LONGEST = 300
_RESULTS = {
    "runner_on_start": State.PROGRESS,
    "runner_on_ok": State.OK,
    "runner_on_failed": State.FAILED,
    "runner_on_unreachable": State.FAILED,
    "runner_on_skipped": State.SKIPPED,
}


def read(raw: Mapping[str, Any]) -> Iterator[Event]:
    """Yield what one dictionary says: nothing for the most of them.

    A role is a phase. A host's start of a task and its result are each an event; a play's start is one of the stage.
    """
    data = raw.get("event_data") or {}
    kind, at = str(raw.get("event", "")), _when(raw)
    if kind == "playbook_on_play_start":
        yield Event(
            at, STAGE, None, _phase(data) or "play", State.STARTED, str(data.get("name") or data.get("play") or "")
        )
    elif kind == "playbook_on_stats":
        yield from _ends(at, data)
    elif kind in _RESULTS and not _tolerated(data):
        yield Event(at, STAGE, str(data.get("host")), _phase(data), _state(kind, data), _detail(kind, data))


def _ends(at: float, data: Mapping[str, Any]) -> Iterator[Event]:
    """Yield how each host ended: a failure that a later task made good is none."""
    bad = {**(data.get("failures") or {}), **(data.get("dark") or {})}
    changed = data.get("changed") or {}
    for host in sorted(data.get("processed") or {}):
        state = State.FAILED if host in bad else State.CHANGED if changed.get(host) else State.OK
        yield Event(at, STAGE, host, STAGE, state, f"changed={changed.get(host, 0)}")


def _when(raw: Mapping[str, Any]) -> float:
    try:
        created = datetime.fromisoformat(str(raw["created"]))
    except (KeyError, ValueError):
        return time.time()
    return (created if created.tzinfo else created.replace(tzinfo=UTC)).timestamp()


def _phase(data: Mapping[str, Any]) -> str:
    return str(data.get("role") or "")


def _tolerated(data: Mapping[str, Any]) -> bool:
    return bool(data.get("ignore_errors"))


def _state(kind: str, data: Mapping[str, Any]) -> State:
    if kind == "runner_on_ok" and _result(data).get("changed"):
        return State.CHANGED
    return _RESULTS[kind]


def _result(data: Mapping[str, Any]) -> Mapping[str, Any]:
    result = data.get("res")
    return result if isinstance(result, Mapping) else {}


def _task(data: Mapping[str, Any]) -> str:
    task = str(data.get("task") or "")
    return "Inputs accepted" if task.startswith("Validating arguments against arg spec") else task


def _detail(kind: str, data: Mapping[str, Any]) -> str:
    """Say the task, and of a failure its first line; of a task that hides its result, no more than its name."""
    task = _task(data)
    result = _result(data)
    if _RESULTS[kind] is not State.FAILED or result.get("_ansible_no_log") or "censored" in result:
        return task
    lines = [line.strip() for line in str(result.get("msg") or result.get("stderr") or "").splitlines() if line.strip()]
    if kind == "runner_on_unreachable":
        # ssh's own last words come last, after what Ansible or mitogen put before them.
        return f"unreachable: {lines[-1].removeprefix('Task failed: ') if lines else 'no reason given'}"[:LONGEST]
    return f"{task}: {lines[0] if lines else 'failed'}"[:LONGEST]
