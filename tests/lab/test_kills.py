"""A run is killed, and the next one makes it whole: four kills in CI, all thirty by `make kills`.

Each test leaves the lab in service for the next. A kill that failed is repeated alone by its id: -k supernode-create-2.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import kill_matrix
import lab_site
import pytest
from kill_matrix import Kill

CELLS = [
    *[(what, when) for when in ("create", "lock", "ansible", "verify", "write") for what in ("tree", "supernode")],
    *[(what, when) for when in ("create", "lock") for what in ("pulumi", "provider")],
    ("ansible", "ansible"),
]
THIRTY = [Kill(what, when, seed) for what, when in CELLS for seed in (1, 2)]
SHORT = [
    Kill("supernode", "create", 3),
    Kill("pulumi", "lock", 3),
    Kill("tree", "ansible", 3),
    Kill("tree", "write", 3),
]
OUTCOMES: list[kill_matrix.Outcome] = []


@pytest.fixture(scope="module")
def site():
    made = kill_matrix.make("kills", 64)
    try:
        yield made
        _keep(made)
    finally:
        lab_site.forget(made)


def _keep(made):
    """Print the table, and write it where KILLS_TABLE says: the site's own folder goes away."""
    text = kill_matrix.table(OUTCOMES)
    print("\n" + text)
    if os.environ.get("KILLS_TABLE"):
        Path(os.environ["KILLS_TABLE"]).write_text(text)


def _named(kills, core=()):
    return [
        pytest.param(
            kill, id=f"{kill.what}-{kill.when}-{kill.seed}", marks=[pytest.mark.core] if kill.when in core else []
        )
        for kill in kills
    ]


def _holds(site, kill):
    outcome = kill_matrix.play(site, kill)
    OUTCOMES.append(outcome)
    _keep(site)
    assert outcome.hit, f"{kill}: the run ended before its moment\n{outcome.said}"
    assert not outcome.left, f"{kill}: {outcome.left}"
    assert not outcome.missing, f"{kill}: {outcome.missing}\n{outcome.said}"
    assert outcome.converged, f"{kill}:\n{outcome.said}"


@pytest.mark.operations
@pytest.mark.parametrize("kill", _named(SHORT, core=("ansible",)))
def test_a_killed_run_is_made_whole_by_the_next(site, kill):
    _holds(site, kill)


@pytest.mark.kills
@pytest.mark.parametrize("kill", _named(THIRTY))
def test_kill(site, kill):
    _holds(site, kill)


@pytest.mark.operations
@pytest.mark.parametrize("moment", ["lock", pytest.param("ansible", marks=pytest.mark.core), "verify"])
def test_ctrl_c_ends_a_run_in_order_says_how_to_go_on_and_leaves_nothing(site, moment):
    kill_matrix.ready(site, Kill("ctrl-c", moment, 1))
    run = kill_matrix.Run(site)
    assert run.wait_for(kill_matrix.MOMENTS[moment], 0.05)
    time.sleep(0.5)
    os.killpg(run.process.pid, signal.SIGINT)  # as a terminal does: to its whole foreground group
    run.end()
    assert run.process.returncode == 130
    assert not run.carrying()
    record = (run.folder / "run.json").read_text()
    assert '"exit_code": 130' in record
    assert "Interrupted" in (run.folder / "report.html").read_text()
    assert f"resume: supernode bringup {site.name}" in (site.root / "killed.log").read_text()
