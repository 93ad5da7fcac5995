"""What the lab needs of a machine, what this one has, and what stands in for what is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from supernode.errors import CouldNotRun
from supernode.lab import cgroups, shared
from supernode.lab.places import labs_root

MEMORY_MB, DISK_MB = 4096, 8192
LIVE = Path("/proc")


@dataclass(frozen=True)
class Trait:
    """One thing that a lab uses.

    Attributes:
        sort: "kernel", "program", "limit" or "room".
        needed: without it no lab starts; the others have a stand-in.
        present: None when it could not be found out.
        about: what it is for, or what was found.
        stand_in: what is used, or lost, without it.
    """

    sort: str
    name: str
    needed: bool
    present: bool | None
    about: str
    stand_in: str = ""

    @property
    def verdict(self) -> str:
        """`ok`, `stand-in`, `missing` or `unknown`."""
        if self.present is None:
            return "unknown"
        if self.present:
            return "ok"
        return "missing" if self.needed else "stand-in"


# name -> (how `ip link` makes one, needed, what for, what stands in)
_LINKS: Mapping[str, tuple[str, bool, str, str]] = {
    "veth": ("veth peer name probe1", True, "cables", ""),
    "bridge": ("bridge", True, "the management network", ""),
    "wireguard": ("wireguard", False, "site-to-site tunnels", "no tunnel is rehearsed"),
    "vrf": ("vrf table 99", False, "a switch's management port apart from its fabric", "no default route on a switch"),
    "dummy": ("dummy", False, "loopback addresses of their own", "addresses on lo"),
    "bond": ("bond", False, "bonded ports", "one rail, one port"),
}
# name -> (arguments of `tc qdisc`, needed, what for, what stands in)
_QDISCS: Mapping[str, tuple[str, bool, str, str]] = {
    "tbf": ("tbf rate 10mbit burst 38000 limit 2000000", True, "the rate of a cable", ""),
    "netem": ("netem delay 1ms", False, "delay and loss", "cables have a rate, neither delay nor loss"),
    "prio": ("prio bands 3", False, "traffic classes", "all traffic is one class"),
}
PROGRAMS: Mapping[str, str] = {
    "ip": "iproute2",
    "tc": "iproute2",
    "systemd-nspawn": "systemd-container",
    "mmdebstrap": "mmdebstrap",
    "sfdisk": "fdisk",
    "unshare": "util-linux",
    "mount": "mount",
    "zstd": "zstd",
    "dpkg-deb": "dpkg",
    "gpg": "gpg",
    "gpg-agent": "gpg-agent",
    "chroot": "coreutils",
}


def examine() -> tuple[Trait, ...]:
    """Look at everything; tries kernel features out in namespaces of their own, which need root."""
    return (*_kernel(), *_programs(), *_limits(), *_room())


def essential(traits: tuple[Trait, ...]) -> None:
    """Check that nothing is missing that has no stand-in.

    Raises:
        CouldNotRun: naming all that is.
    """
    missing = [f"{trait.name} ({trait.about})" for trait in traits if trait.verdict == "missing"]
    if missing:
        raise CouldNotRun("this machine", f"lacks {', '.join(missing)}", "supernode lab doctor")


def _kernel() -> Iterator[Trait]:
    mounts = cgroups.mount_point(cgroups.MOUNTS.read_text(encoding="utf-8"))
    yield Trait("kernel", "cgroup v2", True, mounts is not None, str(mounts or "not mounted"))
    killable = mounts is not None and any(mounts.glob("*/cgroup.kill")) if mounts else False
    yield Trait("kernel", "cgroup.kill", True, killable or _made(mounts), "ends a lab in one write (Linux 5.14)")
    filesystems = (LIVE / "filesystems").read_text(encoding="ascii")
    for name, about in (("overlay", "disks"), ("ext4", "golden images"), ("tmpfs", "/run"), ("proc", "/proc")):
        yield Trait("kernel", name, True, f"\t{name}\n" in filesystems or _module(name), about)
    yield Trait("kernel", "loop", True, Path("/dev/loop-control").exists() or _module("loop"), "golden images")
    yield Trait("kernel", "ipv6", True, (LIVE / "sys/net/ipv6").is_dir(), "BGP without numbered links")
    for name, (link, needed, about, stand_in) in _LINKS.items():
        present = _in_namespace(f"ip link add name probe0 type {link}")
        yield Trait("kernel", name, needed, present, about, stand_in)
    for name, (qdisc, needed, about, stand_in) in _QDISCS.items():
        command = f"ip link add name probe0 type veth peer name probe1 && tc qdisc add dev probe0 root {qdisc}"
        yield Trait("kernel", name, needed, _in_namespace(command), about, stand_in)
    rdma = Path("/sys/class/infiniband").exists()
    yield Trait("kernel", "rdma", False, rdma, "verbs", "rates are those of TCP flows")


def _programs() -> Iterator[Trait]:
    for program, package in PROGRAMS.items():
        yield Trait("program", program, True, shutil.which(program) is not None, f"package {package}")


def _limits() -> Iterator[Trait]:
    for name, least in shared.LIMITS.items():
        path = LIVE / "sys" / name
        if not path.is_file():
            continue
        found = int(path.read_text(encoding="ascii"))
        about = f"{found}, labs want {least}"
        yield Trait("limit", name.replace("/", "."), False, found >= least, about, "raised while a lab runs")


def _room() -> Iterator[Trait]:
    memory = _available_mb((LIVE / "meminfo").read_text(encoding="ascii"))
    yield Trait(
        "room", "memory", False, memory >= MEMORY_MB, f"{memory} MB free; 64 hosts take {MEMORY_MB} MB", "fewer hosts"
    )
    folder = next(path for path in (labs_root(), *labs_root().parents) if path.exists())
    disk = shutil.disk_usage(folder).free // 1_000_000
    yield Trait(
        "room", "disk", False, disk >= DISK_MB, f"{disk} MB free at {folder}", "a lab with few hosts takes 2 GB"
    )
    yield Trait(
        "room", "upper file system", True, _overlay_works(folder), f"{folder} can be the upper half of an overlay"
    )


def _available_mb(meminfo: str) -> int:
    line = next((line for line in meminfo.splitlines() if line.startswith("MemAvailable:")), "MemAvailable: 0 kB")
    return int(line.split()[1]) // 1000


def _module(name: str) -> bool:
    return _quiet(["modprobe", "--dry-run", name]) if shutil.which("modprobe") else False


def _made(mounts: Path | None) -> bool:
    if mounts is None or os.geteuid() != 0:
        return False
    group = mounts / f"supernode-doctor-{os.getpid()}"
    group.mkdir()
    try:
        return (group / "cgroup.kill").exists()
    finally:
        group.rmdir()


def _in_namespace(command: str) -> bool | None:
    if os.geteuid() != 0:
        return None
    return _quiet(["unshare", "--net", "sh", "-c", command])


def _overlay_works(folder: Path) -> bool | None:
    if os.geteuid() != 0:
        return None
    with tempfile.TemporaryDirectory(dir=folder, prefix=".doctor.") as scratch:
        for name in ("lower", "upper", "work", "merged"):
            Path(scratch, name).mkdir()
        options = f"lowerdir={scratch}/lower,upperdir={scratch}/upper,workdir={scratch}/work"
        command = f"mount -t overlay -o {options} overlay {scratch}/merged && touch {scratch}/merged/file"
        return _quiet(["unshare", "--mount", "sh", "-c", command])


def _quiet(command: list[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False, timeout=20).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
