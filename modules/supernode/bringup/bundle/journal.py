"""What the devices themselves wrote down: warnings since the last boot, read over SSH under the pinned keys."""

from __future__ import annotations

import asyncio

from supernode import workspace
from supernode.bringup import login
from supernode.bringup.bundle.contents import Item
from supernode.clients import secrets, ssh
from supernode.design import Design
from supernode.errors import CouldNotRun, SupernodeError
from supernode.records import Outputs
from supernode.workspace import EnvironmentFolder

JOURNAL = ("sudo", "-n", "journalctl", "--no-pager", "--boot", "--priority=warning", "--lines=1000")
_AT_ONCE = 32
_LIMIT_S = 15.0


def journals(folder: EnvironmentFolder, design: Design) -> list[Item]:
    """Return one file a device; one that cannot be reached is a file that says so."""
    try:
        outputs: Outputs | None = workspace.read_outputs(folder)
    except CouldNotRun:
        outputs = None
    return asyncio.run(_all(folder, design, outputs))


async def _all(folder: EnvironmentFolder, design: Design, outputs: Outputs | None) -> list[Item]:
    key = await secrets.resolve(folder.ssh_key, folder.folder)
    gate = asyncio.Semaphore(_AT_ONCE)

    async def one(name: str) -> Item:
        async with gate:
            try:
                target = login.target(design, outputs, name)
                opened = ssh.connect(target.address, target.user, key, target.host_keys, limit_s=_LIMIT_S, look=True)
                async with opened as device:
                    said = await device.run(JOURNAL, limit_s=_LIMIT_S, check=False)
                text, note = said.stdout + said.stderr, "" if said.status == 0 else f"status {said.status}"
            except SupernodeError as error:
                text, note = "", f"not read: {error}"
        return Item(f"journals/{name}.log", text.encode(), note)

    return list(await asyncio.gather(*(one(name) for name in design.slots.values())))
