"""HTTP in, Redfish out: authentication, privileges, ETags, errors; the same for every resource."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from collections.abc import Mapping
from dataclasses import replace

from aiohttp import web

from supernode.lab.bmc import answers, resources  # noqa: F401 - resources fills the routes
from supernode.lab.bmc.access import ROLES
from supernode.lab.bmc.controller import Bmc
from supernode.lab.bmc.messages import RedfishError
from supernode.lab.bmc.resources.shape import etag
from supernode.lab.bmc.routes import ROUTES, Body, Call, Reply, Route

log = logging.getLogger(__name__)

HEADERS = {"OData-Version": "4.0", "Cache-Control": "no-store"}


async def handle(bmc: Bmc, request: web.BaseRequest) -> web.StreamResponse:
    """Answer one request."""
    await bmc.faults.wait_alive()
    try:
        reply = await _faulty(bmc) or await _answer(bmc, request)
    except RedfishError as error:
        reply = Reply(error.status, error.document, error.headers)
    except Exception:
        log.exception("%s: %s %s", bmc.chassis.slot, request.method, request.path)
        reply = Reply(500, RedfishError("InternalError").document)
    if request.method not in ("GET", "HEAD"):
        bmc.store.touch()
        log.info("%s: %s %s: %d", bmc.chassis.slot, request.method, request.path, reply.status)
    await bmc.store.save()
    await bmc.faults.wait_alive()
    return _response(reply, request.method)


async def _faulty(bmc: Bmc) -> Reply | None:
    slow = bmc.faults.get("bmc-slow")
    if slow is not None:
        await asyncio.sleep(float(slow["delay_s"]))
    busy = bmc.faults.get("bmc-503")
    if busy is None:
        return None
    wait = int(busy["retry_after_s"])
    error = RedfishError("ServiceTemporarilyUnavailable", str(wait))
    return Reply(503, error.document, {"Retry-After": str(wait)} if wait else {})


async def _answer(bmc: Bmc, request: web.BaseRequest) -> Reply:
    path = request.path.rstrip("/") or "/"
    methods, ids = ROUTES.find(path)
    method = "GET" if request.method == "HEAD" else request.method
    route = methods.get(method)
    account, session = None, None
    if route is None or route.privilege is not None:
        account, session = await bmc.access.authenticate(request.headers)
    if not methods:
        raise RedfishError("ResourceMissingAtURI", path)
    if route is None:
        raise RedfishError("OperationNotAllowed", headers={"Allow": ", ".join(sorted(methods))})
    body = await _body(request) if method in ("POST", "PATCH") else {}
    call = Call(method, path, ids, body, request.query, account, session)
    _permit(route, call)
    get = methods.get("GET")
    if method in ("PATCH", "DELETE") and get is not None:
        await _precondition(bmc, get, call, request.headers)
    reply = await answers.answer(bmc, call, lambda: _done(bmc, route, get, call))
    return _with_etag(reply, methods) if method in ("GET", "PATCH") else reply


def _permit(route: Route, call: Call) -> None:
    account = call.account
    if route.privilege is None or account is None:
        return
    own = f"/redfish/v1/AccountService/Accounts/{account.id}"
    leaves = call.method == "DELETE" and call.session is not None and call.path.endswith(f"/Sessions/{call.session.id}")
    if account.change_required and not (leaves or (call.path == own and call.method in ("GET", "PATCH"))):
        raise RedfishError("PasswordChangeRequired", own)
    privileges = ROLES[account.role]
    if route.privilege in privileges or (call.path == own and "ConfigureSelf" in privileges):
        return
    raise RedfishError("InsufficientPrivilege")


async def _body(request: web.BaseRequest) -> Body:
    text = await request.read()
    if not text and request.method == "POST":
        return {}  # an action without parameters
    try:
        body = json.loads(text)
    except ValueError as error:
        raise RedfishError("MalformedJSON") from error
    if not isinstance(body, dict):
        raise RedfishError("MalformedJSON")
    return body


async def _precondition(bmc: Bmc, get: Route, call: Call, headers: Mapping[str, str]) -> None:
    wanted = headers.get("If-Match")
    if wanted is None:
        if call.method == "PATCH" and call.path.startswith(bmc.habits.if_match):
            raise RedfishError("PreconditionRequired")
        return
    present = etag((await _run(bmc, get, call)).body or {})
    if wanted.strip() != "*" and _opaque(present) not in (_opaque(each) for each in wanted.split(",")):
        raise RedfishError("PreconditionFailed")


def _opaque(tag: str) -> str:
    return tag.strip().removeprefix("W/")


async def _done(bmc: Bmc, route: Route, get: Route | None, call: Call) -> Reply:
    """Do what is asked; a PATCH answers with the changed resource."""
    reply = await _run(bmc, route, call)
    if call.method == "PATCH" and reply.status == 204 and get is not None:
        return await _run(bmc, get, call)
    return reply


async def _run(bmc: Bmc, route: Route, call: Call) -> Reply:
    answer = route.handler(bmc, call)
    result = await answer if inspect.isawaitable(answer) else answer
    return result if isinstance(result, Reply) else Reply(200, result)


def _with_etag(reply: Reply, methods: Mapping[str, Route]) -> Reply:
    headers = {"Allow": ", ".join(sorted({*methods, "HEAD"})), **reply.headers}
    if reply.body is None or reply.status != 200 or "@odata.id" not in reply.body:
        return replace(reply, headers=headers)
    tag = etag(reply.body)
    return Reply(reply.status, {**reply.body, "@odata.etag": tag}, {"ETag": tag, **headers})


def _response(reply: Reply, method: str) -> web.Response:
    text = reply.xml if reply.body is None else json.dumps(reply.body)
    response = web.Response(status=reply.status, headers={**HEADERS, **reply.headers})
    if text:
        response.content_type = "application/xml" if reply.xml else "application/json"
        response.charset = "utf-8"
    if method == "HEAD":
        response.headers["Content-Length"] = str(len(text.encode()))
    else:
        response.body = text.encode()
    return response
