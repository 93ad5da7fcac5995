"""The golden image as a container, with one seed and two readers of it: our first boot, and stock cloud-init.

The second keeps the seed honest. Needs root: an overlay on the image, a network namespace, systemd-nspawn.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from supernode import design, spec
from supernode.boot import image, media, mirror
from supernode.spec import Identity, Machines, SlotRecord

pytestmark = [pytest.mark.core, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
LAB = (ROOT / "inventories/lab/environment.yml").read_text(encoding="utf-8")
MAC = "02:00:00:5e:00:01"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKqL0M1zQ3kq0S1nq9mX0wz0p7h9eVY0m0l0c0r0s0t0 test"


@dataclass(frozen=True)
class Wanted:
    """The software of the lab, with cloud-init to be installed afterwards."""

    suite: str
    kernel: str
    packages: tuple[str, ...] = field(default=("cloud-init",))


def run(*argv: str | Path) -> str:
    done = subprocess.run([str(part) for part in argv], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{argv}: {done.stdout[-1000:]} {done.stderr[-2000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def golden() -> image.ImageRef:
    if os.geteuid() != 0:
        pytest.skip("mounts and namespaces need root")
    return image.ensure(design.build(spec.read({"environment": LAB})).environment.software, progress=print)


@pytest.fixture(scope="module")
def seed(golden: image.ImageRef) -> dict[str, str]:
    """gpu-001's seed, as the product makes it."""
    bare = design.build(spec.read({"environment": LAB}))
    bound = {bare.hosts[0].slot: SlotRecord(identity=Identity(management_mac=MAC))}
    designed = design.build(spec.read({"environment": LAB, "machines": spec.machines_text(Machines(slots=bound))}))
    made = media.medium(designed, "gpu-001", golden, "base", media.SiteTrust(_ca(), "00"), KEY)
    return dict(made.seed)


def _ca() -> str:
    """Some certificate; trust is configured here, never used."""
    return Path(sorted(Path("/usr/share/ca-certificates/mozilla").glob("*.crt"))[0]).read_text(encoding="utf-8")


@contextlib.contextmanager
def disk(golden: image.ImageRef, folder: Path) -> Iterator[Path]:
    """An overlay on the image's root partition."""
    places = {name: folder / name for name in ("lower", "upper", "work", "root")}
    for place in places.values():
        place.mkdir()
    where = golden.root_partition
    options = f"ro,loop,offset={where.offset},sizelimit={where.size}"
    run("mount", "-o", options, golden.path, places["lower"])
    try:
        layers = f"lowerdir={places['lower']},upperdir={places['upper']},workdir={places['work']}"
        run("mount", "-t", "overlay", "overlay", "-o", layers, places["root"])
        try:
            yield places["root"]
        finally:
            run("umount", places["root"])
    finally:
        run("umount", places["lower"])


@contextlib.contextmanager
def booted(root: Path, name: str) -> Iterator[None]:
    """A container on that root, in a namespace whose only port has the seed's MAC and leads nowhere."""
    run("ip", "netns", "add", name)
    try:
        run("ip", "-n", name, "link", "add", "eno1", "address", MAC, "type", "veth", "peer", "name", "nowhere")
        run("ip", "-n", name, "link", "set", "nowhere", "up")
        process = subprocess.Popen(
            [
                "systemd-nspawn", "-q", "-D", root, f"--network-namespace-path=/run/netns/{name}", f"--machine={name}",
                "--capability=CAP_NET_ADMIN", "--register=no", "--keep-unit", "--console=pipe", "-b",
            ],
            stdin=subprocess.DEVNULL, stdout=(root.parent / "console.log").open("wb"), stderr=subprocess.STDOUT,
            env={**os.environ, "SYSTEMD_NSPAWN_API_VFS_WRITABLE": "network"},
        )  # fmt: skip
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(20)
    finally:
        run("ip", "netns", "del", name)


def wait_for(path: Path, limit_s: float) -> None:
    until = time.monotonic() + limit_s
    while not path.exists():
        assert time.monotonic() < until, f"{path} is not there after {limit_s} s"
        time.sleep(0.1)


def put(seed: dict[str, str], root: Path) -> None:
    folder = root / "var/lib/cloud/seed/nocloud"
    folder.mkdir(parents=True)
    for name, text in seed.items():
        (folder / name).write_text(text, encoding="utf-8")


