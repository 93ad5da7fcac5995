"""One BMC, or a few, on loopback; machines that are made of nothing; a site that serves files."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from supernode.lab.bmc.certificates import Authority
from supernode.lab.bmc.controller import Bmc
from supernode.lab.bmc.fleet import Fleet
from supernode.lab.bmc.hardware import Habits
from supernode.lab.chassis import Identity, MediaInfo, Port, manufactured_mac
from supernode.lab.machine import Ending, Machine

PASSWORD = "delivered-with-the-machine"
V1 = "/redfish/v1"
SYSTEM = f"{V1}/Systems/1"
SETTINGS = f"{SYSTEM}/Bios/Settings"
DRIVE = f"{V1}/Managers/1/VirtualMedia/Cd"
RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"
INSERT = f"{DRIVE}/Actions/VirtualMedia.InsertMedia"


@dataclass(frozen=True)
class Attribute:
    type: str
    default: Any
    values: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Disk:
    size_gb: int = 8


@dataclass(frozen=True)
class Kind:
    name: str = "test-server"
    vendor: str = "Supernode"
    model: str = "Test 8"
    disk: Disk = Disk()
    gpus: int = 2
    gpu: str = "simulated"
    power_w: float | None = 1000
    bios: Mapping[str, Attribute] = field(
        default_factory=lambda: {
            "SriovEnable": Attribute("Enumeration", "Disabled", ("Enabled", "Disabled")),
            "BootTimeoutS": Attribute("Integer", 5, (0, 60)),
            "QuietBoot": Attribute("Boolean", True),
            "AssetTag": Attribute("String", ""),
        }
    )
    firmware: Mapping[str, str] = field(default_factory=lambda: {"BMC": "1.4.0", "BIOS": "2.1.3"})


class Works:
    """A machine's works without a system: what was deployed counts as installed."""

    def __init__(self) -> None:
        self.deployed: list[MediaInfo] = []
        self.runs = 0
        self.asked: list[Ending] = []
        self.endings: asyncio.Queue[Ending] = asyncio.Queue()
        self.disk = False
        self.answers = True
        self.deploy_gate = asyncio.Event()
        self.deploy_gate.set()

    def installed(self) -> bool:
        return self.disk or bool(self.deployed)

    async def run(self, running: Callable[[], None]) -> Ending:
        self.runs += 1
        running()
        return await self.endings.get()

    async def ask(self, ending: Ending) -> None:
        self.asked.append(ending)
        if self.answers:
            self.endings.put_nowait(ending)

    async def deploy(self, media: MediaInfo) -> None:
        await self.deploy_gate.wait()
        self.deployed.append(media)


def machine(slot: str, works: Works) -> Machine:
    identity = Identity.manufactured("test", slot)
    ports = [
        Port("management", identity.management_mac, 1000),
        Port("rail0", manufactured_mac("test", slot, "rail0"), 10),
    ]
    return Machine(slot, "test-server", identity, ports, works, post_s=0.0)


async def eventually(holds: Callable[[], object], seconds: float = 5.0) -> None:
    """Wait until something holds that sets no event."""
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.002)


@dataclass
class Answer:
    status: int
    body: Any
    headers: Mapping[str, str]

    @property
    def ids(self) -> list[str]:
        """Message keys of an error, without registry and version."""
        return [entry["MessageId"].rpartition(".")[2] for entry in self.body["error"]["@Message.ExtendedInfo"]]


@dataclass
class Client:
    http: aiohttp.ClientSession
    base: str
    auth: str | None = aiohttp.encode_basic_auth("admin", PASSWORD)

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        # A token replaces the credentials, or a bad token would go unnoticed.
        if self.auth is not None and "X-Auth-Token" not in sent:
            sent.setdefault("Authorization", self.auth)
        async with self.http.request(method, self.base + path, json=body, headers=sent) as reply:
            text = await reply.text()
            document = await reply.json() if text else None
            return Answer(reply.status, document, reply.headers)

    async def get(self, path: str, **headers: str) -> Answer:
        return await self.ask("GET", path, **headers)

    async def read(self, path: str) -> Any:
        answer = await self.get(path)
        assert answer.status == 200, (path, answer)
        return answer.body

    async def post(self, path: str, body: Any = None, **headers: str) -> Answer:
        return await self.ask("POST", path, {} if body is None else body, **headers)

    async def patch(self, path: str, body: Any, **headers: str) -> Answer:
        return await self.ask("PATCH", path, body, **({"If_Match": "*"} | headers))

    async def reset(self, reset_type: str) -> Answer:
        return await self.post(RESET, {"ResetType": reset_type})

    async def until(self, path: str, holds: Callable[[Any], bool], seconds: float = 5.0) -> Any:
        """Read until something holds."""
        async with asyncio.timeout(seconds):
            while not holds(body := await self.read(path)):  # noqa: ASYNC110 - Redfish has no event to wait for
                await asyncio.sleep(0.01)
        return body


