"""Look at everything at once, bounded in number and in time, and judge."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from supernode import workspace
from supernode.bringup.live import bmcs, here, judging, servers, switches, units
from supernode.bringup.live.seen import BmcSeen, Login, NameSeen, Seen, SwitchSeen
from supernode.clients import secrets
from supernode.design import Design, Host
from supernode.errors import CouldNotRun
from supernode.records import Finding, Outputs
from supernode.workspace import EnvironmentFolder

BMCS_AT_ONCE, SWITCHES_AT_ONCE = 256, 48
Looked = TypeVar("Looked")
Tell = Callable[[int, int], None]


def check(folder: EnvironmentFolder, design: Design, others: dict[str, Design], tell: Tell) -> list[Finding]:
    """Look at an environment before a run, and say what is wrong; nothing is changed anywhere.

    Args:
        folder: the environment.
        design: its Design.
        others: the designs of the project's other environments, by name.
        tell: called with how many devices were looked at, and of how many.
    """
    seen = asyncio.run(_look(folder, design, tell))
    return [*judging.judge(design, seen), *judging.twins(design, others)]


async def _look(folder: EnvironmentFolder, design: Design, tell: Tell) -> Seen:
    hosts = [host for host in design.hosts if host.state != "quarantined" and not host.cloud]
    count = _Count(len(hosts) + len(design.configured_switches), tell)
    found = await asyncio.gather(
        _bmcs(folder, design, hosts, count),
        _switches(folder, design, count),
        asyncio.gather(*map(servers.time_of, design.environment.site.time_servers)),
        _names(design),
        asyncio.to_thread(here.look, folder, design),
        asyncio.gather(*(units.look(design, unit, folder.folder) for unit in design.cooling)),
    )
    return Seen(tuple(found[0]), tuple(found[1]), tuple(found[2]), tuple(found[3]), found[4], tuple(found[5]))


class _Count:
    """Counts what was looked at."""

    def __init__(self, total: int, tell: Tell) -> None:
        self._done, self._total, self._tell = 0, total, tell

    async def each(self, rows: Sequence[Awaitable[Looked]], at_once: int) -> list[Looked]:
        """Wait for all, some at a time."""
        gate = asyncio.Semaphore(at_once)

        async def one(row: Awaitable[Looked]) -> Looked:
            async with gate:
                looked = await row
            self._done += 1
            self._tell(self._done, self._total)
            return looked

        return list(await asyncio.gather(*map(one, rows)))


async def _bmcs(folder: EnvironmentFolder, design: Design, hosts: Sequence[Host], count: _Count) -> list[BmcSeen]:
    try:
        ca = _ca(folder, design)
    except CouldNotRun as error:
        said = f"bmc.ca: {error.what}"
        return [BmcSeen(h.name, h.slot, str(h.bmc), Login.NOT_TRIED, said, error.hint or "") for h in hosts]
    accounts = bmcs.Accounts.of(design.environment)
    return await count.each([bmcs.look(h, accounts, ca, folder.folder) for h in hosts], BMCS_AT_ONCE)


def _ca(folder: EnvironmentFolder, design: Design) -> str | None:
    name = design.environment.bmc.ca
    if not name:
        return None
    try:
        return (folder.folder / name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CouldNotRun(name, f"{name} cannot be read: {getattr(error, 'strerror', None) or 'no text'}") from error


async def _switches(folder: EnvironmentFolder, design: Design, count: _Count) -> list[SwitchSeen]:
    key = ""
    with suppress(CouldNotRun):  # without a key, that is said of each switch
        key = await secrets.resolve(folder.ssh_key, folder.folder)
    outputs = _outputs(folder)
    rows = [switches.look(design, switch, outputs, key) for switch in design.configured_switches]
    return await count.each(rows, SWITCHES_AT_ONCE)


def _outputs(folder: EnvironmentFolder) -> Outputs | None:
    try:
        return workspace.read_outputs(folder)
    except CouldNotRun:
        return None


async def _names(design: Design) -> list[NameSeen]:
    site = design.environment.site
    names = [name for name in judging.names_used(design.environment) if not servers.is_address(name)]
    if not site.name_servers:
        return [NameSeen(name, "") for name in names]
    asked = [servers.addresses_of(name, str(server)) for name in names for server in site.name_servers]
    return list(await asyncio.gather(*asked))
