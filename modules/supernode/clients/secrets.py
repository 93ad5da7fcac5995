"""Secrets by reference: a document names a secret, and only the opening of a connection reads it.

    file:<path>               the file's text without its last newline; mode 0600 or tighter
    exec:<command and words>  the first line the command prints; no shell
    vault:<mount>/<path>#<key>   one key of a KV version 2 secret, over HTTPS

`file:` and `vault:` can take a new secret, too, where there is none yet; what is there is never written over.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import stat
import tempfile
from pathlib import Path

from supernode import workspace
from supernode.clients import vault
from supernode.clients.vault import Missing
from supernode.errors import CouldNotRun

__all__ = ["Missing", "describe", "is_reference", "resolve", "resolve_now", "store"]

SCHEMES = ("file:", "exec:", "vault:")
STORES = ("file:", "vault:")
HINT = "write file:<path>, exec:<command> or vault:<mount>/<path>#<key>"
EXEC_LIMIT_S = 30.0


def is_reference(text: str) -> bool:
    """Say whether a value names a secret instead of being one."""
    return text.startswith(SCHEMES) and len(text.partition(":")[2].strip()) > 0


def describe(ref: str) -> str:
    """Return what may be printed of a reference: nothing when it is none, for it may be the secret itself."""
    return ref if is_reference(ref) else "a value that is no reference"


async def resolve(ref: str, base: Path) -> str:
    """Fetch the secret that a reference names.

    Args:
        ref: `file:…`, `exec:…` or `vault:…`.
        base: the folder that relative file paths start from, and the working folder of `exec:`.

    Raises:
        Missing: nothing was stored there yet.
        CouldNotRun: no reference, or its target does not answer; the message never holds the secret.
    """
    if not is_reference(ref):
        raise CouldNotRun("secret", "not a reference", HINT)
    scheme, _, rest = ref.partition(":")
    if scheme == "file":
        return await asyncio.to_thread(lambda: _read_file(ref, base / Path(rest.strip()).expanduser()))
    if scheme == "exec":
        return await _run(ref, shlex.split(rest), base)
    return _present(ref, await vault.read(ref, rest.strip()))


def resolve_now(ref: str, base: Path) -> str:
    """Do what `resolve` does, for callers that run no event loop."""
    return asyncio.run(resolve(ref, base))


async def store(ref: str, value: str, base: Path) -> None:
    """Put a new secret where a reference names it; it is there for good when this returns.

    Args:
        ref: `file:…` or `vault:…`; nothing may be there yet, so that no secret that is in use is ever lost.
        value: the secret.
        base: as in `resolve`.

    Raises:
        CouldNotRun: something is there already, or it cannot be written; the message never holds the secret.
    """
    scheme, _, rest = ref.partition(":")
    if not is_reference(ref) or f"{scheme}:" not in STORES:
        raise CouldNotRun(describe(ref), "cannot take a new secret", "only file: and vault: can")
    if scheme == "file":
        await asyncio.to_thread(lambda: _write_file(ref, base / Path(rest.strip()).expanduser(), value, base))
    else:
        await vault.add(ref, rest.strip(), value)


def _write_file(ref: str, path: Path, value: str, base: Path) -> None:
    """Write a file of mode 0600: whole and synced before it takes its name, and only if the name is free."""
    try:
        for folder in reversed([p for p in path.parents if not p.exists()]):
            folder.mkdir(mode=0o700, exist_ok=True)
            workspace.give(folder, base)
            _sync(folder.parent)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mode 0600
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(value + "\n")
                stream.flush()
                os.fsync(stream.fileno())
            workspace.give(Path(name), base)
            os.link(name, path)  # unlike a rename it fails where the name is taken
        finally:
            Path(name).unlink()
        _sync(path.parent)
    except FileExistsError as error:
        raise CouldNotRun(ref, "is there already and is not written over") from error
    except OSError as error:
        raise CouldNotRun(ref, f"cannot be written: {error.strerror}") from error


def _sync(folder: Path) -> None:
    """Have the folder's entries on disk, too: a file that is synced can still lose its name."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _read_file(ref: str, path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as stream:
            if stat.S_IMODE(os.fstat(stream.fileno()).st_mode) & 0o077:
                raise CouldNotRun(ref, "others on this machine may read this file", f"chmod 600 {path}")
            text = stream.read()
    except FileNotFoundError as error:
        raise Missing(ref, f"cannot be read: {error.strerror}") from error
    except OSError as error:
        raise CouldNotRun(ref, f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CouldNotRun(ref, "is not text") from error
    return _present(ref, text.removesuffix("\n"))


def _present(ref: str, secret: str) -> str:
    if not secret:
        raise CouldNotRun(ref, "is empty")
    return secret


async def _run(ref: str, words: list[str], base: Path) -> str:
    try:
        process = await asyncio.create_subprocess_exec(
            *words,
            cwd=base,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError as error:
        raise CouldNotRun(ref, f"cannot be started: {error.strerror}") from error
    try:
        out, _ = await asyncio.wait_for(process.communicate(), EXEC_LIMIT_S)
    except TimeoutError as error:
        raise CouldNotRun(ref, f"gave no answer in {EXEC_LIMIT_S:g} s") from error
    finally:  # also when whoever asked is cancelled
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise CouldNotRun(ref, f"ended with status {process.returncode}")
    return _present(ref, out.decode(errors="replace").partition("\n")[0])
