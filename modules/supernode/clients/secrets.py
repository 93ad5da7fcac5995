"""Secrets by reference: a document names a secret, and only the opening of a connection reads it.

    file:<path>               the file's text without its last newline; mode 0600 or tighter
    exec:<command and words>  the first line the command prints; no shell
    vault:<mount>/<path>#<key>   one key of a KV version 2 secret, over HTTPS

The vault is found as its own command-line client finds it (https://developer.hashicorp.com/vault/docs/commands,
"Environment variables"): VAULT_ADDR, VAULT_CACERT, VAULT_NAMESPACE, and the token from ~/.vault-token, else
VAULT_TOKEN.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import ssl
import stat
from pathlib import Path
from typing import Any

import aiohttp

from supernode.errors import CouldNotRun

SCHEMES = ("file:", "exec:", "vault:")
HINT = "write file:<path>, exec:<command> or vault:<mount>/<path>#<key>"
EXEC_LIMIT_S = 30.0
VAULT_LIMIT_S = 15.0


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
        CouldNotRun: no reference, or its target does not answer; the message never holds the secret.
    """
    if not is_reference(ref):
        raise CouldNotRun("secret", "not a reference", HINT)
    scheme, _, rest = ref.partition(":")
    if scheme == "file":
        return await asyncio.to_thread(lambda: _read_file(ref, base / Path(rest.strip()).expanduser()))
    if scheme == "exec":
        return await _run(ref, shlex.split(rest), base)
    return await _ask_vault(ref, rest.strip())


def resolve_now(ref: str, base: Path) -> str:
    """Do what `resolve` does, for callers that run no event loop."""
    return asyncio.run(resolve(ref, base))


def _read_file(ref: str, path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as stream:
            if stat.S_IMODE(os.fstat(stream.fileno()).st_mode) & 0o077:
                raise CouldNotRun(ref, "others on this machine may read this file", f"chmod 600 {path}")
            text = stream.read()
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
        process.kill()
        await process.wait()
        raise CouldNotRun(ref, f"gave no answer in {EXEC_LIMIT_S:g} s") from error
    if process.returncode:
        raise CouldNotRun(ref, f"ended with status {process.returncode}")
    return _present(ref, out.decode(errors="replace").partition("\n")[0])


async def _ask_vault(ref: str, rest: str) -> str:
    place, _, key = rest.partition("#")
    mount, _, path = place.strip("/").partition("/")
    if not (mount and path and key):
        raise CouldNotRun(ref, "names no key of a secret", "write vault:<mount>/<path>#<key>")
    address = os.environ.get("VAULT_ADDR", "")
    if not address.startswith("https://"):
        raise CouldNotRun(ref, "VAULT_ADDR is not set to an https:// address", "secrets travel over TLS only")
    token, context = await asyncio.to_thread(lambda: (_vault_token(ref), _vault_tls(ref)))
    headers = {"X-Vault-Token": token, "X-Vault-Request": "true"}
    if namespace := os.environ.get("VAULT_NAMESPACE"):
        headers["X-Vault-Namespace"] = namespace
    url = f"{address.rstrip('/')}/v1/{mount}/data/{path}"
    return _present(ref, _pick(ref, await _get_json(ref, url, headers, context), key))


async def _get_json(ref: str, url: str, headers: dict[str, str], context: ssl.SSLContext) -> Any:
    limit = aiohttp.ClientTimeout(total=VAULT_LIMIT_S)
    try:
        async with (
            aiohttp.ClientSession(timeout=limit) as session,
            session.get(url, headers=headers, ssl=context, allow_redirects=False) as answer,
        ):
            if answer.status != 200:
                raise CouldNotRun(ref, f"the vault answers {answer.status}", _VAULT_HINTS.get(answer.status))
            return await answer.json(content_type=None)
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        raise CouldNotRun(ref, f"the vault cannot be asked: {type(error).__name__}: {error}") from error


_VAULT_HINTS = {
    403: "log in again (the token is missing, spent or may not read this path)",
    404: "no such mount, path or version; KV version 2 is expected",
    503: "the vault is sealed",
}


def _pick(ref: str, document: Any, key: str) -> str:
    try:
        return str(document["data"]["data"][key])
    except (KeyError, TypeError) as error:
        raise CouldNotRun(ref, f"the secret has no key {key!r}") from error


def _vault_token(ref: str) -> str:
    path = Path.home() / ".vault-token"
    if path.is_file():
        return _read_file(ref, path).strip()
    token = os.environ.get("VAULT_TOKEN", "")
    if not token:
        raise CouldNotRun(ref, "no vault token", "log in with the vault's own client; it writes ~/.vault-token")
    return token


def _vault_tls(ref: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=os.environ.get("VAULT_CACERT") or None)
    except OSError as error:
        raise CouldNotRun(ref, f"VAULT_CACERT cannot be read: {error.strerror}") from error
