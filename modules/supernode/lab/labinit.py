"""Pid 1 of a lab: makes its own /run, /sys and cgroup tree, starts the daemon, and reaps. When it ends, all ends.

Started by the starter, inside the unshare, as `python -m supernode.lab.labinit NAME`.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from supernode.lab.places import Places
from supernode.lab.wiring import UPLINK

_PREPARE: Sequence[Sequence[str]] = (
    ("mount", "--make-rprivate", "/"),
    ("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run"),
    ("umount", "-l", "/sys/fs/cgroup"),
    ("mount", "-t", "sysfs", "sysfs", "/sys"),
    (
        "mount",
        "-t",
        "cgroup2",
        "cgroup2",
        "/sys/fs/cgroup",
    ),  # pure v2: nspawn finds no place to live under a hybrid tree
)
UPLINK_WAIT_S = 30.0


def main() -> int:
    """Run until the daemon ends, and return its exit status."""
    places = Places.of(sys.argv[1])
    for command in _PREPARE:
        subprocess.run(command, check=command[0] != "umount", stdin=subprocess.DEVNULL)
    Path("/run/netns").mkdir()
    for group in ("init", "devices"):
        Path("/sys/fs/cgroup", group).mkdir(exist_ok=True)
    # The starter waits for a process in this group: it says that the network namespace is there.
    Path("/sys/fs/cgroup/init/cgroup.procs").write_text("1", encoding="ascii")
    if not _uplink(UPLINK_WAIT_S):
        return 1  # the starter was killed in between
    daemon = subprocess.Popen([sys.executable, "-m", "supernode.lab.daemon", places.name], stdin=subprocess.DEVNULL)
    return _reap(daemon.pid)


def _uplink(wait_s: float) -> bool:
    deadline = time.monotonic() + wait_s
    while time.monotonic() < deadline:
        if UPLINK in (name for _, name in socket.if_nameindex()):
            return True
        time.sleep(0.01)
    return False


def _reap(daemon: int) -> int:
    while True:
        pid, status = os.wait()
        if pid == daemon:
            return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main())
