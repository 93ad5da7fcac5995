"""The one mapping from the Design to role variables.

Each role's `meta/argument_specs.yml` says what its variables are; tests/roles holds the two against each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from supernode.design import Design

# Every role places a set of files; the order is the play's.
ROLES = ("base_system", "time_synced", "rails")


def build(design: Design, host: str) -> dict[str, Any]:
    """Return the variables of every role for one host.

    Raises:
        KeyError: a rendered file belongs to no role, so nothing would place it.
    """
    sets: dict[str, list[dict[str, str]]] = {role: [] for role in ROLES}
    for file in design.files(host):
        entry = {"path": file.path, "content": file.content, "mode": file.mode, "owner": file.owner}
        sets[file.role].append(entry)
    return {
        "base_system_packages": list(design.environment.software.packages),
        **{f"{role}_files": files for role, files in sets.items()},
    }
