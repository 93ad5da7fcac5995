"""A run for the terminal, as rich renderables that somebody else prints."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from supernode.records import Finding, Run, Verdict
from supernode.report import clock
from supernode.report.problems import Problem, group

_STYLE = {Verdict.PASS: "green", Verdict.FAIL: "bold red", Verdict.UNKNOWN: "yellow", Verdict.ADVICE: "cyan"}
_SHOWN = 6


def render(run: Run) -> RenderableType:
    """Return the whole run: verdict, stages against their budgets, problems, counts by check."""
    parts: list[RenderableType] = [_headline(run)]
    if run.stages:
        parts.append(_stages(run))
    if run.findings:
        parts.append(findings(run.findings))
    return Group(*parts)


def findings(rows: Sequence[Finding]) -> RenderableType:
    """Return the problems, if any, and the counts by check."""
    problems = group(rows)
    return Group(*([causes(problems)] if problems else []), checks(rows))


def _headline(run: Run) -> Text:
    verdict = clock.verdict(run)
    style = {"ok": "bold green", "bad": "bold red"}.get(verdict.tone, "bold yellow")
    line = Text.assemble((verdict.words, style), f"  {run.environment}  run {run.id}")
    used = clock.used(run)
    return line.append(f"  {clock.span(used)} of {clock.span(clock.budget(run))}") if used is not None else line


def _stages(run: Run) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("stage")
    table.add_column("took", justify="right")
    table.add_column("budget", justify="right")
    table.add_column("outcome")
    for stage in run.stages:
        took = clock.span(stage.ended - stage.started) if stage.ended else "-"
        budget = clock.span(stage.budget_s) if stage.budget_s else "own clock"
        table.add_row(stage.name, took, budget, Text(stage.outcome, "green" if stage.outcome == "ok" else "bold red"))
    return table


def causes(problems: list[Problem]) -> Table:
    """Return one row for each problem, with what to do and what follows from it."""
    table = Table(title=f"{len(problems)} problem{'s' * (len(problems) != 1)}", title_justify="left", show_lines=True)
    table.add_column("verdict")
    table.add_column("cause, and what to do", overflow="fold")
    table.add_column("seen at", overflow="fold")
    for problem in problems:
        what = Text(problem.cause)
        for line in problem.head.evidence[:_SHOWN]:
            what.append(f"\n  {line}", "dim")
        if problem.head.hint:
            what.append(f"\nhint: {problem.head.hint}", "italic")
        table.add_row(Text(problem.verdict.value, _STYLE[problem.verdict]), what, _seen(problem))
    return table


def _seen(problem: Problem) -> str:
    rows = problem.findings
    lines = [f"{row.check} {row.place}" for row in rows[:_SHOWN]]
    return "\n".join([*lines, *([f"and {len(rows) - _SHOWN} more"] if len(rows) > _SHOWN else [])])


def checks(rows: Sequence[Finding]) -> Table:
    """Return the counts by check and verdict."""
    table = Table(box=None, pad_edge=False)
    table.add_column("check")
    for verdict in Verdict:
        table.add_column(verdict.value, justify="right")
    for check in dict.fromkeys(row.check for row in rows):
        counts = [sum(row.check == check and row.verdict is verdict for row in rows) for verdict in Verdict]
        cells = [Text(str(n) if n else "-", _STYLE[v] if n else "dim") for v, n in zip(Verdict, counts, strict=True)]
        table.add_row(check, *cells)
    return table


def runs(rows: list[Run]) -> RenderableType:
    """Return a table of runs, the newest last."""
    table = Table(box=None, pad_edge=False)
    for name in ("run", "started (UTC)", "took", "verdict", "problems"):
        table.add_column(name)
    for run in rows:
        verdict = clock.verdict(run)
        took = clock.span(run.ended - run.started) if run.ended is not None else "-"
        style = {"ok": "green", "bad": "red"}.get(verdict.tone, "yellow")
        table.add_row(
            run.id, clock.moment(run.started), took, Text(verdict.words, style), str(len(group(run.findings)))
        )
    return table
