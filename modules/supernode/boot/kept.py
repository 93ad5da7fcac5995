"""A key that machines in service trust is never made anew in silence: they would turn away who holds the new one."""

from __future__ import annotations

from pathlib import Path

from supernode.errors import CouldNotRun
from supernode.spec.yamltext import parse
from supernode.workspace import EnvironmentFolder


def refuse_anew(folder: EnvironmentFolder, path: Path, why: str, hint: str) -> None:
    """Refuse to make the secret at `path` when machines in service know one that is gone.

    Args:
        folder: the environment.
        path: where the secret should lie.
        why: what those machines do with the old one, after "N machines in service".
        hint: what can be done.

    Raises:
        CouldNotRun: there are such machines.
    """
    count = _in_service(folder)
    if count:
        what = f"is gone, and {count} machine{'s' if count > 1 else ''} in service {why}"
        raise CouldNotRun(str(path), what, hint)


def _in_service(folder: EnvironmentFolder) -> int:
    document, _ = parse(folder.texts().get("machines", ""), "machines")
    slots = document.get("slots") if isinstance(document, dict) else None
    records = slots.values() if isinstance(slots, dict) else ()
    return sum(isinstance(record, dict) and record.get("state") == "in_service" for record in records)
