"""Downloads and reports as a BMC or a deploy step makes them: TLS as told, no redirects.

In threads of their own: TLS and disk of a hundred megabytes would hold up every BMC of the loop, and a site that does
not answer would use up the threads that everything else needs.
"""

from __future__ import annotations

import asyncio
import functools
import http.client
import os
import ssl
import threading
import urllib.parse
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from supernode.errors import CouldNotRun
from supernode.lab import netspace

CHUNK = 1 << 20
Result = TypeVar("Result")
TIMEOUT_S = 30.0
LIMIT_BYTES = 64 << 30
_POOL = ThreadPoolExecutor(32, thread_name_prefix="fetch")


class FetchFailed(CouldNotRun):
    """The other side could not be reached, was not trusted, or refused.

    Attributes:
        why: "address", "connect", "tls", "status" or "length".
    """

    def __init__(self, url: str, why: str, what: str) -> None:
        self.why = why
        super().__init__(url, what)


def trust(ca_pem: str | None) -> ssl.SSLContext:
    """Make a TLS context that trusts these certificates and no others; None verifies nothing, "" trusts nobody.

    Raises:
        ssl.SSLError, ValueError: no certificate in the text.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if ca_pem is None:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif ca_pem:
        context.load_verify_locations(cadata=ca_pem)
    return context


async def fetch(url: str, into: Path, ca_pem: str | None, limit_bytes: int = LIMIT_BYTES, space: str = "") -> int:
    """Download a file, under another name until it is whole; cancelled, it ends within a chunk and leaves nothing.

    Args:
        url: http or https.
        into: the file to write, mode 0600.
        ca_pem: what to trust for https; None trusts anyone, "" nobody.
        limit_bytes: larger answers are refused.
        space: the network namespace to do it in; the lab's own where not given.

    Returns:
        The size in bytes.

    Raises:
        FetchFailed: see its `why`.
    """
    stop = threading.Event()
    loop = asyncio.get_running_loop()
    try:
        work = functools.partial(_fetch, url, into, ca_pem, limit_bytes, stop)
        return await loop.run_in_executor(_POOL, _within, space, work)
    finally:
        stop.set()


async def post(url: str, body: bytes, ca_pem: str, headers: Mapping[str, str], space: str = "") -> None:
    """Send a JSON document.

    Raises:
        FetchFailed: it did not arrive, or the answer is no 2xx.
    """
    work = functools.partial(_post, url, body, ca_pem, headers)
    await asyncio.get_running_loop().run_in_executor(_POOL, _within, space, work)


def _within(space: str, work: Callable[[], Result]) -> Result:
    return netspace.within(space, work) if space else work()


def _fetch(url: str, into: Path, ca_pem: str | None, limit_bytes: int, stop: threading.Event) -> int:
    into.parent.mkdir(parents=True, exist_ok=True)
    partial = into.with_name(f".{into.name}.{uuid.uuid4().hex[:8]}")
    connection = _connect(url, ca_pem)
    try:
        answer = _exchange(connection, url, "GET", None, {})
        size = _store(answer, partial, url, limit_bytes, stop)
        partial.replace(into)
    except OSError as error:
        raise FetchFailed(url, "connect", str(error)) from error
    finally:
        partial.unlink(missing_ok=True)
        connection.close()
    return size


def _post(url: str, body: bytes, ca_pem: str, headers: Mapping[str, str]) -> None:
    connection = _connect(url, ca_pem)
    try:
        _exchange(connection, url, "POST", body, {"Content-Type": "application/json", **headers}).read()
    except OSError as error:
        raise FetchFailed(url, "connect", str(error)) from error
    finally:
        connection.close()


def _connect(url: str, ca_pem: str | None) -> http.client.HTTPConnection:
    try:
        parts = urllib.parse.urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise FetchFailed(url, "address", str(error)) from error
    if parts.scheme not in ("http", "https") or not host:
        raise FetchFailed(url, "address", "not an http or https address")
    if parts.scheme == "http":
        return http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
    try:
        return http.client.HTTPSConnection(host, port, timeout=TIMEOUT_S, context=trust(ca_pem))
    except (ssl.SSLError, ValueError) as error:
        raise FetchFailed(url, "tls", f"the trusted certificates cannot be read: {error}") from error


def _exchange(
    connection: http.client.HTTPConnection, url: str, method: str, body: bytes | None, headers: Mapping[str, str]
) -> http.client.HTTPResponse:
    parts = urllib.parse.urlsplit(url)
    target = urllib.parse.urlunsplit(("", "", parts.path or "/", parts.query, ""))
    try:
        connection.request(method, target, body=body, headers=dict(headers))
        answer = connection.getresponse()
    except ssl.SSLCertVerificationError as error:
        raise FetchFailed(url, "tls", f"the server's certificate is not trusted: {error.verify_message}") from error
    except (OSError, http.client.HTTPException) as error:
        raise FetchFailed(url, "connect", str(error) or type(error).__name__) from error
    if not 200 <= answer.status < 300:
        raise FetchFailed(url, "status", f"the server answered {answer.status} {answer.reason}")
    return answer


def _store(answer: http.client.HTTPResponse, path: Path, url: str, limit_bytes: int, stop: threading.Event) -> int:
    total, done = answer.length or 0, 0
    # Private from the start: a deploy ISO carries a token.
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
        while chunk := answer.read(CHUNK):
            done += len(chunk)
            if max(done, total) > limit_bytes:
                raise FetchFailed(url, "length", f"larger than {limit_bytes} bytes")
            if stop.is_set():
                raise FetchFailed(url, "connect", "given up")
            stream.write(chunk)
    if total and done != total:
        raise FetchFailed(url, "length", f"ended after {done} of {total} bytes")
    return done
