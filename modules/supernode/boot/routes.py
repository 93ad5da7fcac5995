"""The routes of `supernode serve`; docs/contracts.md, section 5, lists them. Blocking work is done in threads."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

from aiohttp import web
from aiohttp.abc import AbstractAccessLogger

from supernode.boot.enrolment import Answer
from supernode.boot.site import Site
from supernode.clients.exchange import printable
from supernode.errors import SupernodeError

log = logging.getLogger(__name__)

SITE: web.AppKey[Site] = web.AppKey("site", Site)
FINGERPRINT: web.AppKey[str] = web.AppKey("fingerprint", str)

_MOST_BYTES = 64 * 1024
_NAME = r"[a-z0-9][a-z0-9-]{0,62}"
_DIGEST = r"[0-9a-f]{64}"
_LONG = re.compile(r"([0-9a-f]{12})[0-9a-f]{52}")
_MIRROR_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+~_%:-]*")


def application(site: Site, fingerprint: str = "") -> web.Application:
    """Return the application for one environment.

    Args:
        site: the environment.
        fingerprint: of the code that serves; in /health.
    """
    app = web.Application(client_max_size=_MOST_BYTES, middlewares=[_errors])
    app[SITE], app[FINGERPRINT] = site, fingerprint
    app.add_routes(
        [
            web.get("/health", _health),
            web.get(f"/images/{{digest:{_DIGEST}}}.raw.zst", _image),
            web.get(f"/boot/{{host:{_NAME}}}/{{digest:{_DIGEST}}}.iso", _iso),
            web.post(f"/report/{{host:{_NAME}}}", _report),
            web.get(f"/enrolled/{{host:{_NAME}}}", _enrolled),
            web.get("/mirror/{name:.+}", _mirror),
        ]
    )
    return app


class AccessLog(AbstractAccessLogger):
    """A line for each request; a digest is cut short, for a medium's address is its key."""

    def log(self, request: web.BaseRequest, response: web.StreamResponse, time: float) -> None:
        """Write the line."""
        path = shortened(request.path)
        self.logger.info("%s %s %s %d %.3f s", request.remote, request.method, path, response.status, time)


def shortened(text: str) -> str:
    """Return a text fit for a line of the log: only the first 12 digits of each digest, and nothing but what shows."""
    return _LONG.sub(r"\1", printable(" ".join(text.splitlines())))


@web.middleware
async def _errors(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Answer an error of ours with 503 and its words: whoever asks can read them in its own log."""
    try:
        return await handler(request)
    except SupernodeError as error:
        log.warning("%s: %s", shortened(request.path), error)
        return web.json_response({"error": str(error), "hint": getattr(error, "hint", None)}, status=503)


async def _health(request: web.Request) -> web.Response:
    site = request.app[SITE]
    design = await asyncio.to_thread(site.design)
    answer = {"environment": site.folder.name, "design": design.digest, "code": request.app[FINGERPRINT]}
    return web.json_response({**answer, "process": os.getpid()})


async def _image(request: web.Request) -> web.StreamResponse:
    known = await asyncio.to_thread(request.app[SITE].known)
    if request.match_info["digest"] != known.image.digest:
        raise web.HTTPNotFound(text="not the image of these documents\n")
    return _file(known.image.compressed)


async def _iso(request: web.Request) -> web.StreamResponse:
    host, digest = request.match_info["host"], request.match_info["digest"]
    site = request.app[SITE]
    if not (_from_here(request) or await asyncio.to_thread(site.admits, request.remote or "")):
        log.warning("%s: medium refused to %s", host, request.remote)
        raise web.HTTPForbidden(text="media are for the networks of controllers and machines\n")
    path = await asyncio.to_thread(site.iso, host, digest)
    if path is None and await asyncio.to_thread(site.offers, host, digest):
        log.warning("%s: medium %s asked for by %s and not armed", host, digest[:12], request.remote)
        raise web.HTTPGone(text="nobody is about to boot this host, and its last medium's token is dead\n")
    if path is None:
        raise web.HTTPNotFound(text="no such medium: the documents have no such host, or another medium for it\n")
    log.info("%s: medium %s to %s", host, digest[:12], request.remote)
    return _file(path, "application/vnd.efi-iso")  # by which UEFI knows what to mount (its "HTTP Boot")


def _from_here(request: web.Request) -> bool:
    """Return whether the request comes from the very address that it came to."""
    local = request.transport.get_extra_info("sockname") if request.transport else None
    return local is not None and local[0] == request.remote


async def _report(request: web.Request) -> web.Response:
    host = request.match_info["host"]
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme != "Bearer" or not token:
        raise web.HTTPUnauthorized()
    try:
        document = json.loads(await request.read())
    except (ValueError, RecursionError):
        document = None  # the token is asked for first, all the same
    answer = await asyncio.to_thread(request.app[SITE].enrolment.report, host, token.strip(), document)
    if answer is Answer.ACCEPTED:
        log.info("%s: %s %s %s", host, document["phase"], document["state"], shortened(document.get("detail", "")))
    else:
        log.warning("%s: report from %s answered %d", host, request.remote, answer.value)
    return web.Response(status=answer.value)


async def _enrolled(request: web.Request) -> web.Response:
    record = await asyncio.to_thread(request.app[SITE].enrolment.read, request.match_info["host"])
    if record is None:
        raise web.HTTPNotFound()
    return web.json_response(record)


async def _mirror(request: web.Request) -> web.StreamResponse:
    known = await asyncio.to_thread(request.app[SITE].known)
    name = request.match_info["name"].removeprefix("./")
    if known.mirror is None or not _MIRROR_FILE.fullmatch(name) or not (known.mirror / name).is_file():
        raise web.HTTPNotFound()
    return _file(known.mirror / name)


def _file(path: Path, kind: str = "application/octet-stream") -> web.FileResponse:
    return web.FileResponse(path, headers={"Content-Type": kind, "Cache-Control": "no-store"})
