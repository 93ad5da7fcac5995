"""One run, end to end: prepare, provision, configure, verify, record.

Nothing is kept in memory alone: an event is on disk before it is shown, run.json is replaced after each stage,
outputs.json as soon as the engine has ended, machines.yml as soon as the checks have. A run that is killed is followed
by another that adopts what exists.
"""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from supernode import design as designing
from supernode import plan as planning
from supernode import spec, workspace
from supernode.bringup import (
    configure,
    handover,
    killed,
    lock,
    machines,
    pacing,
    placing,
    prepare,
    second_look,
    stragglers,
)
from supernode.bringup.clock import Clock
from supernode.bringup.planned import last_design, load_plan
from supernode.bringup.provisioning import Provisioning, write_outputs
from supernode.bringup.record import RunFolder, new_id
from supernode.design import expectations
from supernode.engine import running
from supernode.errors import CouldNotRun, Refusal, SupernodeError, WrongInput
from supernode.records import Event, Finding, Outputs, Run, State, Verdict
from supernode.report import html as report_html
from supernode.report import junit
from supernode.units import Seconds
from supernode.verify import baselines, checks, expected, marks
from supernode.verify.run import verify
from supernode.workspace import EnvironmentFolder

STAGES = ("provision", "configure", "verify")
SHOWN_DIGITS = 12  # of a plan's hash, as `supernode plan` shows it
RUN = "SUPERNODE_RUN"
BEYOND_DEADLINE_S = 300  # an engine that a killed run left is waited for so much longer than for its slowest machine
OnEvent = Callable[[Event], None]


@dataclass(frozen=True)
class Options:
    """What a person may say of a run.

    Attributes:
        only: one of STAGES, or None for all.
        plan: the hash that was shown; the run refuses when what it would do has another. None: nothing was shown.
        reinstall: slots in service that may be installed anew.
    """

    only: str | None = None
    plan: str | None = None
    reinstall: tuple[str, ...] = ()


