"""What no variable may carry, put on hosts before the playbooks run: secrets by reference, files of the operator.

Each is resolved here, compared by its SHA-256 and, where it differs, handed to the host on the standard input of one
command over the pinned connection: it is in no variable, argument, log or file of ours on the way.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from supernode.clients import secrets, ssh
from supernode.design import roles
from supernode.design.rows import CREDENTIALS, Placed
from supernode.errors import CouldNotRun
from supernode.records import Event, State

if TYPE_CHECKING:
    from supernode.design import Design
    from supernode.records import DeviceOutput, Outputs
    from supernode.workspace import EnvironmentFolder

PHASE = "credentials"
_AT_ONCE = 16
OnEvent = Callable[[Event], None]


def place(folder: EnvironmentFolder, design: Design, outputs: Outputs, on_event: OnEvent) -> None:
    """Put on every host that can be reached what its roles need of this kind, and nothing that is there already.

    A host that does not take it is told of as an event: what runs there will say what it lacks.

    Raises:
        CouldNotRun: a reference cannot be resolved, or a file of the operator's cannot be read.
    """
    wanted = {
        host.name: rows
        for host in design.hosts
        if (device := outputs.devices.get(host.name)) is not None
        and device.state == "ready"
        and host.state != "quarantined"
        and (rows := roles.placed(design, host))
    }
    if wanted:
        asyncio.run(_all(folder, design.environment.access.user, outputs.devices, wanted, on_event))


async def _all(
    folder: EnvironmentFolder,
    user: str,
    devices: Mapping[str, DeviceOutput],
    wanted: Mapping[str, Sequence[Placed]],
    on_event: OnEvent,
) -> None:
    sources = dict.fromkeys(row.source for rows in wanted.values() for row in rows)
    texts = {source: await _read(folder, source) for source in sources}
    key = folder.ssh_key_file.read_text(encoding="utf-8")
    gate = asyncio.Semaphore(_AT_ONCE)

    async def one(name: str) -> None:
        async with gate:
            try:
                async with ssh.connect(devices[name].address, user, key, devices[name].host_keys) as host:
                    changed = [row.name for row in wanted[name] if await _put(host, row, texts[row.source])]
            except CouldNotRun as error:
                on_event(Event(time.time(), "configure", name, PHASE, State.FAILED, str(error)))
                return
            state = State.CHANGED if changed else State.OK
            on_event(Event(time.time(), "configure", name, PHASE, state, ", ".join(changed)))

    await asyncio.gather(*map(one, wanted))


async def _read(folder: EnvironmentFolder, source: str) -> bytes:
    if secrets.is_reference(source):
        return (await secrets.resolve(source, folder.folder)).encode()
    try:
        return await asyncio.to_thread((folder.folder / source).read_bytes)
    except OSError as error:
        raise CouldNotRun(source, f"cannot be read: {error.strerror}") from error


async def _put(host: ssh.Ssh, row: Placed, text: bytes) -> bool:
    """Put one in place and have its unit take it up; tell whether it was another before."""
    there = await host.run(["sudo", "-n", "sha256sum", "--", row.path], check=False)
    if there.status == 0 and there.stdout.split()[0] == hashlib.sha256(text).hexdigest():
        return False
    await host.run(["sudo", "-n", "install", "-d", "-m", "0700", CREDENTIALS])
    await host.put(row.path, text, "0600", sudo=True)
    # Not there before the first run of the playbooks, which start it then.
    await host.run(["sudo", "-n", "systemctl", "try-restart", row.unit], check=False)
    return True
