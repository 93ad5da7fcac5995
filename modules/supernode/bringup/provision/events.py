"""What the engine tells, as the events of a run and as the rows of a preview. Pure: engine events in, ours out.

The engine's events are documented with its SDK (`apitype.EngineEvent`); the Automation API mirrors them in snake case.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from supernode.records import Event, State

STAGE = "provision"
OURS = "supernode:index:"
RENTED = ("aws:ec2/instance:Instance",)  # what a rented host is at its provider; it has the host's designed name
_CLOUD, _HOST = "supernode:cloud:", "supernode:cloud:CloudHost$"
_STATUS = {"ready": State.CHANGED, "late": State.LATE, "failed": State.FAILED}
_QUIET = {"same", "refresh", "read"}
# The provider writes "<phase>: <detail>"; a phase is one word.
_PHASE = re.compile(r"^([a-z][a-z0-9-]*): (.+)$", re.S)
_COLOUR = re.compile(r"<\{%[^%]*%\}>")
_STEP = re.compile(r'\["([^"]*)"\]|\[(\d+)\]|([^.\[\]]+)')
_SHOWN = 40


@dataclass(frozen=True)
class Row:
    """One change that the engine would make, or one drift that it saw.

    Attributes:
        stack: the stack's name.
        resource: the designed name.
        op: "create", "update", "replace", "delete", …, or "drift" for what differs from the state as last written.
        detail: what changes, e.g. "power: Off -> On".
    """

    stack: str
    resource: str
    op: str
    detail: str


def to_event(event: Any, at: float) -> Event | None:
    """Translate one engine event of an update, or return None for one that a run need not keep.

    Args:
        event: an `EngineEvent` of the Automation API.
        at: seconds since the epoch.
    """
    if event.diagnostic_event is not None:
        return _said(event.diagnostic_event, at)
    if event.resource_pre_event is not None:
        return _started(event.resource_pre_event, at)
    if event.res_outputs_event is not None:
        return _ended(event.res_outputs_event, at)
    if event.res_op_failed_event is not None and is_ours(event.res_op_failed_event.metadata.type):
        metadata = event.res_op_failed_event.metadata
        return Event(at, STAGE, name_of(metadata.urn), _op(metadata), State.FAILED, f"{_op(metadata)} failed")
    if event.summary_event is not None:
        return Event(at, STAGE, None, "summary", State.PROGRESS, _summary(event.summary_event))
    return None


def to_row(event: Any, stack: str) -> Row | None:
    """Translate one engine event of a preview into a row; None for what changes nothing."""
    if event.resource_pre_event is not None:
        metadata = event.resource_pre_event.metadata
        if is_ours(metadata.type) and _op(metadata) not in _QUIET:
            return Row(stack, name_of(metadata.urn), _op(metadata), _changes(metadata, "inputs"))
    if event.res_outputs_event is not None and _op(event.res_outputs_event.metadata) == "refresh":
        return to_drift(event, stack)
    return _warning(event, stack)


def to_drift(event: Any, stack: str) -> Row | None:
    """Translate one engine event of a refresh into a row; None for what is as the state says."""
    if event.res_outputs_event is None:
        return _warning(event, stack)
    metadata = event.res_outputs_event.metadata
    if not is_ours(metadata.type):
        return None
    if metadata.new is None:
        return Row(stack, name_of(metadata.urn), "drift", "gone")
    if not metadata.diffs and not metadata.detailed_diff:
        return None
    found = metadata.new.outputs or {}
    if str(found.get("status", "ready")) != "ready":
        said = f"{found.get('status')} in {found.get('phase') or 'contact'}: {found.get('reason') or ''}"
        return Row(stack, name_of(metadata.urn), "drift", said)
    return Row(stack, name_of(metadata.urn), "drift", _changes(metadata, "outputs"))


def _warning(event: Any, stack: str) -> Row | None:
    """Return what the provider warned of: a machine that could not be looked at is unknown, not unchanged."""
    said = event.diagnostic_event
    if said is None or said.severity != "warning" or not (said.urn and _of_device(said.urn)):
        return None
    name = name_of(said.urn)
    return Row(stack, name, "warning", _text(said.message).removeprefix(f"{name}: "))


def error_of(event: Any) -> str | None:
    """Return the text of an engine event that is an error, with the resource's name before it."""
    said = event.diagnostic_event
    if said is None or said.severity != "error":
        return None
    text = _text(said.message)
    return f"{name_of(said.urn)}: {text}" if said.urn and (_of_device(said.urn) or _CLOUD in said.urn) else text


