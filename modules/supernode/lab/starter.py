"""Starting and stopping a lab, from the machine's root namespace.

A lab is one cgroup and one `unshare`: all its namespaces, mounts and processes end with one write to cgroup.kill, also
when they are still being made. So the handle of a lab is its cgroup's path, never a pid; a start begins with a stop.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from supernode import workspace
from supernode.errors import CouldNotRun
from supernode.lab import artefacts, capacity, cgroups, control, doctor, exchange, factory, nos, shared
from supernode.lab.artefacts import Artefacts
from supernode.lab.faults import Standing
from supernode.lab.places import Places, labs_root
from supernode.lab.vendor import repository
from supernode.lab.wiring import UPLINK

INIT_S, READY_S, LOOPS_S = 30.0, 240.0, 5.0
IMAGES_KEPT = 2
_UNSHARE = (
    "unshare",
    "--mount",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
    "--net",
    "--cgroup",
    "--uts",
    "--ipc",
)
_DETACHED = 'echo $$ >"$1/cgroup.procs" && shift && { setsid "$@" & }'


@dataclass(frozen=True)
class Started:
    """What `start` did.

    Attributes:
        unchanged: a healthy lab of the same artefacts was there already.
        seconds: how long it took.
    """

    unchanged: bool
    seconds: float
    status: Mapping[str, Any]


def start(environment: str, folder: Path, delivery: Path, cache: Path, say: Callable[[str], None]) -> Started:
    """Start the lab of an environment, unless it runs already.

    Args:
        environment: the lab's name.
        folder: the exported artefacts.
        delivery: takes the delivery sheet, the BMCs' authority and the passwords on their labels.
        cache: takes what is built once for all labs.
        say: told what takes time.

    Raises:
        CouldNotRun: not root, something is missing on the machine, or the lab did not come up; nothing of it is left.
    """
    began = time.monotonic()
    _need_root(f"sudo supernode lab start {environment}")
    places = Places.of(environment)
    plan = artefacts.read(folder)
    with shared.locked(environment):
        running = healthy(places, plan) or _afresh(places, plan, folder, cache, say)
    workspace.write_atomically(places.delivery, str(delivery.resolve()))
    exchange.deliver(places)
    unchanged = "started" not in running
    return Started(unchanged, time.monotonic() - began, running)


def _afresh(
    places: Places, plan: Artefacts, folder: Path, cache: Path, say: Callable[[str], None]
) -> Mapping[str, Any]:
    """End what is there and start; when that fails, nothing is left."""
    doctor.essential(doctor.examine())
    capacity.check_machine(plan, labs_root() / "capacity.json")
    _end(places.name)
    system = nos.ensure(cache, say)
    shutil.rmtree(places.vendor, ignore_errors=True)
    shutil.copytree(repository.ensure(cache, say), places.vendor)
    try:
        return _start(places, plan, folder, system, say)
    except BaseException:
        _end(places.name)
        raise


def healthy(places: Places, plan: Artefacts) -> Mapping[str, Any] | None:
    """Return the status of the lab that runs, when it is ready and was built from the same artefacts."""
    try:
        status: Mapping[str, Any] = control.ask(places.control, {"do": "status"}, timeout_s=30.0)
    except CouldNotRun:
        return None
    return status if status["phase"] == "ready" and status["digest"] == plan.digest else None


def stop(environment: str) -> bool:
    """End a lab, or what is left of one, and forget its faults; tells whether there was anything.

    Raises:
        CouldNotRun: not root, or a process cannot be killed.
    """
    _need_root(f"sudo supernode lab stop {environment}")
    with shared.locked(environment):
        found = _end(environment)
    Standing(Places.of(environment).faults).clear()
    return found


def _end(environment: str) -> bool:
    """End a lab, or what is left of one; tells whether there was anything.

    Raises:
        CouldNotRun: a process cannot be killed.
    """
    places = Places.of(environment)
    group = cgroups.top() / places.cgroup
    with shared.locked():
        found = group.is_dir()
        if found:
            cgroups.remove(group)
        subprocess.run(["ip", "link", "del", places.wire], check=False, capture_output=True)
        places.control.unlink(missing_ok=True)
        _await_loops(places.folder)
        shared.restore()
    for slot in (places.folder / "slots").glob("*"):
        shutil.rmtree(slot / "disk", ignore_errors=True)
    return found


def _await_loops(folder: Path) -> None:
    """Wait until the kernel let go of the images: it does so a moment after the mounts went with their namespace."""
    deadline = time.monotonic() + LOOPS_S
    while time.monotonic() < deadline:
        backing = (_text(path) for path in Path("/sys/block").glob("loop*/loop/backing_file"))
        if not any(text.startswith(f"{folder}/") for text in backing):
            return
        time.sleep(0.05)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


def _need_root(hint: str) -> None:
    if os.geteuid() != 0:
        raise CouldNotRun("lab", "needs root", hint)


def _start(
    places: Places, plan: Artefacts, folder: Path, system: Path, say: Callable[[str], None]
) -> Mapping[str, Any]:
    say(f"starting {len(plan.servers)} servers (off), {len(plan.switches)} switches, {len(plan.cables)} cables")
    _folders(places, plan, folder, system)
    with shared.locked():
        shared.claim(places, plan.site.block)
        shared.prepare()
        group = cgroups.top() / places.cgroup
        group.mkdir()
        _launch(places, group)
        _connect(places, plan, _init(group))
    return _ready(places, say)


def _folders(places: Places, plan: Artefacts, folder: Path, system: Path) -> None:
    places.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    places.folder.chmod(0o700)
    shutil.rmtree(places.folder / "slots", ignore_errors=True)
    shutil.rmtree(
        places.factory / "bmc", ignore_errors=True
    )  # BIOS settings, accounts, event logs: as from the factory
    (places.factory / factory.GENERATIONS).unlink(missing_ok=True)
    if folder.resolve() != places.artefacts.resolve():
        shutil.rmtree(places.artefacts, ignore_errors=True)
        shutil.copytree(folder, places.artefacts)
    settings = {"nos": str(system), "block": str(plan.site.block), "digest": plan.digest}
    workspace.write_atomically(places.settings, json.dumps(settings))
    places.log.unlink(missing_ok=True)


def _launch(places: Places, group: Path) -> None:
    command = [*_UNSHARE, sys.executable, "-m", "supernode.lab.labinit", places.name]
    with places.log.open("ab") as log:
        subprocess.run(
            ["/bin/sh", "-c", _DETACHED, "sh", str(group), *command],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", check=True,
        )  # fmt: skip


def _init(group: Path) -> int:
    """Wait for the lab's pid 1 and return its pid as seen here."""
    deadline = time.monotonic() + INIT_S
    while time.monotonic() < deadline:
        try:
            pids = (group / "init" / "cgroup.procs").read_text(encoding="ascii").split()
        except OSError:
            pids = []
        if pids:
            return int(pids[0])
        time.sleep(0.01)
    raise CouldNotRun(group.name, f"did not get its namespaces within {INIT_S:g} s", "supernode lab doctor")


