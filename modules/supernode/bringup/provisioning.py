"""The provisioning stage: bring up, quarantine who never came, fence, let spares take over, bring up what changed.

Each step is written to machines.yml before it is done, and what is next follows from the documents and the Outputs
alone: see `stragglers`.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from supernode import design as designing
from supernode import spec, workspace
from supernode.boot.enrolment import revoke
from supernode.bringup import inventory_source, machines, prepare, provision, stragglers
from supernode.design import Design
from supernode.errors import SupernodeError
from supernode.records import Event, Finding, Outputs, State
from supernode.spec import Inputs, Machines
from supernode.workspace import EnvironmentFolder

OnEvent = Callable[[Event], None]
LOOK_S = 90.0  # for the look before a takeover


@dataclass
class Provisioning:
    """One environment on its way from the documents to the Outputs.

    Attributes:
        inputs, design: as they stand now: they change when a slot is quarantined or a spare takes over.
        reinstall, plan_hash: what a person confirmed.
        site: why nobody was quarantined, where too many failed for that.
        silent: who did not answer when looked at before a takeover, and what was said of it.
    """

    folder: EnvironmentFolder
    inputs: Inputs
    design: Design
    run_id: str
    on_event: OnEvent
    reinstall: Sequence[str] = ()
    plan_hash: str = ""
    site: str = ""
    silent: dict[str, str] = field(default_factory=dict)

    def run(self) -> Outputs:
        """Bring up what the Design says, and make good for what did not come up where the spares suffice.

        Raises:
            CouldNotRun: as for `provision.up`; what was written stands, and the next run goes on from there.
        """
        until = time.time() + self.inputs.environment.budgets.provision_s
        self._revoke()
        outputs = self._up(until)
        late, self.site = stragglers.to_quarantine(self.design, outputs)
        if self.site:
            self._say(None, "quarantine", State.FAILED, self.site)
        if late:
            self._quarantine(stragglers.quarantined(self.design, outputs, late, self.run_id))
            outputs = provision.fence(self.folder, self.design, self.on_event)
        if stragglers.takeovers(self.design, outputs):
            outputs = self._seen_now(outputs, until)
        spares = stragglers.takeovers(self.design, outputs)
        if spares:
            self._take_over(stragglers.activated(self.design, spares, self.run_id))
        # Who did not come up was given its time above, and is not asked again.
        missed = [host.name for host in stragglers.missed(self.design, outputs)]
        return self._up(until, missed) if late or spares else outputs

    def _quarantine(self, after: Machines) -> None:
        for name, slot in self._written(after):
            self._say(name, "quarantine", State.FAILED, f"{slot} is quarantined: {after.slots[slot].reason}")
        self._revoke()

    def _seen_now(self, outputs: Outputs, until: float) -> Outputs:
        """Look at what a takeover would rest on, for an update asks nobody whose documents did not change.

        A leaf that shows something else by now is fenced anew; who does not answer proves nothing.
        """
        leaves, spares = stragglers.grounds(self.design, outputs)
        self._say(None, "look", State.PROGRESS, f"before a takeover: {', '.join([*leaves, *spares])}")
        limit = min(until, time.time() + LOOK_S)
        rows = provision.refresh(self.folder, self.design, self.on_event, only=[*leaves, *spares], until=limit)
        for row in rows:
            self._say(row.resource, "look", State.PROGRESS, row.detail)
        self.silent = {row.resource: row.detail for row in rows if row.op == "warning"}
        if any(row.resource in leaves and row.op != "warning" for row in rows):
            outputs = provision.fence(self.folder, self.design, self.on_event)
        else:
            outputs = provision.outputs(self.folder)
        return self._kept(outputs)

    def _take_over(self, after: Machines) -> None:
        for name, slot in self._written(after):
            self._say(name, "takeover", State.CHANGED, f"the spare takes over for {after.slots[slot].replaces}")

    def findings(self, outputs: Outputs) -> list[Finding]:
        """Return how each designed host came out of it."""
        return stragglers.findings(self.design, outputs, self.site)

    def _revoke(self) -> None:
        """End the enrolment of every quarantined machine: what it was handed before is good for nothing now."""
        for host in self.design.hosts:
            if host.state == "quarantined":
                revoke(self.folder.state, host.name)

    def _up(self, until: float, leave: Sequence[str] = ()) -> Outputs:
        folder, design, hear = self.folder, self.design, self.on_event
        try:
            outputs = provision.up(
                folder, design, hear, reinstall=self.reinstall, plan_hash=self.plan_hash, leave=leave, until=until
            )
        except SupernodeError:  # the stacks that did not fail ran to their end: what they made is known from now on
            with suppress(SupernodeError):
                write_outputs(self.folder, provision.outputs(self.folder))
            raise
        return self._kept(outputs)

    def _kept(self, outputs: Outputs) -> Outputs:
        """Write the Outputs to disk, those as late who did not answer when they were looked at; return them."""
        outputs = stragglers.unanswered(outputs, self.silent)
        write_outputs(self.folder, outputs)
        return outputs

    def _written(self, after: Machines) -> list[tuple[str, str]]:
        """Replace machines.yml and compute from it what follows; returns host and slot of what was written.

        What somebody else wrote meanwhile stays.
        """
        before = self.inputs.machines
        merged, left = machines.merge(before, after, spec.read(self.folder.texts()).machines)
        for slot in left:
            self._say(None, "machines", State.SKIPPED, f"{slot}: machines.yml was changed during the run; left alone")
        self.folder.write("machines", spec.machines_text(merged))
        self.inputs = dataclasses.replace(self.inputs, machines=merged)
        self.design = designing.build(self.inputs)
        prepare.prepare(self.folder, self.design, self.on_event)
        changed = [slot for slot in sorted(after.slots) if after.slots[slot].state != before.slots[slot].state]
        return [(self.design.slots[slot], slot) for slot in changed if slot not in left]

    def _say(self, host: str | None, phase: str, state: State, detail: str) -> None:
        self.on_event(Event(time.time(), "provision", host, phase, state, detail))


def write_outputs(folder: EnvironmentFolder, outputs: Outputs) -> None:
    """Keep the Outputs, and pin the host keys that they carry."""
    text = json.dumps(outputs.to_json(), indent=1) + "\n"
    workspace.write_atomically(workspace.outputs_file(folder), text)
    inventory_source.pin(folder, outputs)
