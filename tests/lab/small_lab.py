"""A lab of two servers and three switches, from artefacts written by hand, and what one does to it from outside."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit" / "lab"))

import lab_sample

from supernode.boot import cache
from supernode.lab import control, starter
from supernode.lab.artefacts import Artefacts, read
from supernode.lab.chassis import Identity
from supernode.lab.places import Places

USER = "supernode"


@dataclass
class SmallLab:
    name: str
    folder: Path
    key: Path
    third: int

    @property
    def places(self) -> Places:
        return Places.of(self.name)

    @property
    def plan(self) -> Artefacts:
        return read(self.folder / "artefacts")

    def start(self) -> starter.Started:
        artefacts, delivery = self.folder / "artefacts", self.folder / "delivery"
        return starter.start(self.name, artefacts, delivery, cache.default(), print)

    def stop(self) -> bool:
        return starter.stop(self.name)

    def ask(self, do: str, **more):
        return control.ask(self.places.control, {"do": do, **more})

    def fault(self, name: str, *targets: str, do: str = "fault", **arguments):
        return self.ask(do, fault={"name": name, "targets": list(targets), "arguments": arguments})

    def server(self, device: str) -> dict:
        return next(row for row in self.ask("status")["servers"] if row["device"] == device)

    def address(self, device: str) -> str:
        rows = (*self.plan.servers, *self.plan.switches)
        return next(str(row.management.ip) for row in rows if row.device == device)

    def ssh(self, device: str, command: str, timeout: float = 30, check: bool = True) -> str:
        user = USER if device.startswith("gpu") else "admin"
        done = subprocess.run(
            ["ssh", "-q", "-i", str(self.key), "-o", "StrictHostKeyChecking=accept-new", "-o", "ConnectTimeout=5",
             "-o", f"UserKnownHostsFile={self.folder}/known_hosts", f"{user}@{self.address(device)}", command],
            capture_output=True, text=True, timeout=timeout, check=False,
        )  # fmt: skip
        assert not check or done.returncode == 0, f"{device}: {command}: {done.returncode} {done.stdout} {done.stderr}"
        return done.stdout

    def install(self, device: str, image: Path) -> None:
        """Put a system on a disk, with the seed that a deploy step would leave there."""
        self.ask("install", target=device, image=str(image), files=self.seed(device))

    def seed(self, device: str) -> dict[str, list]:
        server = next(row for row in self.plan.servers if row.device == device)
        mac = Identity.manufactured(self.name, server.slot).management_mac
        key = self.key.with_suffix(".pub").read_text().strip()
        user = {
            "hostname": device,
            "fqdn": f"{device}.lab.internal",
            "users": [{"name": USER, "sudo": "ALL=(ALL) NOPASSWD:ALL", "lock_passwd": True, "shell": "/bin/bash",
                       "ssh_authorized_keys": [key]}],
            "ssh_genkeytypes": ["ed25519"],
        }  # fmt: skip
        port = {
            "match": {"macaddress": mac},
            "addresses": [str(server.management)],
            "routes": [{"to": "0.0.0.0/0", "via": str(self.plan.site.gateway.ip)}],
        }
        folder = "var/lib/cloud/seed/nocloud"
        return {
            f"{folder}/meta-data": [json.dumps({"instance-id": device, "local-hostname": device}), 0o644],
            f"{folder}/user-data": ["#cloud-config\n" + json.dumps(user), 0o644],
            f"{folder}/network-config": [json.dumps({"version": 2, "ethernets": {"management": port}}), 0o644],
        }

    def on(self, device: str, limit_s: float = 90) -> None:
        self.ask("power", target=device, action="on")
        self.wait_login(device, limit_s)

    def wait_login(self, device: str, limit_s: float = 90) -> None:
        wait_for(lambda: self.ssh(device, "echo in", check=False, timeout=20) == "in\n", limit_s, f"login to {device}")

    def leftovers(self) -> list[str]:
        """Name what of this lab is on the machine: processes, mounts, cgroups, links, routes, loop devices."""
        mine = [f"{self.places.folder}/", self.places.cgroup]
        found = [f"process {pid}" for pid, line in processes() if "supernode.lab" in line and f" {self.name} " in line]
        found += [line for line in Path("/proc/mounts").read_text().splitlines() if any(name in line for name in mine)]
        found += [str(path) for path in Path("/sys/fs/cgroup").glob(f"**/{self.places.cgroup}")]
        for sort in ("link", "route"):
            found += [line for line in run("ip", "-o", sort).splitlines() if self.places.wire in line]
        return found + [line for line in run("losetup", "-a").splitlines() if str(self.places.folder) in line]


def make(folder: Path, name: str, third: int, rate: float = 10, shape: lab_sample.Shape | None = None) -> SmallLab:
    folder.mkdir(parents=True, exist_ok=True)
    key = folder / "id_ed25519"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    lab_sample.write(
        folder / "artefacts", third, key.with_suffix(".pub").read_text().strip(), rate, shape or lab_sample.Shape()
    )
    return SmallLab(name, folder, key, third)


def forget(lab: SmallLab) -> None:
    lab.stop()
    shutil.rmtree(lab.places.folder, ignore_errors=True)
    (lab.places.root / f"{lab.name}.lock").unlink(missing_ok=True)


def run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def processes():
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            yield (
                int(folder.name),
                (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace") + " ",
            )
        except OSError:
            continue


def wait_for(what, limit_s: float, name: str):
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        if found := what():
            return found
        time.sleep(0.1)
    raise AssertionError(f"{name}: not within {limit_s} s")


def carrier(text: str, port: str) -> bool:
    line = next(line for line in text.splitlines() if re.match(rf"{port}[@ ]", line))
    return "LOWER_UP" in line
