"""One survey, end to end: look, conclude, look again at what may only be old news."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from supernode.bringup.survey import compare, operations, scrub, sources
from supernode.bringup.survey.conclude import Conclusion, conclude
from supernode.bringup.survey.look import BmcAccess, Looker, Say
from supernode.bringup.survey.observed import ControllerSeen, DeviceSeen, Observations, Tree
from supernode.bringup.survey.operations import Operation
from supernode.bringup.survey.propose import LOGIN
from supernode.bringup.survey.sheet import Row
from supernode.clients.answer import MISSHAPEN
from supernode.design import Design
from supernode.records import Finding, Outputs
from supernode.workspace import EnvironmentFolder

# LLDP says what it last heard until that has aged out; a cable is believed to be wrong when two looks in a row agree.
LOOKS = 4
AGAIN_S = 10.0


@dataclass(frozen=True)
class Survey:
    """What came of one.

    Attributes:
        controllers: each with what it can do; () as operations where it could not be read.
        trees: by address, scrubbed; for `--save`.
        differs: the artefacts in which the proposal's design differs from the environment's; None: not compared.
        counts: how often each method was used.
        log: every request and command, a line each.
        looks: how often the cabling was looked at.
        answered: anything that was to be looked at could be.
    """

    conclusion: Conclusion
    findings: tuple[Finding, ...]
    controllers: tuple[tuple[ControllerSeen, tuple[Operation, ...]], ...]
    trees: dict[str, dict[str, Any]]
    counts: dict[str, int]
    log: str
    differs: tuple[str, ...] | None = None
    looks: int = 1
    answered: bool = True


async def of_environment(
    folder: EnvironmentFolder, design: Design, outputs: Outputs | None, say: Say, wait_s: float = AGAIN_S
) -> Survey:
    """Survey what runs: every controller, host and switch of an environment.

    Args:
        folder: the environment.
        design: its own; how things are reached, and what the proposal's is compared with in the end.
        outputs: of its last provisioning, for host keys.
        say: is told what is looked at.
        wait_s: between two looks at cables.
    """
    how, looker = sources.reach(folder, design, outputs), Looker(folder.folder, say)
    read, seen = await _everything(looker, how)

    async def again(before: Observations) -> Observations:
        say("cables", f"some are not as most say; looking again in {wait_s:g} s")
        await asyncio.sleep(wait_s)
        return await _again(looker, how, before)

    found, looks = await agreed(seen, again, folder.texts())
    differs = compare.differences(found.design, design) if found.design is not None else None
    rows = tuple((c, _able(tree)) for c, tree in read)
    devices: tuple[DeviceSeen, ...] = (*seen.hosts, *seen.switches)
    answered = any(not c.why for c in seen.controllers) or any(not device.why for device in devices)
    return Survey(found, found.findings, rows, {}, looker.counts(), looker.log(), differs, looks, answered)


async def _everything(looker: Looker, how: sources.Reach) -> tuple[Sequence[tuple[ControllerSeen, Tree]], Observations]:
    controllers, hosts, switches = await asyncio.gather(
        asyncio.gather(*(looker.controller(access) for access in how.controllers)),
        asyncio.gather(*(looker.host(access) for access in how.hosts)),
        asyncio.gather(*(looker.switch(access) for access in how.switches)),
    )
    return controllers, Observations(tuple(c for c, _ in controllers), tuple(hosts), tuple(switches))


async def agreed(
    seen: Observations, again: Callable[[Observations], Awaitable[Observations]], texts: Mapping[str, str]
) -> tuple[Conclusion, int]:
    """Conclude; while cables are not as designed, look again until two looks in a row agree, LOOKS times at most."""
    found, looks = conclude(seen, texts), 1
    doubted = _doubted(found, seen)
    while doubted and looks < LOOKS:
        seen, looks, before = await again(seen), looks + 1, doubted
        found = conclude(seen, texts)
        doubted = _doubted(found, seen)
        if doubted == before:
            break
    return found, looks


def _doubted(found: Conclusion, seen: Observations) -> frozenset[tuple[str, str, str]]:
    if found.design is None:
        return frozenset()
    return compare.unsettled(found.design, seen, found.proposal.machines)


async def _again(looker: Looker, how: sources.Reach, seen: Observations) -> Observations:
    """Ask once more whom each port hears; what cannot be reached was not, and is not asked again."""
    hosts = await asyncio.gather(
        *(looker.again(a, row) for a, row in zip(how.hosts, seen.hosts, strict=True) if not row.why)
    )
    switches = await asyncio.gather(
        *(looker.again(a, row) for a, row in zip(how.switches, seen.switches, strict=True) if not row.why)
    )
    now_hosts, now_switches = {row.address: row for row in hosts}, {row.address: row for row in switches}
    return Observations(
        seen.controllers,
        tuple(now_hosts.get(row.address, row) for row in seen.hosts),
        tuple(now_switches.get(row.address, row) for row in seen.switches),
    )


async def of_controllers(accesses: Sequence[BmcAccess], base: Path, name: str, say: Say, *, whole: bool) -> Survey:
    """Survey controllers by their addresses; `whole` reads everything they refer to, for keeping it."""
    looker = Looker(base, say)
    found = await asyncio.gather(*(looker.controller(access, whole=whole) for access in accesses))
    login = (accesses[0].username, accesses[0].password)
    concluded = conclude(Observations(tuple(seen for seen, _ in found)), name=name, login=login)
    return _partial(looker, concluded, concluded.findings, found)


async def of_sheet(
    rows: Sequence[Row], how: Callable[[str], BmcAccess] | None, base: Path, name: str, say: Say, *, whole: bool = False
) -> Survey:
    """Survey a rack sheet: what it says, and, where `how` tells the way, what its controllers say to it."""
    looker = Looker(base, say)
    accesses = [how(row.bmc) for row in rows if row.bmc] if how is not None else []
    found = await asyncio.gather(*(looker.controller(access, whole=whole) for access in accesses))
    merged, contradictions = sources.merge(rows, {seen.address: seen for seen, _ in found})
    login = (accesses[0].username, accesses[0].password) if accesses else LOGIN
    concluded = conclude(Observations(tuple(merged)), name=name, login=login)
    return _partial(looker, concluded, (*contradictions, *concluded.findings), found)


def _able(tree: Tree) -> tuple[Operation, ...]:
    """Return what a controller can do; nothing is said of one that answers in another shape, or not at all."""
    try:
        return operations.of(tree) if tree else ()
    except MISSHAPEN:
        return ()


Read = Sequence[tuple[ControllerSeen, Tree]]


def _partial(looker: Looker, found: Conclusion, findings: Sequence[Finding], read: Read) -> Survey:
    """Leave out that the proposal is not whole: nobody looked at the rest, and it says what has to be filled in."""
    kept = tuple(row for row in findings if row.check != "proposal")
    rows = tuple((seen, _able(tree)) for seen, tree in read)
    trees = {seen.address: scrub.tree(tree, tuple(looker.secrets)) for seen, tree in read if tree}
    answered = not read or any(not seen.why for seen, _ in read)
    return Survey(found, kept, rows, trees, looker.counts(), looker.log(), answered=answered)