@dataclass
class Bringup:
    """A run in progress; `run()` is its whole life."""

    folder: EnvironmentFolder
    options: Options
    on_event: OnEvent
    findings: list[Finding] = field(default_factory=list)
    unconfigured: dict[str, str] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)

    def run(self) -> Run:
        """Run the stages and return the record; `exit_code` follows DESIGN (Edges).

        Raises:
            Refusal: the documents are wrong. Nothing was touched, no run was recorded.
            CouldNotRun: the plan is not the one that was shown (nothing was touched), or a stage could not run.
        """
        with lock.held(self.folder, "bringup"):
            return self._run()

    def _run(self) -> Run:
        self.inputs = spec.read(self.folder.texts(), name=self.folder.name)
        self.design = designing.build(self.inputs)
        self._refuse_unsaved()
        plan = load_plan(self.folder, self.design, self.options.reinstall)
        self._refuse_another_plan(plan.hash)
        budgets = self.inputs.environment.budgets
        self.clock = Clock({name: Seconds(getattr(budgets, f"{name}_s")) for name in STAGES})
        self.record = Run(new_id(), self.folder.name, self.design.digest, plan.hash, time.time())
        self.run_folder = RunFolder(self.folder, self.record.id)
        os.environ[RUN] = self.record.id  # every process that the run starts carries its id
        try:
            self._after_the_dead()
            self._stages(plan.hash)
            code = self._exit_code()
            if code == 0:
                self._calibrate()
            self._finish(code)
        except KeyboardInterrupt:
            self._event(Event(time.time(), self._stage(), None, "run", State.FAILED, "interrupted"))
            self._finish(130)
            raise
        except Exception as error:
            self._event(Event(time.time(), self._stage(), None, "run", State.FAILED, str(error)))
            late = self._stage() != "prepare"
            self._finish(error.exit_code if isinstance(error, SupernodeError) and not late else CouldNotRun.exit_code)
            if late and isinstance(error, Refusal | WrongInput):  # which say that nothing was touched
                raise CouldNotRun(f"run {self.record.id}", f"cannot go on: {error}", _hint(error)) from error
            raise
        finally:
            self.run_folder.close()
            os.environ.pop(RUN, None)
        return self.record

    def _stage(self) -> str:
        return self.clock.records[-1].name if self.clock.records else "prepare"

    def _after_the_dead(self) -> None:
        """Close the records of runs that were killed, and wait for what they left working."""
        self._save()

        def tell(line: str) -> None:
            self._event(Event(time.time(), "prepare", None, "before", State.PROGRESS, line))

        self.folder.sweep()
        for run_id in killed.close(self.folder, self.record.id):
            tell(f"run {run_id} was killed; its record is closed")
        limit = self.inputs.environment.machines.deadline_s + BEYOND_DEADLINE_S
        running.wait(running.place(self.folder), limit, tell)

    @property
    def report_path(self) -> Path:
        """Where report.html lies once the run has ended."""
        return self.run_folder.path / "report.html"

    def _refuse_unsaved(self) -> None:
        if not self.design.allocation_saved:
            raise WrongInput(
                str(self.folder.document("allocation")),
                "no allocation is saved: names and addresses could change under a running cluster",
                f"run `supernode allocate {self.folder.name}` and commit the file",
            )

    def _refuse_another_plan(self, plan_hash: str) -> None:
        shown = self.options.plan
        if shown is not None and (len(shown) < SHOWN_DIGITS or not plan_hash.startswith(shown)):
            hint = f"look again: supernode plan {self.folder.name}"
            raise WrongInput(f"plan {shown}", f"the plan is now {plan_hash[:SHOWN_DIGITS]}", hint)

    def _stages(self, plan_hash: str) -> None:
        wanted = [self.options.only] if self.options.only else list(STAGES)
        outputs = self._provision(plan_hash) if "provision" in wanted else workspace.read_outputs(self.folder)
        if "provision" in wanted and (few := stragglers.too_few(self.design, outputs)):
            self._event(Event(time.time(), "provision", None, "minimum", State.FAILED, few[0].cause))
            return
        if self.options.only == "verify":
            self.unconfigured = machines.never_served(self.design)
        if "configure" in wanted:
            with self.clock.stage("configure"):
                placing.place(self.folder, self.design, outputs, self._event)
                done = configure.run(self.folder, self.design, outputs, self._event, self.run_folder.path)
            bad = machines.unconfigured(self.design, outputs, done.stats)
            ready = [host.name for host in self.design.hosts if host.name in done.stats or host.name in bad]
            self.findings += pacing.findings(self.design, ready, bad, done.turn)
            self.unconfigured = bad | {name: done.turn.why() for name in done.turn.held}
            if bad:
                outputs = second_look.look(self.folder, self.design, outputs, bad, self._event)
                write_outputs(self.folder, outputs)
                self.findings = second_look.retold(self.findings, self.design, outputs, bad)
            self._save()
        if "verify" in wanted:
            with self.clock.stage("verify"):
                found = verify(self.folder, self.design, outputs, self._event, run_dir=self.run_folder.path)
                self.findings += found
            self._record_machines(outputs)
            self._hand_over(outputs)

    def _provision(self, plan_hash: str) -> Outputs:
        with self.clock.stage("prepare"):
            prepare.prepare(self.folder, self.design, self._event)
        self._save()
        stage = Provisioning(
            self.folder, self.inputs, self.design, self.record.id, self._event, self.options.reinstall, plan_hash
        )
        with self.clock.stage("provision"):
            try:
                outputs = stage.run()
            finally:  # spares that took over have changed the documents, and the design with them
                self.inputs, self.design = stage.inputs, stage.design
                self.record = dataclasses.replace(self.record, design=self.design.digest)
        self.findings = stage.findings(outputs)
        self._save()
        return outputs

    def _record_machines(self, outputs: Outputs) -> None:
        before, texts = self.inputs.machines, self.folder.texts()
        after = machines.after(before, self.design, outputs, self.findings, self.record.id, self.unconfigured)
        self.machines_after, left = machines.merge(before, after, spec.read(texts).machines)
        for slot in left:
            said = f"{slot}: machines.yml was changed during the run; what stands there is left alone"
            self._event(Event(time.time(), "verify", None, "machines", State.SKIPPED, said))
        text = spec.machines_text(self.machines_after)
        if text != texts.get("machines"):
            self.folder.write("machines", text)
        snapshot = json.dumps(planning.snapshot(self.design), indent=1)
        workspace.write_atomically(last_design(self.folder), snapshot + "\n")

    def _hand_over(self, outputs: Outputs) -> None:
        """Tell the scheduler which machines are verified; the documents are written by then."""
        rows = handover.settle(
            self.folder, self.design, outputs, self.machines_after, tuple(self.findings), self._event
        )
        self.findings += rows

    def _calibrate(self) -> None:
        """Keep what the cables of a clean run carried: it calibrates the marks of the next."""
        cables = expected.read(expectations.build(self.design)).cables()
        good = marks.baseline(cables, self.findings, self.record.id)
        if good is not None:
            baselines.write(self.folder, good)

    def _exit_code(self) -> int:
        if self.unconfigured or any(f.verdict in (Verdict.FAIL, Verdict.UNKNOWN) for f in self.findings):
            return 1
        if self.options.only in ("provision", "configure"):
            return 0
        asked = sum(pool.count for pool in self.inputs.environment.pools)
        return 0 if machines.in_service(self.machines_after) >= asked else 1

    def _event(self, event: Event) -> None:
        self.events.append(event)
        self.run_folder.event(event)
        self.on_event(event)

    def _save(self) -> None:
        self.record = dataclasses.replace(
            self.record, stages=tuple(self.clock.records), events=tuple(self.events), findings=tuple(self.findings)
        )
        self.run_folder.save(self.record)

    def _finish(self, exit_code: int) -> None:
        self._save()
        self.record = dataclasses.replace(self.record, ended=time.time(), exit_code=exit_code)
        self.run_folder.save(self.record)
        self.run_folder.write(
            "report.html", report_html.render(self.record, self.design, report_html.Proof(*checks.proof()))
        )
        self.run_folder.write("junit.xml", junit.render(self.record))


def _hint(error: Refusal | WrongInput) -> str | None:
    """Return what an error says to do about it."""
    if isinstance(error, WrongInput):
        return error.hint
    return next((problem.hint for problem in error.problems if problem.hint), None)
