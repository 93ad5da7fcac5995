"""Import: from an id alone to a resource's inputs, by way of the environment's documents.

An id is a slot (r01u05) or, for a machine, its controller's address.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

from supernode import workspace
from supernode.errors import CouldNotRun, Refusal
from supernode.provider.resource import Scene
from supernode.workspace import EnvironmentFolder

if TYPE_CHECKING:
    from supernode.design import Design


def _load(base: Path) -> tuple[EnvironmentFolder, Design]:
    from supernode import design, spec  # late: only an import needs them, and they load numeric libraries

    try:
        folder = workspace.find(str(base))
        return folder, design.build(spec.read(folder.texts(), name=folder.name))
    except Refusal as error:
        raise CouldNotRun(str(base), f"the environment is refused: {error}", "run `supernode check`") from error


def _machine(base: Path, wanted: str) -> dict[str, Any]:
    from supernode.boot import facts
    from supernode.plan import resources

    folder, designed = _load(base)
    host = next((h for h in designed.hosts if wanted in (h.slot, str(h.bmc))), None)
    if host is None:
        raise CouldNotRun(wanted, "is neither a slot nor a controller's address of a machine of this environment")
    return resources.machine(designed, host, facts.read(folder), folder.ssh_key)


def _switch(base: Path, wanted: str) -> dict[str, Any]:
    from supernode.plan import resources

    folder, designed = _load(base)
    switch = next((s for s in designed.switches if wanted in (s.slot, str(s.management.ip))), None)
    if switch is None:
        raise CouldNotRun(wanted, "is neither a slot nor an address of a switch of this environment")
    inputs = resources.switch_config(designed, switch, folder.ssh_key)
    return {**inputs, "files": [{**file, "content": ""} for file in inputs["files"]]}


async def machine(scene: Scene, resource_id: str) -> dict[str, Any]:
    """Return a Machine's inputs.

    Raises:
        CouldNotRun: the environment's documents do not name it.
    """
    return await asyncio.to_thread(_machine, scene.base, resource_id)


async def switch_config(scene: Scene, resource_id: str) -> dict[str, Any]:
    """Return a SwitchConfig's inputs; the files' content is what the switch will be found to hold.

    Raises:
        CouldNotRun: the environment's documents do not name it.
    """
    return await asyncio.to_thread(_switch, scene.base, resource_id)
