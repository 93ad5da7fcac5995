"""One factory-new switch (the lab's NOS: real FRR, lldpd, sshd) in a network namespace of its own.

It has no address but its loopback's, so nothing can leave it; it is talked to from inside its namespace.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from supernode.engine import cache
from supernode.lab import cgroups, nos

NAME = "supernode-test-switch"
PORTS = 4


def run(*words: str, check: bool = True) -> str:
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert not check or done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


def inside(*words: str, check: bool = True) -> str:
    """Run a command in the switch's network namespace."""
    return run("ip", "netns", "exec", NAME, *words, check=check)


def _prepare(folder: Path) -> Path:
    """Return the switch's root: an overlay on the NOS, with keys as zero-touch provisioning leaves them."""
    for name in ("upper", "work", "root"):
        (folder / name).mkdir()
    for key in ("id", "hostkey"):
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(folder / key))
    lower, root = nos.ensure(cache.root(), print), folder / "root"
    options = f"lowerdir={lower},upperdir={folder / 'upper'},workdir={folder / 'work'}"
    run("mount", "-t", "overlay", "overlay", "-o", options, str(root))
    keys = root / "etc/ssh/authorized_keys"
    keys.mkdir(exist_ok=True)
    (keys / "admin").write_text((folder / "id.pub").read_text())
    for suffix, mode in (("", 0o600), (".pub", 0o644)):
        target = root / f"etc/ssh/ssh_host_ed25519_key{suffix}"
        target.write_text((folder / f"hostkey{suffix}").read_text())
        target.chmod(mode)
    return root


def _boot(root: Path, group: Path, log: Path) -> subprocess.Popen[bytes]:
    group.mkdir()
    script = (
        f"echo $$ >{group}/cgroup.procs; exec systemd-nspawn -q -D {root} --network-namespace-path=/run/netns/{NAME} "
    )
    script += f"--capability=CAP_NET_ADMIN --register=no --keep-unit --machine={NAME} --console=pipe -b"
    environment = {**os.environ, "SYSTEMD_NSPAWN_API_VFS_WRITABLE": "network", "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"}
    with log.open("wb") as out:
        return subprocess.Popen(["sh", "-c", script], stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment)


def _wait(log: Path) -> None:
    end = time.monotonic() + 90
    probe = "import socket; s = socket.create_connection(('127.0.0.1', 22), 2); assert s.recv(4) == b'SSH-'"
    while subprocess.run(["ip", "netns", "exec", NAME, sys.executable, "-c", probe], capture_output=True).returncode:
        assert time.monotonic() < end, log.read_text()[-2000:]
        time.sleep(0.5)


@contextmanager
def switch(folder: Path) -> Iterator[None]:
    """Boot the switch; `folder` then holds `id`, the admin's key, and `hostkey.pub`."""
    group, log = cgroups.top() / NAME, folder / "console.log"
    cgroups.remove(group)
    run("ip", "netns", "del", NAME, check=False)
    run("ip", "netns", "add", NAME)
    inside("ip", "link", "set", "lo", "up")
    for number in range(1, PORTS + 1):
        inside("ip", "link", "add", f"swp{number}", "type", "veth", "peer", "name", f"peer{number}")
        inside("ip", "link", "set", f"peer{number}", "up")
    root = _prepare(folder)
    process = None
    try:
        process = _boot(root, group, log)
        _wait(log)
        yield
    finally:
        cgroups.remove(group)
        if process is not None:
            process.wait(20)
        run("umount", str(root), check=False)
        run("ip", "netns", "del", NAME, check=False)
