"""What no variable may carry, put on hosts before the playbooks run: secrets by reference, files of the operator.

Each is resolved here, compared by its SHA-256 and, where it differs, handed to the host on the standard input of one
command over the pinned connection: it is in no variable, argument, log or file of ours on the way. What lies there and
no role of the host needs any more is removed. A unit's name stands in RESTART from before its secret is another until
it was restarted, so that a run that died in between is taken up by the next.
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
RESTART = f"{CREDENTIALS}/.restart"
_WAITING = ".restart/"
_AT_ONCE = 16
OnEvent = Callable[[Event], None]


def place(folder: EnvironmentFolder, design: Design, outputs: Outputs, on_event: OnEvent) -> None:
    """Put on every host that can be reached what its roles need of this kind, and nothing that is there already.

    A host that does not take it is told of as an event: what runs there will say what it lacks.

    Raises:
        CouldNotRun: a reference cannot be resolved, or a file of the operator's cannot be read.
    """
    wanted = {
        host.name: roles.placed(design, host)
        for host in design.hosts
        if (device := outputs.devices.get(host.name)) is not None
        and device.state == "ready"
        and host.state != "quarantined"
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
                    changed = await _settled(host, wanted[name], texts)
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


async def _settled(host: ssh.Ssh, rows: Sequence[Placed], texts: Mapping[str, bytes]) -> list[str]:
    """Bring a host to its set; return what was done there, in words."""
    there = await _there(host)
    waiting = {name.removeprefix(_WAITING) for name in there if name.startswith(_WAITING)}
    wanted = {row.name for row in rows}
    stale = [name for name in there if name not in wanted and not name.startswith(_WAITING)]
    if stale:
        await host.run(["sudo", "-n", "rm", "-f", "--", *(f"{CREDENTIALS}/{name}" for name in stale)])
    fresh = [row for row in rows if there.get(row.name) != hashlib.sha256(texts[row.source]).hexdigest()]
    for row in fresh:
        await host.run(["sudo", "-n", "install", "-d", "-m", "0700", CREDENTIALS, RESTART])
        await host.run(["sudo", "-n", "touch", f"{RESTART}/{row.unit}"])
        await host.put(row.path, texts[row.source], "0600", sudo=True)
    units = sorted(waiting | {row.unit for row in fresh})
    for unit in units:
        # Not there before the first run of the playbooks, which start it then.
        await host.run(["sudo", "-n", "systemctl", "try-restart", unit], check=False)
        await host.run(["sudo", "-n", "rm", "-f", "--", f"{RESTART}/{unit}"])
    late = [f"{unit} restarted" for unit in units if unit not in {row.unit for row in fresh}]
    return [*(row.name for row in fresh), *late, *(f"{name} removed" for name in stale)]


async def _there(host: ssh.Ssh) -> dict[str, str]:
    """Return the digest of every file in the folder by its name.

    Units that wait for a restart stand there, too, and what a connection that broke left half written.
    """
    words = f"cd {CREDENTIALS} 2>/dev/null || exit 0; find . -type f -exec sha256sum -- {{}} +"
    said = await host.run(["sudo", "-n", "sh", "-c", words])
    rows = (line.split(maxsplit=1) for line in said.stdout.splitlines())
    return {name.removeprefix("./"): digest for digest, name in rows}
