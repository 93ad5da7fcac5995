"""Import: from an id alone to a resource's inputs, by way of the environment's documents.

An id is a slot (r01u05) or, for a machine, its controller's address.
"""

from __future__ import annotations

import asyncio
import os
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
        return folder, design.build(spec.read(folder.texts()))
    except Refusal as error:
        raise CouldNotRun(str(base), f"the environment is refused: {error}", "run `supernode check`") from error


def _machine(base: Path, wanted: str) -> dict[str, Any]:
    from supernode.boot import facts
    from supernode.spec import SlotState

    folder, designed = _load(base)
    host = next((h for h in designed.hosts if wanted in (h.slot, str(h.bmc))), None)
    if host is None:
        raise CouldNotRun(wanted, "is neither a slot nor a controller's address of a machine of this environment")
    environment, booted = designed.environment, facts.read(folder)
    record = designed.machines.slots.get(host.slot)
    kind, iso = designed.server_kind(host), booted.isos.get(host.name, "")
    base_url = f"https://{environment.site.serve.address}:{environment.site.serve.port}"
    return {
        "name": host.name,
        "slot": host.slot,
        "address": str(host.management.ip),
        "bmc": {
            "address": str(host.bmc),
            "username": environment.bmc.username,
            "password": environment.bmc.password,
            "ca": environment.bmc.ca,
            "media": kind.boot,
        },
        "identity": {k: v for k, v in host.identity.known().items() if k != "ssh_host_key"},
        "state": str(host.state),
        "inService": record is None or record.state == SlotState.IN_SERVICE,
        "media": {"url": f"{base_url}/boot/{host.name}/{iso}.iso", "digest": iso, "ca": booted.ca},
        "image": booted.image,
        "enrolment": f"{base_url}/enrolled/{host.name}",
        "bios": dict(environment.machines.bios),
        "firmware": {**kind.firmware, **environment.machines.firmware},
        "power": "On",
        "deadlineS": environment.machines.deadline_s,
        "sshUser": environment.access.user,
        "sshKey": _key(folder),
        "strict": environment.machines.strict,
    }


def _switch(base: Path, wanted: str) -> dict[str, Any]:
    folder, designed = _load(base)
    switch = next((s for s in designed.switches if wanted in (s.slot, str(s.management.ip))), None)
    if switch is None:
        raise CouldNotRun(wanted, "is neither a slot nor an address of a switch of this environment")
    files = designed.switch_files(switch.name)
    return {
        "name": switch.name,
        "slot": switch.slot,
        "address": str(switch.management.ip),
        "hostKey": switch.identity.ssh_host_key,
        "sshUser": designed.environment.access.switch_user,
        "sshKey": _key(folder),
        "files": [{"path": f.path, "content": "", "mode": f.mode} for f in files],
        "strict": designed.environment.machines.strict,
    }


def _key(folder: EnvironmentFolder) -> str:
    key = folder.root / ".supernode" / folder.name / "ssh" / "id_ed25519"
    return f"file:{os.path.relpath(key, folder.folder)}"


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
