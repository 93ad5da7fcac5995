"""Programs of the operator's machine, called with a message a person can act on when they are missing or fail."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from supernode.errors import CouldNotRun

_TAIL = 12


def run(
    argv: Sequence[str | Path],
    *,
    hint: str | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    folder: Path | None = None,
    accept: Sequence[int] = (0,),
) -> bytes:
    """Run a program and return its standard output.

    Args:
        argv: never a secret: it is shown when the program fails, and everyone on the machine can read it.
        hint: what to do when it fails.
        env: variables beyond our own.
        stdin: what it reads; nothing when left out.
        folder: where it runs.
        accept: exit statuses that are no failure.

    Raises:
        CouldNotRun: not installed, or another exit status, with the last lines it wrote.
    """
    name = str(argv[0])
    try:
        done = subprocess.run(
            [str(part) for part in argv],
            input=stdin if stdin is not None else b"",
            capture_output=True,
            env={**os.environ, "LC_ALL": "C.UTF-8", **(env or {})},
            cwd=folder,
            check=False,
        )
    except FileNotFoundError as error:
        raise CouldNotRun(name, "is not installed", "install what tools/debian-packages.txt lists") from error
    if done.returncode not in accept:
        lines = (done.stdout[-2000:] + done.stderr).decode(errors="replace").strip().splitlines()
        tail = " | ".join(line.strip() for line in lines[-_TAIL:])
        raise CouldNotRun(name, f"ended with status {done.returncode}: {tail or 'no output'}", hint)
    return done.stdout
