"""Who did what when: one row for each host and switch, one bar for each phase, from the run's events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from html import escape

from supernode.records import Event, Run, State
from supernode.report import clock

_LABEL, _WIDTH, _ROW, _TOP = 128, 1230, 19, 44
_BAD = (State.FAILED, State.LATE)
_OPEN = (State.STARTED, State.PROGRESS)
_LEAST_PX = 2.5
_CHAR_PX = 6.2
_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600)
_MOST_TICKS = 12


@dataclass(frozen=True)
class Bar:
    """One phase of one device; ended is None when no event closed it."""

    device: str
    stage: str
    phase: str
    started: float
    ended: float | None
    state: State
    detail: str


def bars(events: Iterable[Event]) -> list[Bar]:
    """Join the events of each device into bars, one after the other within a stage.

    A phase ends with the event that says how it ended, or when the next phase of that device begins: an operation that
    encloses others ("update") says only at its very end how they went. A phase that says only how it ended began when
    the one before it ended. Neighbouring bars of one phase, such as the tasks of a role, are one.
    """
    by_device: dict[tuple[str, str], list[Event]] = {}
    for event in sorted(events, key=lambda row: row.at):
        if event.host is not None:
            by_device.setdefault((event.host, event.stage), []).append(event)
    found = [bar for (device, stage), rows in by_device.items() for bar in _joined(_in_turn(device, stage, rows))]
    return sorted(found, key=lambda bar: (bar.device, bar.started))


def _in_turn(device: str, stage: str, events: list[Event]) -> Iterator[Bar]:
    current: Event | None = None
    free = events[0].at
    for event in events:
        if event.state not in _OPEN:
            first = current if current is not None else Event(free, stage, device, event.phase, State.STARTED)
            yield Bar(device, stage, first.phase, first.at, event.at, event.state, event.detail or first.detail)
            current, free = None, event.at
        elif current is None:
            current = event
        elif current.phase != event.phase:
            yield Bar(device, stage, current.phase, current.at, event.at, State.OK, current.detail)
            current = event
    if current is not None:
        yield Bar(device, stage, current.phase, current.at, None, State.STARTED, current.detail)


_WORST = (State.FAILED, State.LATE, State.STARTED, State.CHANGED, State.OK, State.SKIPPED)


def _joined(rows: Iterable[Bar]) -> list[Bar]:
    found: list[Bar] = []
    for bar in rows:
        before = found[-1] if found else None
        if before is None or before.phase != bar.phase:
            found.append(bar)
            continue
        state = min(before.state, bar.state, key=_WORST.index)
        detail = bar.detail if bar.state is state else before.detail
        found[-1] = replace(before, ended=bar.ended, state=state, detail=detail)
    return found


def draw(run: Run) -> str:
    """Draw the timeline as SVG; an empty string when no device had an event."""
    rows = bars(run.events)
    if not rows:
        return ""
    devices = sorted({bar.device for bar in rows}, key=_hosts_first)
    start = min([run.started, *(bar.started for bar in rows)])
    end = max([run.ended or start, *(bar.ended or bar.started for bar in rows), start + 1])
    scale = _WIDTH / (end - start)
    height = _TOP + len(devices) * _ROW + 12
    parts = [f'<svg class="timeline" viewBox="0 0 {_LABEL + _WIDTH + 16} {height}" width="100%" role="img">']
    parts += _bands(run, start, end, scale, height)
    parts += _ticks(start, end, scale, height)
    for i, device in enumerate(devices):
        y = _TOP + i * _ROW
        parts.append(f'<text class="device" x="{_LABEL - 10}" y="{y + 13}">{escape(device)}</text>')
        parts += [_bar(bar, start, end, scale, y) for bar in rows if bar.device == device]
    return "\n".join([*parts, "</svg>"])


def _hosts_first(device: str) -> tuple[bool, str]:
    """Sort hosts before switches, by name (docs/contracts.md, section 1)."""
    return ("-leaf" in device or device.startswith("spine"), device)


def _bands(run: Run, start: float, end: float, scale: float, height: int) -> list[str]:
    parts = []
    for stage in run.stages:
        x = _LABEL + (stage.started - start) * scale
        width = max(((stage.ended or end) - stage.started) * scale, 1)
        name = stage.name if width > len(stage.name) * _CHAR_PX else ""
        title = f"{stage.name}: {clock.span((stage.ended or end) - stage.started)}"
        parts.append(
            f'<rect class="band {escape(stage.name)}" x="{x:.1f}" y="0" width="{width:.1f}" height="{height}">'
            f"<title>{escape(title)}</title></rect>"
            f'<text class="bandname" x="{x + 5:.1f}" y="14">{escape(name)}</text>'
        )
    return parts


def _ticks(start: float, end: float, scale: float, height: int) -> list[str]:
    step = next((step for step in _STEPS if (end - start) / step <= _MOST_TICKS), _STEPS[-1])
    parts, at = [], 0.0
    while at <= end - start:
        x = _LABEL + at * scale
        parts.append(
            f'<line class="tick" x1="{x:.1f}" x2="{x:.1f}" y1="22" y2="{height}"/>'
            f'<text class="ticktext" x="{x + 3:.1f}" y="33">{clock.span(at)}</text>'
        )
        at += step
    return parts


def _bar(bar: Bar, start: float, end: float, scale: float, y: float) -> str:
    ended = bar.ended if bar.ended is not None else end
    x, width = _LABEL + (bar.started - start) * scale, max((ended - bar.started) * scale, _LEAST_PX)
    state = "bad" if bar.state in _BAD else "open" if bar.ended is None else bar.state.value
    title = (
        f"{bar.device} {bar.phase}: {bar.state.value}\n{clock.span(bar.started - start)} to {clock.span(ended - start)}"
    )
    title += f" ({ended - bar.started:.1f} s)" + (f"\n{bar.detail}" if bar.detail else "")
    words = bar.phase if width > len(bar.phase) * _CHAR_PX + 8 else ""
    text = f'<text class="phase" x="{x + 4:.1f}" y="{y + 12}">{escape(words)}</text>' if words else ""
    return (
        f'<g class="bar {escape(bar.stage)} {state}"><title>{escape(title)}</title>'
        f'<rect x="{x:.1f}" y="{y + 2}" width="{width:.1f}" height="{_ROW - 5}" rx="3"/>{text}</g>'
    )
