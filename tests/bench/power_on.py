"""Power-on until ssh answers: the lab's machines against a bare loop of systemd-nspawn over the same image.

Both run the same systems off the same kind of disks (an overlay on the golden image, deployed and booted before), ask
for the same SSH banner, and take turns in one run, so that other work on the machine strikes both. `make bench`, or

    pytest -s -o python_files='*.py' tests/bench/power_on.py        with HOSTS=32 for more than 8
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from ipaddress import IPv4Address
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "lab"), str(ROOT / "tests" / "unit" / "lab")]

import lab_sample  # noqa: E402
import pytest  # noqa: E402
import small_lab  # noqa: E402

from supernode import spec  # noqa: E402
from supernode.boot import image  # noqa: E402
from supernode.lab import cgroups, containers, netspace, switches  # noqa: E402
from supernode.lab.disks import Disk, File, Images  # noqa: E402

HOSTS, ROUNDS, LIMIT = int(os.environ.get("HOSTS", "8")), 3, 1.5
MANY, MANY_MB = int(os.environ.get("MANY", "64")), 4096
GROUP = "supernode-bench-bare"


def golden() -> Path:
    text = (ROOT / "inventories" / "lab" / "environment.yml").read_text()
    return image.ensure(spec.read({"environment": text}).environment.software, progress=print).path


@pytest.fixture
def lab(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[small_lab.SmallLab]:
    made = small_lab.make(tmp_path / "lab", "bench", 224, rate=1, shape=lab_sample.Shape.of(request.param))
    began = time.monotonic()
    made.start()
    print(f"\nlab of {request.param} machines and {len(made.plan.cables)} cables: {time.monotonic() - began:.1f} s")
    yield made
    small_lab.forget(made)


def addresses(lab: small_lab.SmallLab) -> dict[str, IPv4Address]:
    return {server.device: server.management.ip for server in lab.plan.servers}


def until_ssh(found: dict[str, IPv4Address], began: float) -> float:
    late = asyncio.run(switches.wait_for_login(found, 300))
    assert not late, f"no login: {late}"
    return time.monotonic() - began


def power(lab: small_lab.SmallLab, action: str) -> None:
    for device in addresses(lab):
        lab.ask("power", target=device, action=action)


def deploy(lab: small_lab.SmallLab, system: Path) -> float:
    began = time.monotonic()
    for device in addresses(lab):
        lab.install(device, system)
    power(lab, "on")
    return until_ssh(addresses(lab), began)


def lab_round(lab: small_lab.SmallLab) -> float:
    power(lab, "off")
    began = time.monotonic()
    power(lab, "on")
    took = until_ssh(addresses(lab), began)
    power(lab, "off")
    return took


@pytest.mark.parametrize("lab", [HOSTS], indirect=True)
def test_power_on_costs_little_more_than_a_bare_loop(lab: small_lab.SmallLab, tmp_path: Path) -> None:
    system = golden()
    print(f"first boot of {HOSTS} machines from empty disks: {deploy(lab, system):.2f} s")
    seeds = [{name: text for name, (text, _) in lab.seed(server.device).items()} for server in lab.plan.servers]
    work = {"image": str(system), "seeds": seeds, "addresses": [str(a) for a in addresses(lab).values()],
            "gateway": str(lab.plan.site.gateway), "macs": macs(lab)}  # fmt: skip
    (tmp_path / "work.json").write_text(json.dumps(work))
    with bare(tmp_path / "work.json") as loop:
        ours, theirs = [], []
        for number in range(ROUNDS):
            theirs.append(loop())
            ours.append(lab_round(lab))
            print(f"round {number + 1}: lab {ours[-1]:.2f} s, bare loop {theirs[-1]:.2f} s")
    ratio = median(ours) / median(theirs)
    figures = f"lab {median(ours):.2f} s, bare {median(theirs):.2f} s, ratio {ratio:.2f}"
    print(f"power-on until ssh, {HOSTS} machines: {figures}")
    assert ratio <= LIMIT


def macs(lab: small_lab.SmallLab) -> list[str]:
    from supernode.lab.wiring import server_ports

    return [server_ports(lab.name, server)[0].mac for server in lab.plan.servers]


@pytest.mark.parametrize("lab", [MANY], indirect=True)
def test_many_machines_fit_into_memory(lab: small_lab.SmallLab) -> None:
    before = available_mb()
    took = deploy(lab, golden())
    time.sleep(3)
    used = before - available_mb()
    print(f"{MANY} machines up from empty disks in {took:.1f} s; they take {used} MB, {used / MANY:.1f} MB each")
    again = lab_round(lab)
    print(f"{MANY} deployed machines powered on until ssh: {again:.1f} s")
    assert used < MANY_MB


def available_mb() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable")) // 1024


class bare:  # noqa: N801 - reads as the word it is
    """The bare loop, in namespaces and a cgroup of its own; a call starts all hosts, waits for ssh, cuts them off."""

    def __init__(self, work: Path) -> None:
        self.group = cgroups.top() / GROUP
        self.work = work

    def __enter__(self) -> bare:
        self.group.mkdir(exist_ok=True)
        command = f"echo $$ >{self.group}/cgroup.procs; exec unshare -m -p -f --kill-child --mount-proc -n -C -u -i"
        self.process = subprocess.Popen(
            ["sh", "-c", f"{command} {sys.executable} {__file__} {self.work}"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        assert self.process.stdout.readline().strip() == "ready"
        return self

    def __call__(self) -> float:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def __exit__(self, *_: object) -> None:
        cgroups.remove(self.group)
        self.process.wait(10)


def bare_main(path: Path) -> None:
    """Pid 1 of the bare loop's namespaces."""
    work = json.loads(path.read_text())
    for command in (
        "mount --make-rprivate /; mount -t tmpfs -o mode=755 tmpfs /run; mkdir /run/netns; umount -l /sys/fs/cgroup",
        "mount -t sysfs sysfs /sys; mount -t cgroup2 cgroup2 /sys/fs/cgroup; mkdir /sys/fs/cgroup/init",
        "echo 1 >/sys/fs/cgroup/init/cgroup.procs",
    ):
        subprocess.run(["sh", "-c", command], check=True)
    networks(work)
    lower = Images(Path("/run/images")).lower(Path(work["image"]))
    roots = [path.parent / f"bare{n}" for n in range(len(work["addresses"]))]
    for folder, seed in zip(roots, work["seeds"], strict=True):
        disk = Disk(folder / "disk")
        disk.write(Path(work["image"]), lower, folder / "root", {name: File(text) for name, text in seed.items()})
        disk.attach(lower, folder / "root")
    boot(roots, work)  # the first boot, as in the lab
    print("ready", flush=True)
    for _ in sys.stdin:
        print(boot(roots, work), flush=True)