def _connect(places: Places, plan: Artefacts, init: int) -> None:
    site = plan.site
    for arguments in (
        ("link", "add", places.wire, "type", "veth", "peer", "name", UPLINK, "netns", str(init)),
        ("address", "add", f"{site.serve}/32", "dev", places.wire),
        ("link", "set", places.wire, "up"),
        ("route", "add", f"{site.gateway.ip}/32", "dev", places.wire, "src", str(site.serve)),
        ("route", "add", str(site.block), "via", str(site.gateway.ip), "dev", places.wire, "src", str(site.serve)),
    ):
        done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise CouldNotRun(
                f"ip {' '.join(arguments)}", done.stderr.strip(), "is this address in use on the machine?"
            )


def _ready(places: Places, say: Callable[[str], None]) -> Mapping[str, Any]:
    deadline, phase = time.monotonic() + READY_S, ""
    while time.monotonic() < deadline:
        status = _status(places)
        if status is not None and status["phase"] != phase:
            phase = status["phase"]
            say(phase)
        if status is not None and phase == "ready":
            return {**status, "started": True}
        if phase.startswith("failed") or not cgroups.populated(cgroups.top() / places.cgroup):
            raise CouldNotRun(places.name, phase or "the lab ended while it started", f"see {places.log}")
        time.sleep(0.1)
    raise CouldNotRun(places.name, f"was not ready after {READY_S:g} s ({phase or 'no answer'})", f"see {places.log}")


def _status(places: Places) -> Mapping[str, Any] | None:
    if not places.control.exists():
        return None
    try:
        status: Mapping[str, Any] = control.ask(places.control, {"do": "status"}, timeout_s=30.0)
    except CouldNotRun:
        return None
    return status
