"""Cgroup v2 as the lab's handle: what is in a group ends, freezes and is counted together."""

from __future__ import annotations

import time
from pathlib import Path

from supernode.errors import CouldNotRun

MOUNTS = Path("/proc/mounts")
INSIDE = Path("/sys/fs/cgroup")  # in the lab's own mount namespace
_GONE_S = 20.0


def mount_point(mounts: str) -> Path | None:
    """Find where cgroup v2 is mounted, in the text of /proc/mounts; hybrid set-ups have it beside v1."""
    for line in mounts.splitlines():
        fields = line.split()
        if len(fields) > 2 and fields[2] == "cgroup2":
            return Path(fields[1])
    return None


def top() -> Path:
    """Return the machine's cgroup v2 folder.

    Raises:
        CouldNotRun: there is none.
    """
    found = mount_point(MOUNTS.read_text(encoding="utf-8"))
    if found is None:
        raise CouldNotRun("cgroup v2", "is not mounted", "mount -t cgroup2 cgroup2 /sys/fs/cgroup")
    return found


def populated(group: Path) -> bool:
    """Tell whether any process lives in the group or below it."""
    try:
        return "populated 1" in (group / "cgroup.events").read_text(encoding="ascii")
    except FileNotFoundError:
        return False


def freeze(group: Path, frozen: bool) -> None:
    """Stop every process of the group between two instructions, or let them go on."""
    (group / "cgroup.freeze").write_text("1" if frozen else "0", encoding="ascii")


def kill(group: Path) -> None:
    """Kill every process in the group and below, also those being forked meanwhile; returns at once."""
    if group.is_dir():
        (group / "cgroup.kill").write_text("1", encoding="ascii")


def remove(group: Path) -> None:
    """Kill what is in the group, wait until it is gone, and remove the folders.

    Raises:
        CouldNotRun: a process cannot be killed (it hangs in the kernel).
    """
    kill(group)
    deadline = time.monotonic() + _GONE_S
    while populated(group) and time.monotonic() < deadline:
        time.sleep(0.02)
    if populated(group):
        raise CouldNotRun(
            str(group), "holds processes that cannot be killed", "ps -eo pid,stat,wchan,args shows what they wait for"
        )
    remove_folders(group)


def remove_folders(group: Path) -> None:
    """Remove an empty group and the groups below it; a group that the kernel still lets go of is waited for."""
    for folder in [*sorted(group.rglob("*/"), key=lambda path: len(path.parts), reverse=True), group]:
        for _ in range(100):
            try:
                if folder.is_dir():
                    folder.rmdir()
                break
            except FileNotFoundError:
                break
            except OSError:
                time.sleep(0.02)
