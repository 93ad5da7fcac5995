"""A saved Redfish tree, served again: what one real BMC says, for who writes a client. It only answers GET and HEAD.

The tree is in the layout of the DMTF's mockups (DSP2043): the resource at /redfish/v1/Systems/1 is the file
redfish/v1/Systems/1/index.json. `supernode survey BMC --save DIR` writes one, without secrets.
"""

from __future__ import annotations

import base64
import hmac
import json
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from aiohttp import web

from supernode.errors import WrongInput
from supernode.lab.bmc.messages import RedfishError

Tree = Mapping[str, Any]
OPEN = {"/redfish", "/redfish/v1"}  # what anyone may read (DSP0266, "Authentication requirements")
INDEX = "index.json"
READS = ("GET", "HEAD")


def read(folder: Path) -> Tree:
    """Read a saved tree: path of the resource -> its document.

    Raises:
        WrongInput: there is none, or a file of it is no JSON.
    """
    found = {}
    for file in sorted((folder / "redfish").rglob(INDEX)):
        path = "/" + file.parent.relative_to(folder).as_posix()
        try:
            found[path] = json.loads(file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise WrongInput(str(file), f"is no JSON: {error}") from error
    if "/redfish/v1" not in found:
        hint = "`supernode survey BMC --save DIR` writes one"
        raise WrongInput(str(folder), "holds no saved Redfish tree (redfish/v1/index.json)", hint)
    return found


class Replay:
    """Answers from a tree.

    Args:
        tree: from `read`.
        username, password: what a client has to log in with, by HTTP Basic: a session would have to be made.
    """

    def __init__(self, tree: Tree, username: str, password: str) -> None:
        self._tree = {"/redfish": {"v1": "/redfish/v1/"}, **tree}
        self._login = f"Basic {base64.b64encode(f'{username}:{password}'.encode()).decode()}"

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        path = unquote(request.path_qs).rstrip("/")  # a page of a collection is kept under its whole address
        try:
            body, status, headers = self._answer(request, path), 200, {"Allow": ", ".join(READS)}
        except RedfishError as error:
            body, status, headers = error.document, error.status, error.headers
        text = json.dumps(body)
        response = web.Response(status=status, headers={"OData-Version": "4.0", **headers})
        response.content_type = "application/json"
        if request.method == "HEAD":
            response.headers["Content-Length"] = str(len(text.encode()))
        else:
            response.text = text
        return response

    def _answer(self, request: web.BaseRequest, path: str) -> Any:
        given = request.headers.get("Authorization", "")
        if path not in OPEN and not hmac.compare_digest(given.encode(), self._login.encode()):
            raise RedfishError("NoValidSession")
        if request.method not in READS:
            # An action is not forbidden here, it is not there: 501. A resource is, and only to be read: 405.
            if "/Actions/" in path:
                raise RedfishError("ActionNotSupported", path.rpartition("/")[2], status=501)
            raise RedfishError("OperationNotAllowed", headers={"Allow": ", ".join(READS)})
        if path not in self._tree:
            raise RedfishError("ResourceMissingAtURI", path)
        return self._tree[path]


async def serve(replay: Replay, address: str, port: int, context: ssl.SSLContext) -> tuple[web.ServerRunner, int]:
    """Listen; return what ends it, and the port."""
    runner = web.ServerRunner(web.Server(replay.handle, access_log=None), shutdown_timeout=0.5)
    await runner.setup()
    site = web.TCPSite(runner, address, port, ssl_context=context)
    await site.start()
    return runner, int(runner.addresses[0][1])