def is_ours(type_token: str | None) -> bool:
    """Tell a machine or a switch from a component, a provider or the stack itself."""
    return (type_token or "").startswith(OURS) or type_token in RENTED


def _of_device(urn: str) -> bool:
    """Tell whether a URN is a machine's, a switch's, or of what a rented host consists of."""
    return OURS in urn or _HOST in urn


def name_of(urn: str) -> str:
    """Return the designed name at the end of a URN."""
    return urn.rpartition("::")[2]


def _said(said: Any, at: float) -> Event | None:
    if said.severity == "debug":
        return None
    host = name_of(said.urn) if said.urn and _of_device(said.urn) else None
    text = _text(said.message)
    match = _PHASE.match(text)
    if said.severity == "error":
        return Event(at, STAGE, host, "engine", State.FAILED, text)
    if said.severity.startswith("info") and host is not None and match:
        return Event(at, STAGE, host, match[1], State.PROGRESS, match[2])
    return Event(at, STAGE, host, "warning" if said.severity == "warning" else "engine", State.PROGRESS, text)


def _started(step: Any, at: float) -> Event | None:
    metadata = step.metadata
    if not is_ours(metadata.type) or _op(metadata) in _QUIET or getattr(step, "planning", False):
        return None
    return Event(at, STAGE, name_of(metadata.urn), _op(metadata), State.STARTED, _changes(metadata, "inputs"))


def _ended(step: Any, at: float) -> Event | None:
    metadata = step.metadata
    if not is_ours(metadata.type) or getattr(step, "planning", False):
        return None
    host, op = name_of(metadata.urn), _op(metadata)
    if metadata.new is None:
        return Event(at, STAGE, host, op, State.CHANGED, "")
    found: Mapping[str, Any] = metadata.new.outputs or {}
    state = _STATUS.get(str(found.get("status", "ready")), State.FAILED)
    if state is State.CHANGED:
        return Event(at, STAGE, host, op, State.OK if op in _QUIET else State.CHANGED, str(found.get("reason") or ""))
    return Event(at, STAGE, host, str(found.get("phase") or op), state, str(found.get("reason") or ""))


def _op(metadata: Any) -> str:
    op = metadata.op
    return str(getattr(op, "value", op))


def _text(message: str) -> str:
    return _COLOUR.sub("", message).strip()


def _summary(summary: Any) -> str:
    counts = {str(getattr(op, "value", op)): count for op, count in (summary.resource_changes or {}).items()}
    return ", ".join(f"{count} {op}" for op, count in sorted(counts.items())) or "nothing to do"


def _changes(metadata: Any, side: str) -> str:
    """Write what changes, path by path; long values stay out of a table: `files[0].content` says enough."""
    paths = sorted(metadata.detailed_diff or metadata.diffs or ())
    old = getattr(metadata.old, "outputs", None) or {}
    new = getattr(metadata.new, side, None) or {}
    return ", ".join(_change(path, at_path(old, path), at_path(new, path)) for path in paths)


def _change(path: str, old: Any, new: Any) -> str:
    if all(_is_short(value) for value in (old, new)) and old != new:
        return f"{path}: {'none' if old is None else old} -> {'none' if new is None else new}"
    return path


def _is_short(value: Any) -> bool:
    if value is None or isinstance(value, bool | int | float):
        return True
    return isinstance(value, str) and len(value) <= _SHOWN and "\n" not in value


def at_path(document: Any, path: str) -> Any:
    """Return what lies at an engine's property path; None when nothing does.

    A path is written as "bios.SriovEnable", "files[0].content" or 'bios["a.b"]'.
    """
    for match in _STEP.finditer(path):
        step = next(group for group in match.groups() if group is not None)
        if isinstance(document, Mapping):
            document = document.get(step)
        elif isinstance(document, list) and step.isdigit() and int(step) < len(document):
            document = document[int(step)]
        else:
            return None
    return document
