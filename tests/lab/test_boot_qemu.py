"""The whole of boot against firmware: one machine's own medium, an empty disk, and at the end a login with the
designed name.

QEMU without KVM. Its user-mode network knows one address, that of the site's server, which is this test's on loopback.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiohttp import web

from supernode import design, spec
from supernode.boot import enrolment, facts, image, iso, mirror, routes, tls
from supernode.boot.enrolment import Enrolment
from supernode.boot.site import Site
from supernode.spec import Identity, Machines, SlotRecord
from supernode.workspace import EnvironmentFolder

pytestmark = [pytest.mark.qemu, pytest.mark.timeout(900)]

MAC = "52:54:00:5e:00:01"
SERVE = "198.18.31.253"
ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 400.0


@dataclass(frozen=True)
class Station:
    """A served environment of lab machines, the first of which is bound."""

    folder: EnvironmentFolder
    design: design.Design
    image: image.ImageRef
    iso: Path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def environment_text(port: int) -> str:
    """The lab's environment with management on a network that user-mode networking can stand for."""
    text = (ROOT / "inventories/lab/environment.yml").read_text(encoding="utf-8")
    management = f"management: {{cidr: 198.18.30.0/23, gateway: {SERVE}}}"
    text, first = re.subn(r"management: \{.*\}", management, text)
    text, second = re.subn(r"serve: \{.*\}", f"serve: {{address: {SERVE}, port: {port}}}", text)
    assert (first, second) == (1, 1)
    return text.replace("name: lab\n", "name: qemu\n", 1)


@pytest.fixture(scope="module")
def station(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Station]:
    root = tmp_path_factory.mktemp("site")
    place = root / "inventories" / "qemu"
    place.mkdir(parents=True)
    port = free_port()
    (place / "environment.yml").write_text(environment_text(port), encoding="utf-8")
    folder = EnvironmentFolder("qemu", place, root)
    bare = design.build(spec.read(folder.texts()))
    first = [host for host in bare.hosts if host.name == "gpu-001"]  # the machine of MAC
    hosts = [*first, *(host for host in bare.hosts if host not in first)]
    bound = {
        host.slot: SlotRecord(identity=Identity(management_mac=MAC[:-2] + f"{number:02x}"))
        for number, host in enumerate(hosts, 1)
    }
    folder.write("machines", spec.machines_text(Machines(slots=bound)))
    designed = design.build(spec.read(folder.texts()))
    made = image.ensure(designed.environment.software, progress=print)
    mirror.ensure(designed.environment.software, made, progress=print)
    kept = facts.write(folder, designed, made, iso.base(made))
    site = Site(folder)
    enrolment.arm(folder.state, "gpu-001")
    path = site.iso("gpu-001", kept.isos["gpu-001"])
    assert path is not None
    with served(site, folder, port):
        yield Station(folder, designed, made, path)


@contextlib.contextmanager
def served(site: Site, folder: EnvironmentFolder, port: int) -> Iterator[None]:
    """The real routes over the real TLS, on loopback, in a thread."""
    loop = asyncio.new_event_loop()
    identity = tls.ensure(folder, SERVE)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(identity.certificate, identity.key)
    runner = web.AppRunner(routes.application(site))

    async def start() -> None:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port, ssl_context=context).start()

    loop.run_until_complete(start())
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.run_until_complete(runner.cleanup())
        loop.close()


