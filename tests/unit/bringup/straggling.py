"""A lab of nine that is bound, and what the engine says of it when some machines or switches do not do as told."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

from supernode import design as designing
from supernode import spec
from supernode.bringup import provisioning
from supernode.bringup.provision import Row
from supernode.bringup.provisioning import Provisioning
from supernode.records import DeviceOutput, Outputs
from supernode.spec import Identity, Inputs, Machines, SlotRecord
from supernode.workspace import EnvironmentFolder

DEAD = ("gpu-002", "gpu-005")
LAB = (Path(__file__).resolve().parents[3] / "tests" / "lab" / "slim" / "environment.yml").read_text()


def lab(text=LAB, **states):
    """The lab's design, every slot bound; `states` by designed name with _ for -."""
    inputs = spec.read({"environment": text})
    bare = designing.build(inputs)
    records = {}
    for number, (slot, name) in enumerate(bare.slots.items()):
        planned = "spare" if bare.is_host(name) and bare.planned_spare(name) else "new"
        state = states.get(name.replace("-", "_"), planned)
        reason = "by hand" if state == "quarantined" else ""
        records[slot] = SlotRecord(state=state, reason=reason, identity=Identity(system_serial=f"S{number:04d}"))
    return designing.build(Inputs(inputs.environment, bare.allocation, Machines(slots=records)))


def applied(design, switch):
    return {f.path: hashlib.sha256(f.content.encode()).hexdigest() for f in design.switch_files(switch)}


def outputs(design, dead=(), deaf=(), before=None):
    """What an `up` of this design leaves: `dead` machines are late, `deaf` switches keep what they had."""
    devices = {}
    for host in design.hosts:
        found = DeviceOutput(host.name, "machine", host.slot, str(host.management.ip), image="i1", power="On")
        if host.state == "quarantined":  # never contacted: what was known of it stays
            found = (before.devices if before else {}).get(host.name, late(found))
        devices[host.name] = late(found) if host.name in dead else found
    for switch in design.switches:
        ready = DeviceOutput(switch.name, "switch", switch.slot, "", applied=applied(design, switch.name))
        failed = DeviceOutput(switch.name, "switch", switch.slot, "", "late", "contact", "no login within 60 s")
        devices[switch.name] = failed if switch.name in deaf else ready
    return Outputs(design.name, design.digest, devices)


def late(found):
    return DeviceOutput(
        found.name, "machine", found.slot, found.address, "late", "deploy", "no report in 60 s", evidence=("POST 0x92",)
    )


def state(design, name):
    return str(design.machines.slots[design.host(name).slot].state)


class KilledError(BaseException):
    """The process is gone."""


class World:
    """A site on disk and its engine; `cut` counts down the steps until the process is killed."""

    def __init__(self, root, monkeypatch, text=LAB, dead=DEAD, deaf=(), **states):
        self.folder = EnvironmentFolder("lab", root / "inventories" / "lab", root)
        self.dead, self.deaf, self.cut = set(dead), set(deaf), 0
        self.steps, self.events, self.until, self.last = [], [], [], None
        self.silent, self.opened, self.looked = set(), set(), []
        start = lab(text, **states)
        self.folder.write("environment", text)
        self.folder.write("allocation", spec.allocation_text(start.allocation))
        self.folder.write("machines", spec.machines_text(start.machines))
        engine = SimpleNamespace(up=self.up, fence=self.fence, refresh=self.refresh, outputs=lambda _: self.last)
        monkeypatch.setattr(provisioning, "provision", engine)
        monkeypatch.setattr(provisioning, "prepare", SimpleNamespace(prepare=self.prepare))
        monkeypatch.setattr(provisioning, "revoke", lambda _state, host: self.step(f"revoke {host}"))
        write = EnvironmentFolder.write

        def wrote(folder, name, text):
            self.step(f"before writing {name}")
            write(folder, name, text)
            self.step(f"after writing {name}")

        monkeypatch.setattr(EnvironmentFolder, "write", wrote)

    def step(self, name):
        self.steps.append(name)
        self.cut -= 1
        if self.cut == 0:
            raise KilledError(name)

    def documents(self):
        return spec.read(self.folder.texts(), name="lab")

    def design(self):
        return designing.build(self.documents())

    def run(self, **how):
        inputs = self.documents()
        stage = Provisioning(self.folder, inputs, designing.build(inputs), "r1", self.events.append, **how)
        return stage, stage.run()

    def prepare(self, _folder, design, _on_event):
        assert design.digest == designing.build(self.documents()).digest  # of what lies on disk, and nothing else
        self.step("prepare")

    def look(self, design):
        self.last = outputs(design, self.dead, self.deaf, self.last)
        return self.last

    def up(self, _folder, design, _on_event, *, reinstall=(), plan_hash="", leave=(), until=0.0):
        self.until.append(until)
        self.step(f"up without {','.join(leave)}" if leave else "up")
        return self.look(design)

    def fence(self, _folder, design, _on_event):
        self.step("fence")
        return self.look(design)

    def refresh(self, _folder, _design, _on_event, *, only, until):
        """`silent`: who does not answer, so that the state stays; `opened`: whose configuration somebody changed."""
        self.looked.append((list(only), until))
        self.step("look")
        rows = [
            Row("lab", name, "warning", "cannot be read: no login within 60 s") for name in only if name in self.silent
        ]
        changed = {name: self.last.devices[name] for name in only if name in self.opened - self.silent}
        for name, device in changed.items():
            rows.append(Row("lab", name, "drift", "applied"))
            changed[name] = replace(device, applied=dict.fromkeys(device.applied, "0" * 64))
        self.last = replace(self.last, devices={**self.last.devices, **changed})
        self.opened.clear()
        return rows

    def states(self):
        machines = self.documents().machines
        design = designing.build(self.documents())
        return {h.name: (str(machines.slots[h.slot].state), machines.slots[h.slot].replaces) for h in design.hosts}