@dataclass
class Bench:
    fleet: Fleet
    bmcs: dict[str, Bmc]
    works: dict[str, Works]
    clients: dict[str, Client]

    @property
    def client(self) -> Client:
        return self.clients["r01u01"]

    @property
    def bmc(self) -> Bmc:
        return self.bmcs["r01u01"]

    @property
    def work(self) -> Works:
        return self.works["r01u01"]


@asynccontextmanager
async def bench(
    folder: Path, slots: tuple[str, ...] = ("r01u01",), habits: Habits | None = None, kind: Any = None
) -> AsyncIterator[Bench]:
    """Run BMCs; a second call with the same folder is a restart of the daemon."""
    fleet = Fleet(folder, ("admin", PASSWORD), habits)
    works = {slot: Works() for slot in slots}
    machines = {slot: machine(slot, works[slot]) for slot in slots}
    bmcs = {slot: await fleet.add(machines[slot], kind or Kind(), "127.0.0.1", 0) for slot in slots}
    context = ssl.create_default_context(cafile=str(fleet.authority.certificate))
    timeout = aiohttp.ClientTimeout(total=10)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context), timeout=timeout) as http:
        clients = {slot: Client(http, "https://{}:{}".format(*fleet.address(slot))) for slot in slots}
        try:
            yield Bench(fleet, bmcs, works, clients)
        finally:
            for each in machines.values():
                await each.power_off(hard=True)
            await fleet.close()


@dataclass
class Site:
    """A server of files that also takes reports."""

    folder: Path
    ca: str
    base: str
    reports: list[dict[str, Any]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    token: str = "one-time"


@asynccontextmanager
async def site(folder: Path, secure: bool = True) -> AsyncIterator[Site]:
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    authority = Authority(folder / "site-ca")
    context = authority.issue(folder / "site-server", "site", "127.0.0.1")
    served = Site(folder, authority.certificate.read_text(), "")

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        served.asked.append(f"{request.method} {request.path}")
        if request.method == "POST":
            if request.headers.get("Authorization") != f"Bearer {served.token}":
                return web.Response(status=403)
            served.reports.append(await request.json())
            return web.Response(status=204)
        path = folder / request.path.lstrip("/")
        return web.FileResponse(path) if path.is_file() else web.Response(status=404)

    runner = web.ServerRunner(web.Server(handle))
    await runner.setup()
    place = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context if secure else None)
    await place.start()
    host, port = runner.addresses[0][:2]
    served.base = f"{'https' if secure else 'http'}://{host}:{port}"
    try:
        yield served
    finally:
        await runner.cleanup()


GRUB_CFG = """set timeout=0
menuentry "deploy" {{
    linux /boot/vmlinuz {arguments}
    initrd /boot/initrd.img
}}
"""


def make_iso(path: Path, folder: Path, arguments: str, seed: Mapping[str, str]) -> Path:
    """Make an ISO by the program that makes the real ones."""
    for name, text in {"boot/grub/grub.cfg": GRUB_CFG.format(arguments=arguments)}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "seed").mkdir(exist_ok=True)
    for name, text in seed.items():
        (folder / "seed" / name).write_text(text)
    command = ["xorriso", "-as", "mkisofs", "-quiet", "-R", "-J", "-o", str(path), str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    return path


SEED = {
    "meta-data": '{"instance-id": "gpu-001"}',
    "user-data": "#cloud-config\n{}",
    "network-config": '{"version": 2}',
    "ca.pem": "-----BEGIN CERTIFICATE-----\n",
    "token": "one-time\n",
}
ARGUMENTS = (
    "supernode.image=https://198.18.31.253:8443/images/a.raw.zst supernode.digest=aa supernode.size=1048576 "
    'supernode.disk="/dev/disk/by-id/virtio-*" supernode.report=https://198.18.31.253:8443/report/gpu-001 '
    "supernode.port=02:00:00:00:00:01,198.18.0.11/23,198.18.0.1 console=ttyS0,115200 quiet"
)