class Guest:
    """A virtual machine with an empty disk and a medium in its drive; the disk comes first in its boot order."""

    def __init__(self, folder: Path, medium: Path, serial: str = "system0") -> None:
        self.disk, self.console = folder / "disk.raw", folder / "console.log"
        with self.disk.open("wb") as stream:
            stream.truncate(4 << 30)
        shutil.copyfile("/usr/share/OVMF/OVMF_VARS_4M.fd", folder / "vars.fd")
        network = f"user,id=n,net=198.18.30.0/23,host={SERVE},dns=198.18.31.252,dhcpstart=198.18.31.200"
        self.process = subprocess.Popen(
            [
                "qemu-system-x86_64", "-no-user-config", "-nodefaults", "-display", "none",
                "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "1024",
                "-drive", "if=pflash,format=raw,unit=0,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd",
                "-drive", f"if=pflash,format=raw,unit=1,file={folder / 'vars.fd'}",
                "-drive", f"if=none,id=disk,format=raw,cache=unsafe,file={self.disk}",
                "-device", f"virtio-blk-pci,drive=disk,serial={serial},bootindex=0",
                "-drive", f"if=none,id=cd,format=raw,media=cdrom,readonly=on,file={medium}",
                "-device", "ide-cd,drive=cd,bootindex=1",
                "-netdev", network, "-device", f"virtio-net-pci,netdev=n,mac={MAC},romfile=",
                "-device", "virtio-rng-pci",
                "-serial", f"file:{self.console}",
            ],
            stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def text(self) -> str:
        return self.console.read_text(errors="replace") if self.console.is_file() else ""

    def wait_for(self, pattern: str, limit_s: float) -> None:
        until = time.monotonic() + limit_s
        while not re.search(pattern, self.text()):
            assert self.process.poll() is None, f"the machine ended\n{self.text()[-3000:]}"
            assert time.monotonic() < until, f"no {pattern!r} within {limit_s} s\n{self.text()[-3000:]}"
            time.sleep(0.5)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait(30)


@contextlib.contextmanager
def guest(folder: Path, medium: Path, serial: str = "system0") -> Iterator[Guest]:
    machine = Guest(folder, medium, serial)
    try:
        yield machine
    finally:
        machine.stop()


def record(station: Station) -> dict[str, object]:
    path = station.folder.state / "enrolled" / "gpu-001.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def test_an_empty_machine_becomes_the_designed_host(station: Station, tmp_path: Path) -> None:
    begin = time.monotonic()
    with guest(tmp_path, station.iso) as machine:
        machine.wait_for(r"supernode: writing vda", 150)
        print(f"init is up after {time.monotonic() - begin:.0f} s")
        machine.wait_for(r"supernode: done, restarting", LIMIT_S)
        print(f"written and verified after {time.monotonic() - begin:.0f} s")
        assert record(station)["phase"] == "deploy"
        machine.wait_for(r"gpu-001 login:", LIMIT_S)
        print(f"login after {time.monotonic() - begin:.0f} s")
        until = time.monotonic() + 60
        while record(station).get("phase") != "firstboot" and time.monotonic() < until:
            time.sleep(0.5)
    said = record(station)
    assert (said["phase"], said["state"], said["image"]) == ("firstboot", "ok", station.image.digest)
    keys = said["host_keys"]
    assert isinstance(keys, list)
    assert [key.split()[0] for key in keys] == ["ssh-ed25519"]
    assert "FAILED" not in machine.text()


def test_a_medium_whose_token_is_spent_touches_no_disk(station: Station, tmp_path: Path) -> None:
    """A medium left in the drive of a machine that is in service: the site refuses it, and the disk stays as it is."""
    tokens = Enrolment(station.folder.state)
    spent = tokens.issue("gpu-001")
    known = Site(station.folder)
    medium = tmp_path / "spent.iso"
    planned = known.medium("gpu-001")
    assert planned is not None
    iso.build(known.known().base, planned.seed, known.trust().ca, spent, planned.arguments, medium)
    document = {"phase": "firstboot", "state": "ok", "host_keys": ["ssh-ed25519 AAAA"], "image": "", "detail": ""}
    assert tokens.report("gpu-001", spent, document).value == 204
    with guest(tmp_path, medium) as machine:
        machine.wait_for(r"supernode: FAILED in phase enrol: .*401", 300)
        written = machine.disk.stat().st_blocks
    assert written == 0
    assert record(station)["host_keys"] == ["ssh-ed25519 AAAA"]
