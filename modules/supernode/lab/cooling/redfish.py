"""The Redfish front of a cooling unit: TLS, accounts and sessions as a BMC of the lab has them; it can only be read."""

from __future__ import annotations

import json
import logging
import socket
import ssl
from collections.abc import Iterator
from typing import Any

from aiohttp import web

from supernode.errors import CouldNotRun
from supernode.lab.bmc.access import Access, Session
from supernode.lab.bmc.controller import timestamp
from supernode.lab.bmc.hardware import Habits
from supernode.lab.bmc.messages import RedfishError
from supernode.lab.bmc.state import Account, State
from supernode.lab.cooling import tree
from supernode.lab.cooling.unit import Unit

log = logging.getLogger(__name__)
OPEN = {"/redfish", tree.V1}
CLOSE_S = 0.5


class Front:
    """A listening unit.

    Args:
        unit: the unit.
        password: of its one account, which may only read; hashed.
    """

    def __init__(self, unit: Unit, password: str) -> None:
        self._unit = unit
        account = Account("1", unit.row.username, "ReadOnly", password)
        self._access = Access(State(accounts=[account]), Habits())
        self._server = web.Server(self.handle, access_log=None)
        self._runner = web.ServerRunner(self._server, shutdown_timeout=CLOSE_S)
        self._listener: socket.socket | None = None

    async def listen(self, context: ssl.SSLContext, port: int | None = None) -> None:
        """Put it into operation.

        Raises:
            CouldNotRun: the address cannot be listened on.
        """
        where = (self._unit.row.address, self._unit.row.port if port is None else port)
        await self._runner.setup()
        try:
            self._listener = socket.create_server(where)
        except OSError as error:
            what = f"cooling unit {self._unit.row.unit} cannot listen: {error.strerror}"
            raise CouldNotRun(f"{where[0]}:{where[1]}", what) from error
        await web.SockSite(self._runner, self._listener, ssl_context=context).start()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._listener.getsockname()[1]) if self._listener else 0

    @property
    def sessions(self) -> int:
        """How many stand."""
        return len(self._access.sessions())

    def sockets(self) -> Iterator[Any]:
        """Yield the listening socket and those of the connections that stand."""
        yield self._listener
        for connection in self._server.connections:
            if connection.transport is not None and not connection.transport.is_closing():
                yield connection.transport.get_extra_info("socket")

    async def close(self) -> None:
        """Stop listening; who could not hear a client hang up holds its connection still."""
        for connection in self._server.connections:
            if connection.transport is not None:
                connection.transport.abort()
        await self._runner.cleanup()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        headers: dict[str, str] = {"OData-Version": "4.0", "Cache-Control": "no-store"}
        try:
            status, body, more = await self._answer(request)
            headers |= more
        except RedfishError as error:
            status, body, headers = error.status, dict(error.document), {**headers, **error.headers}
        if request.method not in ("GET", "HEAD"):
            log.info("%s: %s %s: %d", self._unit.row.unit, request.method, request.path, status)
        text = "" if status == 204 or request.method == "HEAD" else json.dumps(body)
        return web.Response(status=status, text=text, headers=headers, content_type="application/json")

    async def _answer(self, request: web.BaseRequest) -> tuple[int, Any, dict[str, str]]:
        path = request.path.rstrip("/") or "/"
        if (request.method, path) == ("POST", tree.SESSIONS):
            return await self._log_in(request)
        if path not in OPEN:
            await self._access.authenticate(request.headers)
        if path.startswith(f"{tree.SESSIONS}/") or path in (tree.SESSIONS, tree.SESSION_SERVICE):
            return self._session(request.method, path)
        if request.method not in ("GET", "HEAD"):
            raise RedfishError("OperationNotAllowed", headers={"Allow": "GET, HEAD"})
        if path == "/redfish":
            return 200, {"v1": f"{tree.V1}/"}, {}
        found = tree.resources(self._unit).get(path)
        if found is None:
            raise RedfishError("ResourceMissingAtURI", path)
        return 200, found, {}

    async def _log_in(self, request: web.BaseRequest) -> tuple[int, Any, dict[str, str]]:
        try:
            given = json.loads(await request.text())
            name, password = str(given["UserName"]), str(given["Password"])
        except (ValueError, KeyError, TypeError) as error:
            raise RedfishError("MalformedJSON") from error
        made = await self._access.login(name, password)
        path = f"{tree.SESSIONS}/{made.id}"
        return 201, _described(made), {"X-Auth-Token": made.token, "Location": path}

    def _session(self, method: str, path: str) -> tuple[int, Any, dict[str, str]]:
        standing = {f"{tree.SESSIONS}/{s.id}": s for s in self._access.sessions()}
        if path == tree.SESSION_SERVICE:
            return 200, tree.resource("SessionService", path, "Session Service", Sessions=tree.at(tree.SESSIONS)), {}
        if path == tree.SESSIONS:
            return 200, tree.collection("Session", path, standing), {}
        if path not in standing:
            raise RedfishError("ResourceMissingAtURI", path)
        if method == "DELETE":
            self._access.logout(standing[path].id)
            return 204, {}, {}
        return 200, _described(standing[path]), {}


def _described(session: Session) -> dict[str, Any]:
    path = f"{tree.SESSIONS}/{session.id}"
    return {
        "@odata.type": "#Session.v1_7_1.Session",
        "@odata.id": path,
        "Id": session.id,
        "Name": "User Session",
        "UserName": session.account.name,
        "CreatedTime": timestamp(session.created),
        "SessionType": "Redfish",
    }
