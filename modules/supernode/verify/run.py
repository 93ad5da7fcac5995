"""`verify`: the rollout checks of tests/rollout, run by pytest in this process; the same files run by pytest alone.

A finding counts when a test asserted it: what is returned here is what the tests reported, not what the gates computed.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from supernode import design as designing
from supernode import packaged, spec, workspace
from supernode.design import Design, expectations
from supernode.errors import CouldNotRun
from supernode.records import Event, Finding, Outputs, Verdict
from supernode.verify import baselines, expected, gates, gather, localise, reach
from supernode.verify.expected import Wanted
from supernode.verify.facts.device import Facts
from supernode.workspace import EnvironmentFolder

PLUGIN = "supernode-verify"
PROPERTY = "finding"
_RAN = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
OnEvent = Callable[[Event], None]


def _silence(_event: Event) -> None:
    """Drop an event."""


def _nothing() -> None:
    """Break no connection: there are none."""


@dataclass(frozen=True)
class Case:
    """What one verification compares, and how it reaches the devices."""

    wanted: Wanted
    connect: gather.Connect
    on_event: OnEvent = _silence
    cut: Callable[[], None] = _nothing

    def findings(self) -> list[Finding]:
        """Gather the facts, judge them and name the causes."""
        facts = gather.gather(self.wanted, self.connect, self.on_event, cut=self.cut)
        return localise.explain(self.wanted, facts, gates.judge(self.wanted, facts))

    def places(self, check: str) -> list[str]:
        """Return the places that a check looks at; needs no facts."""
        return [row.place for row in gates.GATES[check](self.wanted, Facts({}))]


def case(folder: EnvironmentFolder, design: Design, outputs: Outputs, on_event: OnEvent = _silence) -> Case:
    """Put together what to compare; the installed image is what the engine's outputs say."""
    images = {name: device.image for name, device in outputs.devices.items() if device.image}
    wanted = expected.read(expectations.build(design), images, baselines.read(folder))
    access = design.environment.access
    login = reach.Login(access.user, folder.ssh_key_file, access.switch_user)
    connections = reach.Connections(outputs, login)
    return Case(wanted, connections, on_event, connections.cut)


def load(environment: str) -> Case:
    """Put together the case of an environment from its documents and the last outputs.

    Raises:
        Refusal: the documents are wrong.
        CouldNotRun: no such environment, or nothing provisioned yet.
    """
    folder = workspace.find(environment)
    return case(folder, designing.build(spec.read(folder.texts(), name=folder.name)), workspace.read_outputs(folder))


class Session:
    """The pytest plugin that carries the case in and the findings out."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.reported: list[Finding] = []
        self.broken: list[str] = []
        self.stopped = False

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Tell Ctrl-C from what pytest also calls an interrupt: checks that cannot be collected."""
        self.stopped = excinfo.type is KeyboardInterrupt

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect what each test asserted; a test that could not even begin makes the whole verification void."""
        if report.when == "setup" and report.failed:
            said = [line[1:].strip() for line in report.longreprtext.splitlines() if line.startswith("E ")]
            self.broken.append(said[0] if said else report.nodeid)
        if report.when == "call":
            self.reported += [read_property(value) for name, value in report.user_properties if name == PROPERTY]


def write_property(finding: Finding) -> str:
    """Write a finding as the text of a test's property, in JUnit too."""
    row = {**finding.__dict__, "verdict": finding.verdict.value}
    return json.dumps(row)


def read_property(value: Any) -> Finding:
    """Read what `write_property` wrote."""
    row = json.loads(value)
    lists = {"cables": tuple(row["cables"]), "evidence": tuple(row["evidence"])}
    return Finding(**{**row, "verdict": Verdict(row["verdict"]), **lists})


def verify(
    folder: EnvironmentFolder,
    design: Design,
    outputs: Outputs,
    on_event: OnEvent,
    *,
    run_dir: Path | None = None,
    junit: Path | None = None,
) -> list[Finding]:
    """Run the rollout checks and return what they found, in the order of the gates.

    Args:
        folder: the environment.
        design: what should be.
        outputs: where the devices are, and their pinned keys.
        on_event: is called for each device and each round of flows, from other threads too.
        run_dir: gets verify.log, pytest's own output.
        junit: gets pytest's JUnit file.

    Raises:
        CouldNotRun: pytest could not collect or run the checks.
        KeyboardInterrupt: Ctrl-C; the connections were broken first.
    """
    session = Session(case(folder, design, outputs, on_event))
    return run_tests(session, folder.name, run_dir=run_dir, junit=junit)


def run_tests(
    session: Session, environment: str, *, run_dir: Path | None = None, junit: Path | None = None
) -> list[Finding]:
    """Run tests/rollout with a session; see `verify`."""
    rollout = packaged.root() / "tests" / "rollout"
    arguments = [str(rollout), "-c", str(rollout / "pytest.ini"), "--environment", environment]
    arguments += ["-q", "--capture=no", "-p", "no:cacheprovider"]
    arguments += [f"--junitxml={junit}"] if junit is not None else []
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = pytest.main(arguments, plugins=[session])
    if run_dir is not None:
        workspace.write_atomically(run_dir / "verify.log", printed.getvalue())
    if session.stopped:
        raise KeyboardInterrupt
    if code not in _RAN:
        lines = [line for line in printed.getvalue().splitlines() if line.strip()]
        raise CouldNotRun(str(rollout), f"pytest ended with {int(code)}: {lines[-1] if lines else 'no output'}")
    if session.broken or not session.reported:
        raise CouldNotRun(str(rollout), session.broken[0] if session.broken else "no check ran")
    return in_order(session.reported)


def in_order(findings: Sequence[Finding]) -> list[Finding]:
    """Sort findings by check as the gates stand, causes before consequences; within a check they keep their order."""
    order = list(gates.GATES)
    return sorted(findings, key=lambda row: order.index(row.check))
