"""What goes into a support bundle. What cannot be had is said in the bundle, and the rest goes in all the same."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from supernode import engine as engines
from supernode import workspace
from supernode.bringup.planned import last_design, load_plan
from supernode.clients.exchange import masked
from supernode.design import Design
from supernode.errors import SupernodeError
from supernode.workspace import EnvironmentFolder

LONGEST = 8 << 20  # of one file; the end of a log is what tells
# Named one by one: a folder of state may come to hold what nobody thought of here.
_STATE = ("outputs.json", "boot.json", "known_hosts", "serve/serve.log")
_RUN = ("run.json", "events.jsonl", "ansible.log", "junit.xml", "report.html")
_PACKAGES = ("supernode", "pulumi", "ansible-core", "ansible-runner", "mitogen", "paramiko", "aiohttp", "pytest")


@dataclass(frozen=True)
class Item:
    """One file of a bundle.

    Attributes:
        name: its path in the archive, below the environment's name.
        note: what a reader should know of it, e.g. that its beginning was left out.
    """

    name: str
    data: bytes
    note: str = ""


def gather(folder: EnvironmentFolder, design: Design | None, last: int = 5) -> Iterator[Item]:
    """Collect the files of a bundle.

    Args:
        folder: the environment.
        design: None when the documents make none.
        last: how many runs.
    """
    for name in (*(f"{document}.yml" for document in workspace.DOCUMENTS), "supernode.yml"):
        yield from _file(folder.folder / name, f"documents/{name}")
    state = folder.state
    for path in (*(state / name for name in _STATE), *sorted((state / "enrolled").glob("*.json"))):
        yield from _file(path, f"state/{path.relative_to(state)}")
    yield from _file(folder.secrets / "serve-ca.pem", "state/serve-ca.pem")  # which the machines trust; no secret
    yield from _file(last_design(folder), "runs/last-design.json")
    for run in sorted(folder.runs.glob("*-*-*"))[-last:] if last > 0 else ():
        for name in _RUN:
            yield from _file(run / name, f"runs/{run.name}/{name}")
    yield _json("machine.json", facts(folder))
    if design is not None:
        yield _plan(folder, design)
    yield from _stacks(folder)


def _file(path: Path, name: str) -> Iterator[Item]:
    if not path.is_file():
        return
    with path.open("rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        stream.seek(max(0, size - LONGEST))
        data = stream.read(LONGEST)
    yield Item(name, data, f"the last {LONGEST >> 20} MiB of {size} bytes" if size > LONGEST else "")


def _json(name: str, document: Any, note: str = "") -> Item:
    return Item(name, (json.dumps(document, indent=1, default=str) + "\n").encode(), note)


def _plan(folder: EnvironmentFolder, design: Design) -> Item:
    try:
        return _json("plan.json", load_plan(folder, design).to_json())
    except SupernodeError as error:
        return Item("plan.json", b"", f"not made: {error}")


def _stacks(folder: EnvironmentFolder) -> Iterator[Item]:
    """Export each stack. No secret is in it by design; what stands under a telling key is blanked all the same."""
    from supernode.bringup import provision

    if engines.find() is None:
        yield Item("stacks", b"", "not exported: no engine here (`supernode engine` gets one)")
        return
    try:
        exported = provision.exported(folder)
    except SupernodeError as error:
        yield Item("stacks", b"", f"not exported: {error}")
        return
    for name, document in exported.items():
        (document.get("deployment") or {}).pop("secrets_providers", None)  # a salt helps whoever tries passphrases
        yield _json(f"stacks/{name}.json", masked(document))


def facts(folder: EnvironmentFolder) -> dict[str, Any]:
    """Return what is to be known of the operator's machine: versions, room, addresses, clock."""
    engine = engines.find()
    return {
        "versions": {name: _version(name) for name in _PACKAGES},
        "python": platform.python_version(),
        "system": {**platform.uname()._asdict(), "processors": os.cpu_count()},
        "os_release": platform.freedesktop_os_release() if Path("/etc/os-release").exists() else {},
        "engine": {**dataclasses.asdict(engine), "path": str(engine.path)} if engine else None,
        "free_bytes": {str(path): shutil.disk_usage(path).free for path in (folder.root, folder.state)},
        "memory": Path("/proc/meminfo").read_text(encoding="ascii").splitlines()[:3],
        **{" ".join(words): _said(words) for words in _ASKED},
    }


_ASKED = (
    ["ssh", "-V"],
    ["ip", "-brief", "address"],
    ["ip", "route"],
    ["timedatectl", "show"],
    ["date", "-u", "+%FT%TZ"],
)


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _said(words: list[str]) -> str:
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=10, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"cannot be asked: {error}"
    return (done.stdout + done.stderr).strip()
