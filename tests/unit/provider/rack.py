"""One rack slot on loopback for the provider's tests.

The lab's BMC over a machine whose system is an SSH server, a site that serves the deploy ISO and the machine's report,
and the provider itself.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web
from bmc_bench import ARGUMENTS, SEED, Attribute, Kind, make_iso
from ssh_server import Server, line, new_key

from supernode import workspace
from supernode.boot import enrolment
from supernode.clients.redfish import Patience
from supernode.lab.bmc.certificates import Authority
from supernode.lab.bmc.controller import Bmc
from supernode.lab.bmc.fleet import Fleet
from supernode.lab.bmc.hardware import Habits
from supernode.lab.chassis import Identity, MediaInfo, Port
from supernode.lab.machine import Ending, Machine
from supernode.plan import machine as plan
from supernode.provider.machine import MachineResource
from supernode.provider.progress import EngineLog
from supernode.provider.resource import Scene
from supernode.provider.settings import Settings
from supernode.workspace import EnvironmentFolder

SLOT, NAME, PASSWORD = "r01u05", "gpu-001", "delivered-with-the-machine"
IMAGE = hashlib.sha256(b"golden image").hexdigest()
OTHER_IMAGE = hashlib.sha256(b"another image").hexdigest()
QUICK = Patience(answer_s=5, tries=3, first_s=0.05, longest_s=0.2)
URN = f"urn:pulumi:lab::supernode::supernode:index:Machine::{NAME}"


class Log(EngineLog):
    """Keeps the lines."""

    def __init__(self) -> None:
        super().__init__(None)
        self.lines: list[str] = []
        self.warnings: list[str] = []

    def info(self, urn: str, text: str) -> None:
        self.lines.append(text)

    def warn(self, urn: str, text: str) -> None:
        self.warnings.append(text)


@dataclass
class Host:
    """The machine's disk and system: what was deployed runs, and answers SSH under a key of its own."""

    user_key: Any
    report: Callable[[dict[str, Any]], None]
    image: str = ""
    deploys: int = 0
    boots: int = 0
    deploy_s: float = 0.0
    fails: str = ""
    lies: str = ""
    mute: bool = False
    deaf: bool = False
    key: Any = None
    server: Server | None = None
    port: int = 0
    _endings: asyncio.Queue[Ending] = field(default_factory=asyncio.Queue)

    def installed(self) -> bool:
        return bool(self.image)

    async def deploy(self, media: MediaInfo) -> None:
        self.deploys += 1
        if self.deploy_s:
            self.report({"phase": "deploy", "state": "started"})
            await asyncio.sleep(self.deploy_s)
        if self.fails:
            self.report({"phase": "deploy", "state": "failed", "detail": self.fails})
            await asyncio.Event().wait()
        self.image, self.key = self.lies or IMAGE, None
        self.report({"phase": "deploy", "state": "ok", "image": self.image, "host_keys": []})

    async def run(self, running: Callable[[], None]) -> Ending:
        self.boots += 1
        running()
        if self.mute:
            return await self._endings.get()
        if self.key is None:
            _, self.key = new_key()
            keys = [line(self.key) + " root@host"]
            self.report({"phase": "firstboot", "state": "ok", "image": self.image, "host_keys": keys})
        self.server = Server(self.key, self.user_key, self.answer, self.port)
        try:
            return await self._endings.get()
        finally:
            self.server.close()

    def answer(self, command: str, stdin: bytes) -> tuple[int, str, str]:
        return (0, self.image + "\n", "") if command == "cat /etc/supernode/image" else (127, "", "not found")

    async def ask(self, ending: Ending) -> None:
        if not self.deaf:
            self._endings.put_nowait(ending)


@dataclass
class Rack:
    folder: Path
    host: Host
    machine: Machine
    bmc: Bmc
    fleet: Fleet
    log: Log
    inputs: dict[str, Any]
    resource: MachineResource
    records: dict[str, dict[str, Any]]
    settings: Settings = field(default_factory=Settings)

    @property
    def scene(self) -> Scene:
        return Scene(URN, self.folder, self.settings, self.log)

    @property
    def said(self) -> str:
        return "\n".join(self.log.lines)

    async def create(self, **changes: Any) -> dict[str, Any]:
        return dict(await self.resource.create(self.scene, self.wanted(**changes)))

    async def update(self, old: dict[str, Any], **changes: Any) -> dict[str, Any]:
        return dict(await self.resource.update(self.scene, old, self.wanted(**changes)))

    async def read(self, old: dict[str, Any]) -> Any:
        return await self.resource.read(self.scene, SLOT, old, self.inputs)

    def diff(self, old: dict[str, Any], **changes: Any) -> dict[str, str]:
        return dict(self.resource.diff(self.scene, old, self.wanted(**changes)).changes)

    def wanted(self, **changes: Any) -> dict[str, Any]:
        inputs, failures = self.resource.check({**self.inputs, **changes})
        assert failures == []
        return inputs

    def log_entries(self) -> list[str]:
        return [entry.message for entry in self.bmc.state.log]

    def resets(self) -> list[str]:
        return [entry.removeprefix("Power: ") for entry in self.log_entries() if entry.startswith("Power: ")]