def outcome(root: Path) -> dict[str, object]:
    """What both readers must agree on."""
    networks = "".join(path.read_text() for path in sorted((root / "etc/systemd/network").glob("*.network")))
    shadow = next(line for line in (root / "etc/shadow").read_text().splitlines() if line.startswith("supernode:"))
    sudo = "".join(path.read_text() for path in sorted((root / "etc/sudoers.d").iterdir()))
    key = (root / "etc/ssh/ssh_host_ed25519_key.pub").read_text().split()
    return {
        "name": (root / "etc/hostname").read_text().strip(),
        "authorized": KEY.split()[1] in (root / "home/supernode/.ssh/authorized_keys").read_text(),
        "password locked": shadow.split(":")[1].startswith("!"),
        "sudo": "supernode ALL=(ALL) NOPASSWD:ALL" in sudo,
        "address": "Address=198.18.0.11/23" in networks,
        "by mac": f"MACAddress={MAC}" in networks,
        "gateway": "Gateway=198.18.0.1" in networks,
        "apt": (root / "etc/apt/sources.list.d/supernode.list").read_text(),
        "apt trust": (root / "etc/apt/apt.conf.d/90supernode").read_text(),
        "own key": key[0] == "ssh-ed25519",
        "no other keys": sorted(path.name for path in (root / "etc/ssh").glob("ssh_host_*_key")),
    }


EXPECTED = {
    "name": "gpu-001",
    "authorized": True,
    "password locked": True,
    "sudo": True,
    "address": True,
    "by mac": True,
    "gateway": True,
    "apt": "deb [trusted=yes] https://198.18.31.253:8443/mirror ./\n",
    "apt trust": 'Acquire::https::198.18.31.253::CAInfo "/etc/supernode/ca.pem";\n',
    "own key": True,
    "no other keys": ["ssh_host_ed25519_key"],
}


def test_our_first_boot_applies_the_seed(golden: image.ImageRef, seed: dict[str, str], tmp_path: Path) -> None:
    with disk(golden, tmp_path) as root:
        put(seed, root)
        begin = time.monotonic()
        with booted(root, "sn-seed-own"):
            wait_for(root / "var/lib/supernode/firstboot.done", 60)
            print(f"first boot done after {time.monotonic() - begin:.1f} s")
        assert outcome(root) == EXPECTED


def test_a_first_boot_that_a_power_cut_ended_is_done_again(
    golden: image.ImageRef, seed: dict[str, str], tmp_path: Path
) -> None:
    """What is left: an account without keys, with a lock on it, half of a host key, and no mark."""
    with disk(golden, tmp_path) as root:
        put(seed, root)
        run("chroot", root, "useradd", "--create-home", "supernode")
        (root / "etc/passwd.lock").write_text("1")
        (root / "etc/ssh/ssh_host_ed25519_key").write_text("-----BEGIN")
        with booted(root, "sn-seed-cut"):
            wait_for(root / "var/lib/supernode/firstboot.done", 60)
        assert outcome(root) == EXPECTED
        home = (root / "home/supernode").stat()
        assert home.st_uid == (root / "home/supernode/.ssh/authorized_keys").stat().st_uid >= 1000
        assert not (root / "etc/passwd.lock").exists()


def test_stock_cloud_init_accepts_the_same_seed(golden: image.ImageRef, seed: dict[str, str], tmp_path: Path) -> None:
    software = design.build(spec.read({"environment": LAB})).environment.software
    packages = mirror.ensure(Wanted(software.suite, software.kernel), golden, progress=print)
    with disk(golden, tmp_path) as root:
        put(seed, root)
        shutil.copytree(packages.path, root / "debs")
        run("chroot", root, "sh", "-c", "DEBIAN_FRONTEND=noninteractive dpkg --install /debs/*.deb")
        shutil.rmtree(root / "debs")
        schema = run("chroot", root, "cloud-init", "schema", "--config-file", "/var/lib/cloud/seed/nocloud/user-data")
        assert "Valid" in schema
        with booted(root, "sn-seed-stock"):
            instance = json.loads(seed["meta-data"])["instance-id"]
            wait_for(root / "var/lib/cloud/instances" / instance / "boot-finished", 180)
        assert not (root / "var/lib/supernode/firstboot.done").exists()
        result = json.loads((root / "var/lib/cloud/data/result.json").read_text(encoding="utf-8"))["v1"]
        # Its locale module wants a package that the image lacks, whatever the seed says.
        assert [error for error in result["errors"] if not error.startswith("('locale', ")] == []
        assert "DataSourceNoCloud" in result["datasource"]
        assert outcome(root) == EXPECTED
