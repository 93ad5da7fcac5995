"""A site for the real engine: documents, what boot would have prepared, and an echo provider for the machines."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from supernode import design as designing
from supernode import packaged, spec
from supernode.bringup import provision
from supernode.bringup.provision.session import Session
from supernode.design import allocating
from supernode.records import Event
from supernode.workspace import EnvironmentFolder

ECHO = Path(__file__).parent / "echo" / "pulumi-resource-supernode"


@dataclass
class Site:
    """One environment on disk; `world` is what the echo provider finds there."""

    root: Path
    name: str = "lab"
    events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder = EnvironmentFolder(self.name, self.root / "inventories" / self.name, self.root)
        self.world = self.root / "world"
        self.project = self.root / "project"
        self.folder.folder.mkdir(parents=True)
        self.world.mkdir()
        self._project()

    def _project(self) -> None:
        """The repository's own program and Pulumi.yaml, with the echo provider in the provider's place."""
        (self.project / "stacks").mkdir(parents=True)
        shutil.copyfile(packaged.root() / "stacks" / "__main__.py", self.project / "stacks" / "__main__.py")
        document = yaml.safe_load((packaged.root() / "Pulumi.yaml").read_text())
        document["runtime"]["options"]["virtualenv"] = sys.prefix
        document["plugins"]["providers"][0]["path"] = "bin"
        (self.project / "Pulumi.yaml").write_text(yaml.safe_dump(document))
        launcher = self.project / "bin" / "pulumi-resource-supernode"
        launcher.parent.mkdir()
        launcher.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{ECHO}" "$@"\n')
        launcher.chmod(0o755)

    def describe(
        self, *, hosts: int = 2, spares: int = 0, limit: int = 400, edit=lambda text: text
    ) -> designing.Design:
        """Write the documents, allocate, bind every slot, and write what boot would have prepared."""
        text = (packaged.root() / "tests" / "lab" / "slim" / "environment.yml").read_text()
        text = text.replace("count: 8", f"count: {hosts}").replace("spares: 1", f"spares: {spares}")
        return self.take(edit(text + f"\nstacks: {{limit: {limit}}}\n"))

    def take(self, text: str) -> designing.Design:
        """Write an environment's text; the rest as `describe`."""
        self.folder.write("environment", text)
        saved = self.folder.document("allocation")
        allocation = saved.read_text() if saved.exists() else None
        environment = spec.read({"environment": self.folder.texts()["environment"]}).environment
        before = (
            spec.read({"environment": self.folder.texts()["environment"], "allocation": allocation})
            if allocation
            else None
        )
        extended = allocating.extend(environment, before.allocation if before else None)
        self.folder.write("allocation", spec.allocation_text(extended))
        return self.bind({})

    def bind(self, states: dict[str, str], keys: dict[str, str] | None = None) -> designing.Design:
        """Bind a machine to every slot, in the state given for its device (default: new); a rented host by its key."""
        texts = {k: v for k, v in self.folder.texts().items() if k != "machines"}
        bare = designing.build(spec.read(texts))
        rows = {}
        for number, device in enumerate([*bare.hosts, *bare.switches], start=1):
            if getattr(device, "cloud", ""):
                identity = {"ssh_host_key": keys[device.name]} if device.name in (keys or {}) else {}
                rows[device.slot] = {"state": states.get(device.name, "new"), "identity": identity}
                continue
            rows[device.slot] = {
                "state": states.get(device.name, "spare" if getattr(device, "state", "") == "spare" else "new"),
                "identity": {"bmc_mac": f"02:00:00:00:00:{number:02x}", "system_serial": f"T{number:05d}"},
            }
        self.folder.write("machines", yaml.safe_dump({"schema": 1, "slots": rows}))
        design = designing.build(spec.read(self.folder.texts()))
        isos = {host.name: f"{index:064x}" for index, host in enumerate(design.hosts, start=1)}
        facts = {"schema": 1, "design": design.digest, "image": "1" * 64, "ca": "secrets/serve-ca.pem"}
        told = {"serve_ca": "-----BEGIN CERTIFICATE-----\nMAo=\n", "ssh_public_key": "ssh-ed25519 AAAA supernode"}
        (self.folder.state / "boot.json").write_text(json.dumps({**facts, **told, "isos": isos}))
        return design

    def find(self, name: str, **facts) -> None:
        """Let the provider find something at a machine or switch; without facts, nothing special."""
        path = self.world / f"{name}.json"
        if facts:
            path.write_text(json.dumps(facts))
        else:
            path.unlink(missing_ok=True)

    def journal(self) -> list[str]:
        """Return, and forget, what the provider did: "<method> <name>"."""
        path = self.world / "journal"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return lines

    def up(self, design: designing.Design, **how):
        """Bring it up; keeps the events."""
        self.events.clear()
        return provision.up(self.folder, design, self.events.append, directory=self.project, **how)

    def preview(self, design: designing.Design, **how):
        """Ask what would be done."""
        return provision.preview(self.folder, design, directory=self.project, **how)

    def session(self) -> Session:
        """Open the engine's session, for the plain command line."""
        return Session.open(self.folder, lambda _line: None, self.project)

    def variables(self) -> dict[str, str]:
        """Return the environment in which plain `pulumi` works, as `supernode shell` gives it."""
        return {**os.environ, **self.session().settings}