def free_port() -> int:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@asynccontextmanager
async def site(folder: Path, iso: Path, records: dict[str, Any]) -> AsyncIterator[tuple[str, str]]:
    authority = Authority(folder / "site-ca")
    context = authority.issue(folder / "site-server", "site", "127.0.0.1")

    state = EnvironmentFolder(folder.name, folder, workspace.root()).state  # as `arming` finds it

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        if request.path.startswith("/boot/"):
            enrolment.disarm(state, NAME)  # as the boot server does: the medium is made, the mark is gone
            return web.FileResponse(iso)
        record = records.get(request.path.rpartition("/")[2])
        return web.json_response(record) if record else web.Response(status=404)

    runner = web.ServerRunner(web.Server(handle))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    try:
        yield f"https://127.0.0.1:{runner.addresses[0][1]}", str(authority.certificate)
    finally:
        await runner.cleanup()


KIND = Kind(
    bios={
        "SriovEnable": Attribute("Enumeration", "Disabled", ("Enabled", "Disabled")),
        "WorkloadProfile": Attribute("Enumeration", "General", ("General", "HPC")),
        "BootTimeoutS": Attribute("Integer", 5, (0, 60)),
    }
)


@asynccontextmanager
async def rack(folder: Path, habits: Habits | None = None, **changes: Any) -> AsyncIterator[Rack]:
    """Run everything; `changes` go into the inputs."""
    iso = make_iso(folder / "deploy.iso", folder / "tree", ARGUMENTS, SEED)
    user_text, user_key = new_key()
    for name, text in {"bmc-password": PASSWORD + "\n", "id_ed25519": user_text}.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o600)
    (folder / "machines.yml").write_text(f"schema: 1\nslots:\n  {SLOT}: {{state: new}}\n")
    records: dict[str, dict[str, Any]] = {}
    stamp = iter(range(1, 1000))
    host = Host(user_key, lambda r: records.update({NAME: {**r, "at": next(stamp)}}), port=free_port())
    identity = Identity.manufactured("test", SLOT)
    ports = [Port("management", identity.management_mac, 1000)]
    machine = Machine(SLOT, "test-server", identity, ports, host, post_s=0.0)
    fleet = Fleet(folder, ("admin", PASSWORD), habits)
    bmc = await fleet.add(machine, KIND, "127.0.0.1", 0)
    async with site(folder, iso, records) as (base, ca):
        inputs = {
            "name": NAME,
            "slot": SLOT,
            "address": f"127.0.0.1:{host.port}",
            "bmc": {
                "address": "{}:{}".format(*fleet.address(SLOT)),
                "username": "admin",
                "password": "file:bmc-password",
                "ca": str(fleet.authority.certificate),
                "media": "virtual-media",
            },
            "identity": {"system_serial": identity.system_serial, "uuid": identity.uuid, "bmc_mac": identity.bmc_mac},
            "state": "active",
            "inService": False,
            "media": {"url": f"{base}/boot/{NAME}/1.iso", "digest": "1", "ca": ca},
            "image": IMAGE,
            "enrolment": f"{base}/enrolled/{NAME}",
            "bios": {"SriovEnable": "Enabled", "WorkloadProfile": "HPC"},
            "firmware": {"BMC": "1.4.0", "BIOS": "2.1.3"},
            "power": "On",
            "deadlineS": 20,
            "sshUser": "supernode",
            "sshKey": "file:id_ed25519",
            **changes,
        }
        resource = MachineResource(plan.decide, QUICK)
        try:
            yield Rack(folder, host, machine, bmc, fleet, Log(), inputs, resource, records)
        finally:
            await machine.power_off(hard=True)
            await fleet.close()


def dump(outputs: dict[str, Any]) -> str:
    return json.dumps(outputs)
