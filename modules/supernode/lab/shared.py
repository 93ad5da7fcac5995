"""What all labs of one machine share: the guard route, kernel limits, and a lock; restored when the last lab ends.

The guard route stands before the first packet of any lab and is removed last: without it, a poll that runs before a
lab's own route exists would leave by the default route, and something out there may accept the connection.
"""

from __future__ import annotations

import fcntl
import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from supernode import workspace
from supernode.errors import CouldNotRun
from supernode.lab import cgroups
from supernode.lab.artefacts import LABS
from supernode.lab.places import Places, labs_root

# name below /proc/sys -> the least that labs need, and what for
LIMITS: Mapping[str, int] = {
    "net/ipv4/neigh/default/gc_thresh3": 65536,  # 512 rails fill the machine-wide neighbour table's 1,024
    "net/ipv4/neigh/default/gc_thresh2": 32768,
    "net/ipv6/neigh/default/gc_thresh3": 65536,
    "net/ipv6/neigh/default/gc_thresh2": 32768,
    "fs/inotify/max_user_instances": 8192,  # a systemd takes about ten
    "fs/inotify/max_user_watches": 524288,
    "kernel/keys/maxkeys": 65536,  # each service of each host has a session keyring
    "kernel/keys/maxbytes": 25000000,
}
GUARD = ("unreachable", str(LABS), "metric", "9999")


@contextmanager
def locked(lab: str = "") -> Iterator[None]:
    """Hold the lock of a lab, or of the machine: starts and stops take turns; a killed holder holds no more."""
    root = labs_root()
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (root / f"{lab}.lock".lstrip(".")).open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def prepare() -> None:
    """Set the guard route and raise the limits; remembers what was there before. Call it with the lock held."""
    record = _record()
    if "guard" not in record:
        record["guard"] = _guarded()
    before = record.setdefault("limits", {})
    for name, least in LIMITS.items():
        path = Path("/proc/sys", name)
        if path.is_file() and int(path.read_text(encoding="ascii")) < least:
            before.setdefault(name, int(path.read_text(encoding="ascii")))
    workspace.write_atomically(_record_path(), json.dumps(record))  # before the change, so that a kill loses nothing
    subprocess.run(["ip", "route", "replace", *GUARD], check=True, capture_output=True)
    for name in before:
        path = Path("/proc/sys", name)
        if int(path.read_text(encoding="ascii")) < LIMITS[name]:
            path.write_text(str(LIMITS[name]), encoding="ascii")


def restore() -> None:
    """Undo `prepare` when no lab is left. Call it with the lock held."""
    if not _record_path().is_file() or running_labs():
        return
    record = _record()
    for name, value in record.get("limits", {}).items():
        path = Path("/proc/sys", name)
        if int(path.read_text(encoding="ascii")) == LIMITS[name]:  # else someone else set it since
            path.write_text(str(value), encoding="ascii")
    if not record.get("guard", True):
        subprocess.run(["ip", "route", "del", *GUARD], check=False, capture_output=True)
    _record_path().unlink(missing_ok=True)


def running_labs(but: str | None = None) -> tuple[str, ...]:
    """Return the names of the labs in which anything runs."""
    groups = cgroups.top().glob(f"{Places.of('x').cgroup[:-1]}*")
    names = (group.name.removeprefix(Places.of("x").cgroup[:-1]) for group in groups if cgroups.populated(group))
    return tuple(sorted(name for name in names if name != but))


def claim(places: Places, block: IPv4Network) -> None:
    """Check that no other running lab has addresses in the block.

    Raises:
        CouldNotRun: one has.
    """
    for other in running_labs(but=places.name):
        settings = Places.of(other).settings
        if not settings.is_file():
            continue
        theirs = IPv4Network(json.loads(settings.read_text(encoding="utf-8"))["block"])
        if theirs.overlaps(block):
            hint = f"give site.networks of one of them another /19 of {LABS}, or: supernode lab stop {other}"
            raise CouldNotRun(places.name, f"its addresses ({block}) are those of the lab {other}, which runs", hint)


def _guarded() -> bool:
    done = subprocess.run(
        ["ip", "-j", "route", "show", "type", "unreachable", str(LABS)], capture_output=True, text=True, check=False
    )
    return bool(json.loads(done.stdout or "[]"))


def _record_path() -> Path:
    return labs_root() / "machine.json"


def _record() -> dict[str, Any]:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    if _record_path().is_file():
        found: dict[str, Any] = json.loads(_record_path().read_text(encoding="utf-8"))
        if found.get("boot") == boot:
            return found
    return {"boot": boot}
