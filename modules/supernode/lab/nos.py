"""The switches' operating system: Debian with FRR, lldpd and sshd, built once and kept by the digest of its inputs.

It comes as from a factory: an `admin` user without a password, FRR's routing daemons off, fabric ports up but without
address or route.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from supernode.errors import CouldNotRun
from supernode.lab.disks import File

SUITE = "bookworm"
PACKAGES = (
    "ca-certificates", "chrony", "dbus", "ethtool", "frr", "frr-pythontools", "iproute2", "iputils-ping", "lldpd",
    "nftables", "openssh-server", "procps", "python3-minimal", "sudo", "systemd", "systemd-sysv", "wireguard-go",
    "wireguard-tools",
)  # fmt: skip
# What a package ships for people to read is nine tenths of its files.
_LEFT_OUT = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*")
_PORTS_UNIT = """[Unit]
Description=Fabric ports, up as a switch has them from the factory
Before=network.target frr.service lldpd.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/sbin/fabric-ports

[Install]
WantedBy=multi-user.target
"""
_PORTS = """#!/bin/sh
for port in /sys/class/net/*; do
  case "${port##*/}" in lo|eth0) ;; *) ip link set "${port##*/}" up ;; esac
done
"""
_SSHD = """PasswordAuthentication no
PermitRootLogin no
HostKey /etc/ssh/ssh_host_ed25519_key
AuthorizedKeysFile /etc/ssh/authorized_keys/%u
UseDNS no
"""
_FILES: Mapping[str, File] = {
    "etc/systemd/system/fabric-ports.service": File(_PORTS_UNIT),
    "usr/local/sbin/fabric-ports": File(_PORTS, 0o755),
    "etc/ssh/sshd_config.d/factory.conf": File(_SSHD),
    "etc/sudoers.d/admin": File("admin ALL=(ALL) NOPASSWD: ALL\n", 0o440),
    # Routes are FRR's; networkd looks after the management port alone.
    "etc/systemd/networkd.conf.d/factory.conf": File(
        "[Network]\nManageForeignRoutes=no\nManageForeignRoutingPolicyRules=no\n"
    ),
    "etc/machine-id": File(""),
}
_ENABLED = ("systemd-networkd", "fabric-ports", "ssh", "frr", "lldpd")
# The lab's clock is the machine's: nothing in a switch sets it. Timers would only spend the machine's CPU.
_MASKED = (
    "chrony.service", "systemd-networkd-wait-online.service", "systemd-resolved.service", "apt-daily.timer",
    "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "fstrim.timer", "console-getty.service",
)  # fmt: skip
_COMMANDS = (
    ("useradd", "--create-home", "--shell", "/bin/bash", "--groups", "frrvty,sudo", "admin"),
    ("systemctl", "enable", *_ENABLED),
    ("systemctl", "mask", *_MASKED),
)


def digest() -> str:
    """Return the fingerprint of everything that the file system is made from, packages' versions aside."""
    files = {name: (file.text, file.mode) for name, file in _FILES.items()}
    inputs = json.dumps([SUITE, PACKAGES, _LEFT_OUT, files, _COMMANDS], sort_keys=True)
    return hashlib.sha256(inputs.encode()).hexdigest()[:16]


def ensure(cache: Path, say: Callable[[str], None]) -> Path:
    """Return the folder of the file system, built when the cache has none.

    Args:
        cache: takes `nos/<digest>/`.
        say: told when a build starts, for it takes a minute.

    Raises:
        CouldNotRun: the build failed; the message carries the end of its log.
    """
    folder = cache / "nos" / digest()
    root = folder / "root"
    if root.is_dir():
        return root
    folder.mkdir(parents=True, exist_ok=True)
    with _lock(folder / "lock"):
        if not root.is_dir():
            say("building the switches' operating system (once, about a minute)")
            _build(folder, root)
    return root


def _build(folder: Path, root: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder, prefix="build.") as scratch:
        target = Path(scratch) / "root"
        exclude = [f"--dpkgopt=path-exclude={pattern}" for pattern in _LEFT_OUT]
        _run(
            [
                "mmdebstrap",
                "--mode=root",
                "--variant=minbase",
                f"--include={','.join(PACKAGES)}",
                *exclude,
                SUITE,
                str(target),
            ]
        )
        for name, file in _FILES.items():
            file.write(target / name)
        for key in (target / "etc/ssh").glob("ssh_host_*"):
            key.unlink()  # each switch has its own
        for command in _COMMANDS:
            _run(["chroot", str(target), *command])
        target.rename(root)


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise CouldNotRun(command[0], "is not installed", "`supernode lab doctor` lists what the lab needs") from error
    if done.returncode != 0:
        raise CouldNotRun(
            command[0], f"ended with {done.returncode}: {' | '.join(done.stderr.strip().splitlines()[-5:])}"
        )


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    with path.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def forget(cache: Path) -> None:
    """Remove every file system of another digest than the present one."""
    for folder in (cache / "nos").glob("*"):
        if folder.name != digest():
            shutil.rmtree(folder, ignore_errors=True)
