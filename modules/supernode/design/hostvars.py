"""The one mapping from the Design to role variables: `<role>_<name>`."""

from __future__ import annotations

from typing import Any

from supernode.design.model import Design

ROLES = ("time_synced", "base_system", "rails")


def build(design: Design, host: str) -> dict[str, Any]:
    """Return the variables of every role for one host."""
    placed = design.files(host)
    variables: dict[str, Any] = {"base_system_packages": list(design.environment.software.packages)}
    for role in ROLES:
        variables[f"{role}_files"] = [
            {"path": file.path, "content": file.content, "mode": file.mode, "owner": file.owner}
            for file in placed
            if file.role == role
        ]
    return variables