def networks(work: dict) -> None:
    lines = ["route add unreachable 198.18.0.0/15 metric 9999", "link add mgmt type bridge",
             f"address add {work['gateway']} dev mgmt", "link set mgmt up"]  # fmt: skip
    for number, mac in enumerate(work["macs"]):
        lines += [f"netns add h{number}",
                  f"link add eno1 netns h{number} address {mac} type veth peer name m{number}",
                  f"link set m{number} master mgmt", f"link set m{number} up"]  # fmt: skip
    netspace.batch(lines)


def boot(roots: list[Path], work: dict) -> float:
    """Start every host by one plain systemd-nspawn, wait for all banners, and cut all of them off."""
    began = time.monotonic()
    groups = [Path(f"/sys/fs/cgroup/h{number}") for number in range(len(roots))]
    started = []
    for number, (folder, group) in enumerate(zip(roots, groups, strict=True)):
        group.mkdir(exist_ok=True)
        command = f"echo $$ >{group}/cgroup.procs; exec systemd-nspawn -q -D {folder}/root --machine=h{number} -b"
        command += (
            f" --network-namespace-path=/run/netns/h{number} --capability=CAP_NET_ADMIN --register=no --keep-unit"
        )
        with (folder / "console").open("ab") as console:
            started.append(
                subprocess.Popen(
                    ["sh", "-c", f"{command} --console=pipe --resolv-conf=off --timezone=off --link-journal=no"],
                    stdin=subprocess.DEVNULL,
                    stdout=console,
                    stderr=console,
                    env=containers._ENVIRONMENT,
                )
            )
    took = until_ssh({str(a): IPv4Address(a) for a in work["addresses"]}, began)
    for group, process in zip(groups, started, strict=True):
        cgroups.remove(group)
        process.wait(10)
    return took


if __name__ == "__main__":
    bare_main(Path(sys.argv[1]))
