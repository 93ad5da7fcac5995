"""One key of a secret in a vault's key-value engine, version 2, over HTTPS: read, or added where it is not there yet.

The vault is found as its own command-line client finds it (https://developer.hashicorp.com/vault/docs/commands,
"Environment variables"): VAULT_ADDR, VAULT_CACERT, VAULT_NAMESPACE, and the token from ~/.vault-token, else
VAULT_TOKEN.
"""

from __future__ import annotations

import asyncio
import os
import random
import ssl
import stat
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from supernode.errors import CouldNotRun

TOKEN_FILE = Path("~/.vault-token")
LIMIT_S = 15.0
WRITES = 20  # one secret may hold the passwords of many machines, which are all written in the same minute
_HINTS = {
    403: "log in again (the token is missing, spent or may not do this at this path)",
    404: "no such mount, path or version; KV version 2 is expected",
    503: "the vault is sealed",
}


class Missing(CouldNotRun):
    """The reference is good, and nothing was stored there yet."""


@dataclass(frozen=True)
class _Kept:
    """A secret as it stands; version 0 where there was never one."""

    data: Mapping[str, Any]
    version: int


async def read(ref: str, rest: str) -> str:
    """Return the key that `<mount>/<path>#<key>` names.

    Raises:
        Missing: the path has no secret, or the secret no such key.
        CouldNotRun: the vault does not answer, or does not let us.
    """
    url, key = _place(ref, rest)
    async with _session(ref) as session:
        kept = await _read(ref, session, url)
    if key not in kept.data:
        what = f"the secret has no key {key!r}" if kept.version else "the vault answers 404"
        raise Missing(ref, what, None if kept.version else _HINTS[404])
    return str(kept.data[key])


async def add(ref: str, rest: str, value: str) -> None:
    """Add the key to the secret; what else the secret holds stays, whoever else is writing to it.

    Raises:
        CouldNotRun: the key is there already, or it cannot be written.
    """
    url, key = _place(ref, rest)
    async with _session(ref) as session:
        for _ in range(WRITES):
            kept = await _read(ref, session, url)
            if key in kept.data:
                raise CouldNotRun(ref, "is there already and is not written over")
            body = {"options": {"cas": kept.version}, "data": {**kept.data, key: value}}
            status, answered = await _ask(ref, session, "POST", url, body)
            if status in (200, 204):
                return
            if not (status == 400 and "check-and-set" in str(answered)):
                raise _refused(ref, status)
            await asyncio.sleep(random.uniform(0.02, 0.2))  # noqa: S311 - somebody else wrote meanwhile: spread
    raise CouldNotRun(ref, f"the secret changed under each of {WRITES} attempts to write it")


async def _read(ref: str, session: aiohttp.ClientSession, url: str) -> _Kept:
    """Read a secret; one that was never written and one whose last version was deleted are empty."""
    status, document = await _ask(ref, session, "GET", url, None)
    if status == 404 and isinstance(document, Mapping) and document.get("errors"):
        raise _refused(ref, status)  # no such mount: it says why
    if status not in (200, 404):
        raise _refused(ref, status)
    inner = document.get("data") if isinstance(document, Mapping) else None
    inner = inner if isinstance(inner, Mapping) else {}
    version = (inner.get("metadata") or {}).get("version") or 0
    return _Kept(inner.get("data") or {}, int(version))


async def _ask(
    ref: str, session: aiohttp.ClientSession, method: str, url: str, body: Mapping[str, Any] | None
) -> tuple[int, Any]:
    try:
        async with session.request(method, url, json=body, allow_redirects=False) as answer:
            text = await answer.text()
            return answer.status, (await answer.json(content_type=None) if text.strip() else {})
    except (aiohttp.ClientError, TimeoutError) as error:
        raise CouldNotRun(ref, f"the vault cannot be asked: {type(error).__name__}: {error}") from error
    except ValueError as error:
        raise CouldNotRun(ref, "the vault answers with something that is no JSON") from error


def _refused(ref: str, status: int) -> CouldNotRun:
    return CouldNotRun(ref, f"the vault answers {status}", _HINTS.get(status))


def _place(ref: str, rest: str) -> tuple[str, str]:
    place, _, key = rest.partition("#")
    mount, _, path = place.strip("/").partition("/")
    if not (mount and path and key):
        raise CouldNotRun(ref, "names no key of a secret", "write vault:<mount>/<path>#<key>")
    address = os.environ.get("VAULT_ADDR", "")
    if not address.startswith("https://"):
        raise CouldNotRun(ref, "VAULT_ADDR is not set to an https:// address", "secrets travel over TLS only")
    return f"{address.rstrip('/')}/v1/{mount}/data/{path}", key


@asynccontextmanager
async def _session(ref: str) -> AsyncIterator[aiohttp.ClientSession]:
    token, context = await asyncio.to_thread(lambda: (_token(ref), _tls(ref)))
    headers = {"X-Vault-Token": token, "X-Vault-Request": "true"}
    if namespace := os.environ.get("VAULT_NAMESPACE"):
        headers["X-Vault-Namespace"] = namespace
    limit = aiohttp.ClientTimeout(total=LIMIT_S)
    connector = aiohttp.TCPConnector(ssl=context)
    async with aiohttp.ClientSession(timeout=limit, headers=headers, connector=connector) as session:
        yield session


def _token(ref: str) -> str:
    path = TOKEN_FILE.expanduser()
    if not path.is_file():
        token = os.environ.get("VAULT_TOKEN", "")
        if not token:
            raise CouldNotRun(ref, "no vault token", "log in with the vault's own client; it writes ~/.vault-token")
        return token
    try:
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise CouldNotRun(ref, f"others on this machine may read {path}", f"chmod 600 {path}")
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise CouldNotRun(ref, f"{path} cannot be read") from error


def _tls(ref: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=os.environ.get("VAULT_CACERT") or None)
    except OSError as error:
        raise CouldNotRun(ref, f"VAULT_CACERT cannot be read: {error.strerror}") from error
