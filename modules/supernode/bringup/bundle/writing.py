"""The bundle's last look, and its file: searched for every secret first, written whole or not at all."""

from __future__ import annotations

import io
import json
import os
import tarfile
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from supernode.boot import enrolment
from supernode.bringup.bundle.contents import Item
from supernode.bringup.bundle.looked_for import Secrets
from supernode.errors import CouldNotRun


def leaks(items: Sequence[Item], secrets: Secrets, state: Path) -> list[str]:
    """Name each file that holds a secret, and which; never the secret.

    Args:
        items: the files.
        secrets: what the environment knows.
        state: .supernode/<env>, where the boot server keeps the hashes of one-time tokens.
    """
    issued = enrolment.issued(state)
    return [
        f"{item.name} holds {name}"
        for item in items
        for name in (*secrets.named_in(item.data), *enrolment.tokens_in(item.data, issued))
    ]


def write(path: Path, environment: str, items: Sequence[Item], secrets: Secrets, state: Path) -> Path:
    """Write the archive (mode 0600) and return its path.

    Raises:
        CouldNotRun: a secret was found in a file, all such files named, or the folder cannot be written to; either way
            there is no archive.
    """
    items = [*items, _listing(items, secrets)]
    found = leaks(items, secrets, state)
    if found:
        hint = "take it out of that file, and change that secret: it has been where it should not be"
        raise CouldNotRun(str(path), f"not written: {'; '.join(found)}", hint)
    try:
        _write(path, environment, items)
    except OSError as error:
        raise CouldNotRun(str(path), f"cannot be written: {error.strerror}") from error
    return path


def _listing(items: Sequence[Item], secrets: Secrets) -> Item:
    document = {
        "files": {item.name: {"bytes": len(item.data), "note": item.note} for item in items},
        "searched_for": sorted(secrets.forms),
        "not_searched_for": dict(secrets.unknown),
    }
    return Item("contents.json", (json.dumps(document, indent=1) + "\n").encode())


def _write(path: Path, environment: str, items: Sequence[Item]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, unfinished = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream, tarfile.open(fileobj=stream, mode="w:gz") as archive:
            for item in items:
                if item.data or not item.note:
                    entry = tarfile.TarInfo(f"{environment}/{item.name}")
                    entry.size, entry.mtime, entry.mode = len(item.data), int(time.time()), 0o600
                    archive.addfile(entry, io.BytesIO(item.data))
        Path(unfinished).replace(path)
    finally:
        Path(unfinished).unlink(missing_ok=True)
