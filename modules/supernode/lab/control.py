"""The daemon's socket: one JSON document a line, each way.

Asked `{"do": "status"}`, it answers `{"ok": true, "answer": {...}}`, or `{"ok": false}` with "where", "what", "hint"
and "wrong": whether the request itself was, so that the command ends with 2.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from supernode.errors import CouldNotRun, SupernodeError, WrongInput
from supernode.lab.places import roots_alone

log = logging.getLogger(__name__)
Handler = Callable[[Mapping[str, Any]], Awaitable[Any]]
_LIMIT = 1 << 24


async def serve(path: Path, handler: Handler) -> asyncio.AbstractServer:
    """Answer on a socket that only its owner may open."""
    path.unlink(missing_ok=True)  # noqa: ASYNC240 - once, before anything is served
    old = os.umask(0o177)
    try:
        return await asyncio.start_unix_server(lambda r, w: _converse(handler, r, w), str(path), limit=_LIMIT)
    finally:
        os.umask(old)


async def _converse(handler: Handler, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while line := await reader.readline():
            writer.write(json.dumps(await _answer(handler, line), default=str).encode() + b"\n")
            await writer.drain()
    writer.close()


async def _answer(handler: Handler, line: bytes) -> dict[str, Any]:
    try:
        return {"ok": True, "answer": await handler(json.loads(line))}
    except CouldNotRun as error:
        wrong = isinstance(error, WrongInput)
        return {"ok": False, "where": error.where, "what": error.what, "hint": error.hint, "wrong": wrong}
    except (SupernodeError, KeyError, TypeError, ValueError) as error:
        log.exception("a request failed")
        return {"ok": False, "where": "lab", "what": f"{type(error).__name__}: {error}", "hint": None}


def ask(path: Path, request: Mapping[str, Any], timeout_s: float = 60.0) -> Any:
    """Send one request to a running lab and return its answer.

    Raises:
        CouldNotRun: no lab runs, it does not answer in time, or what it refused with.
    """
    with socket.socket(socket.AF_UNIX) as connection, roots_alone(path.parent.name):
        connection.settimeout(timeout_s)
        try:
            connection.connect(str(path))
            connection.sendall(json.dumps(request).encode() + b"\n")
            with connection.makefile("rb") as stream:
                line = stream.readline()
        except (FileNotFoundError, ConnectionRefusedError) as error:
            raise CouldNotRun(path.parent.name, "no lab runs", f"supernode lab start {path.parent.name}") from error
        except PermissionError:
            raise
        except OSError as error:
            raise CouldNotRun(
                path.parent.name, f"the lab does not answer ({error})", f"see {path.parent / 'daemon.log'}"
            ) from error
    if not line:
        raise CouldNotRun(path.parent.name, "the lab ended while it was asked", f"see {path.parent / 'daemon.log'}")
    reply = json.loads(line)
    if not reply["ok"]:
        kind = WrongInput if reply.get("wrong") else CouldNotRun
        raise kind(reply["where"], reply["what"], reply["hint"])
    return reply["answer"]
