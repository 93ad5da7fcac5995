"""The live board of a run: hosts down, phases across; plain lines where the output is no terminal."""

from __future__ import annotations

import time
from collections.abc import Mapping

from rich.live import Live
from rich.table import Table
from rich.text import Text

from supernode.cli.output import talk
from supernode.records import Event, State

_MARKS = {
    State.STARTED: ("…", "yellow"),
    State.PROGRESS: ("…", "yellow"),
    State.OK: ("✓", "green"),
    State.CHANGED: ("✓", "cyan"),
    State.FAILED: ("✗", "bold red"),
    State.LATE: ("late", "bold red"),
    State.SKIPPED: ("–", "dim"),
}


class Board:
    """Shows events as they come; use as a context.

    Args:
        name: the environment.
        budgets: seconds for each stage, for the clock's line.
    """

    def __init__(self, name: str, budgets: Mapping[str, float]) -> None:
        self._name, self._budgets = name, budgets
        self._cells: dict[str, dict[str, State]] = {}
        self._phases: list[str] = []
        self._stage, self._since, self._line = "", time.time(), ""
        self._live = (
            Live(get_renderable=self._table, console=talk, refresh_per_second=4, transient=False)
            if talk.is_terminal
            else None
        )

    def __enter__(self) -> Board:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def show(self, event: Event) -> None:
        """Take one event in; prints it where there is no live table."""
        if event.stage != self._stage:
            self._stage, self._since = event.stage, time.time()
            if self._live is None:
                talk.print(f"{_clock(event.at)} {event.stage}", markup=False)
        if event.host:
            if event.phase not in self._phases:
                self._phases.append(event.phase)
            self._cells.setdefault(event.host, {})[event.phase] = event.state
        self._line = f"{event.host or event.stage}: {event.phase}: {event.detail}"
        if self._live is None and self._worth_a_line(event):
            talk.print(
                f"{_clock(event.at)}   {event.host or '-':<14} {event.phase:<14} {event.state.value:<9} {event.detail}",
                markup=False,
            )

    def _worth_a_line(self, event: Event) -> bool:
        return event.state is not State.STARTED and bool(
            event.detail or event.state in (State.FAILED, State.LATE, State.CHANGED)
        )

    def _table(self) -> Table:
        spent = time.time() - self._since
        budget = self._budgets.get(self._stage)
        of = f" of {budget / 60:.0f} min" if budget else ""
        table = Table(
            title=f"{self._name}  {self._stage}  {spent / 60:.1f}{of}", caption=self._line[:140], expand=False
        )
        table.add_column("host")
        for phase in self._phases:
            table.add_column(phase, justify="center")
        for host in sorted(self._cells):
            table.add_row(host, *(_mark(self._cells[host].get(phase)) for phase in self._phases))
        return table


def _mark(state: State | None) -> Text:
    mark, style = _MARKS[state] if state else ("", "")
    return Text(mark, style=style)


def _clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))
