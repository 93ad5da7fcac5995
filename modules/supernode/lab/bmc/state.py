"""What a BMC keeps in its flash: one JSON document, replaced whole."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from supernode import workspace
from supernode.errors import CouldNotRun

SCHEMA = 1
LOG_KEPT = 500


@dataclass
class Account:
    """A user; `password` is salt and scrypt hash in hex, never the password."""

    id: str
    name: str
    role: str
    password: str
    enabled: bool = True
    change_required: bool = False


@dataclass
class BootOverride:
    """What to boot instead of the disk; `enabled` is Disabled, Once or Continuous."""

    target: str = "None"
    enabled: str = "Disabled"
    mode: str = "UEFI"
    http_uri: str = ""


@dataclass
class LogEntry:
    """One entry of the system event log; `at` in seconds since the epoch."""

    id: int
    at: float
    severity: str
    message: str


@dataclass
class Medium:
    """The image in the virtual drive.

    Attributes:
        uri: where it was loaded from, as the client gave it.
        file: its copy, under the BMC's folder.
    """

    uri: str
    file: str
    write_protected: bool = True


@dataclass
class FirmwareTask:
    """An update that waits for a reset, or is over.

    Attributes:
        state: Redfish's TaskState.
        component, version: what it brings once the image was read; empty before.
        messages: what to tell, each as (severity, text).
    """

    id: str
    name: str
    state: str
    started: float
    component: str = ""
    version: str = ""
    ended: float | None = None
    messages: list[tuple[str, str]] = field(default_factory=list)


@dataclass
class State:
    """Everything that survives a restart of the daemon.

    Attributes:
        bios: applied attributes; `bios_pending` wait for the next POST; `bios_applied_at` is when that last happened.
        certificates: PEM by id, of each place that trusts some ("media", "boot").
        clock_offset_s: what the BMC's clock differs from this machine's.
    """

    accounts: list[Account] = field(default_factory=list)
    boot: BootOverride = field(default_factory=BootOverride)
    bios: dict[str, Any] = field(default_factory=dict)
    bios_pending: dict[str, Any] = field(default_factory=dict)
    bios_messages: list[str] = field(default_factory=list)
    bios_applied_at: float = 0.0
    firmware: dict[str, str] = field(default_factory=dict)
    tasks: list[FirmwareTask] = field(default_factory=list)
    medium: Medium | None = None
    verify_media_certificate: bool = False
    certificates: dict[str, dict[str, str]] = field(default_factory=lambda: {"media": {}, "boot": {}})
    log: list[LogEntry] = field(default_factory=list)
    next_log_id: int = 1
    session_timeout_s: int = 1800
    clock_offset_s: float = 0.0
    asset_tag: str = ""
    indicator: bool = False


class Store:
    """A state and the file that it lives in.

    Args:
        path: the JSON file (0600); a missing one gives a new state.

    Raises:
        CouldNotRun: the file is no state of this version.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fresh = not path.is_file()
        try:
            self.state = State() if self.fresh else read(path.read_text(encoding="utf-8"))
        except (ValueError, TypeError, KeyError) as error:
            hint = "without the file the BMC starts as it came from the factory"
            raise CouldNotRun(str(path), f"no BMC state of this version ({error})", hint) from error
        self._gate = asyncio.Lock()
        self._stale = self.fresh

    def touch(self) -> None:
        """Say that the state may have changed."""
        self._stale = True

    async def save(self) -> None:
        """Write the state when it was touched; returns when it is on disk, so that an answer sent after it holds."""
        if not self._stale and not self._gate.locked():
            return
        async with self._gate:
            if self._stale:  # else a writer before us took our change along
                self._stale = False
                try:
                    await asyncio.to_thread(workspace.write_atomically, self.path, write(self.state), 0o600)
                except BaseException:
                    self._stale = True
                    raise


def write(state: State) -> str:
    """Return the document that `read` reads."""
    return json.dumps({"schema": SCHEMA, **dataclasses.asdict(state)}, indent=1)


def read(text: str) -> State:
    """Read what `write` wrote.

    Raises:
        ValueError: another schema, or no such document.
    """
    document = json.loads(text)
    if not isinstance(document, dict) or document.pop("schema", None) != SCHEMA:
        raise ValueError(f"a BMC's state of another version than {SCHEMA}")
    document["accounts"] = [Account(**row) for row in document["accounts"]]
    document["boot"] = BootOverride(**document["boot"])
    document["medium"] = Medium(**document["medium"]) if document["medium"] else None
    document["log"] = [LogEntry(**row) for row in document["log"]]
    tasks = document["tasks"]
    document["tasks"] = [FirmwareTask(**{**t, "messages": [tuple(m) for m in t["messages"]]}) for t in tasks]
    return State(**document)
