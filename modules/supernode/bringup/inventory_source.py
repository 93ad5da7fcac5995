"""Where the inventory's two halves are read from: the environment's folder, and the last outputs or the engine."""

from __future__ import annotations

import os
from pathlib import Path

from supernode import workspace
from supernode.bringup import inventory
from supernode.records import Outputs
from supernode.workspace import EnvironmentFolder


def environment_of(file: Path) -> EnvironmentFolder:
    """Return the environment whose folder holds an inventory file, wherever the process was started."""
    folder = file.resolve().parent
    named = os.environ.get("SUPERNODE_ROOT")
    above = (parent for parent in folder.parents if (parent / "inventories").is_dir())
    root = Path(named).resolve() if named else next(above, workspace.root())
    return EnvironmentFolder(folder.name, folder, root)


def load(folder: EnvironmentFolder, source: str = "record") -> inventory.Inventory:
    """Compute the inventory of an environment, and bring its known_hosts file up to date.

    Args:
        folder: the environment.
        source: "record" for the outputs that the last provisioning left, "stack" to ask the engine.

    Raises:
        Refusal: the documents are wrong.
        CouldNotRun: nothing was provisioned, or not from this design.
    """
    from supernode import design, spec

    designed = design.build(spec.read(folder.texts(), name=folder.name))
    outputs = workspace.read_outputs(folder) if source == "record" else from_stack(folder)
    built = inventory.build(designed, outputs, folder.state, folder.ssh_key_file)
    pin(folder, outputs)
    return built


def from_stack(folder: EnvironmentFolder) -> Outputs:
    """Ask the engine's state."""
    from supernode.bringup import provision

    return provision.outputs(folder)


def pin(folder: EnvironmentFolder, outputs: Outputs) -> Path:
    """Write the known_hosts file of an environment when it is missing or says something else; return its path."""
    path, text = folder.state / inventory.KNOWN_HOSTS, inventory.known_hosts(outputs)
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        workspace.write_atomically(path, text)
    return path
