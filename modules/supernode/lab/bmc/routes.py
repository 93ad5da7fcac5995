"""From method and path to a handler; the table is filled by the modules under resources/."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from supernode.lab.bmc.access import Session
from supernode.lab.bmc.state import Account

if TYPE_CHECKING:
    from supernode.lab.bmc.controller import Bmc

Body = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """One request, read and authenticated.

    Attributes:
        ids: what stood for the {} of the route.
        body: the JSON object of a POST or PATCH; empty otherwise.
        account: None on routes that are open to anyone.
    """

    method: str
    path: str
    ids: tuple[str, ...]
    body: Body
    query: Mapping[str, str]
    account: Account | None
    session: Session | None


@dataclass(frozen=True)
class Reply:
    """An answer that is not simply 200 with a body.

    Attributes:
        xml: stands in the body's place.
    """

    status: int = 204
    body: Body | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    xml: str = ""


Handler = Callable[["Bmc", Call], "Body | Reply | Awaitable[Body | Reply]"]


@dataclass(frozen=True)
class Route:
    """A handler and the privilege that it asks for; None is open to anyone."""

    handler: Handler
    privilege: str | None


@dataclass
class _Node:
    methods: dict[str, Route] = field(default_factory=dict)
    children: dict[str, _Node] = field(default_factory=dict)


class Routes:
    """A tree of path segments, in which {} stands for any one segment."""

    def __init__(self) -> None:
        self._root = _Node()

    def add(self, method: str, path: str, privilege: str | None = "Login") -> Callable[[Handler], Handler]:
        """Register the decorated handler."""

        def register(handler: Handler) -> Handler:
            node = self._root
            for segment in path.strip("/").split("/"):
                node = node.children.setdefault(segment, _Node())
            node.methods[method] = Route(handler, privilege)
            return handler

        return register

    def find(self, path: str) -> tuple[Mapping[str, Route], tuple[str, ...]]:
        """Return the methods of a path and its ids; no methods when there is no such path."""
        node, ids = self._root, []
        for segment in path.strip("/").split("/"):
            known = node.children.get(segment)
            if known is None:
                known = node.children.get("{}")
                ids.append(segment)
            if known is None:
                return {}, ()
            node = known
        return node.methods, tuple(ids)


ROUTES = Routes()


def get(path: str, privilege: str | None = "Login") -> Callable[[Handler], Handler]:
    """Register a GET handler."""
    return ROUTES.add("GET", path, privilege)


def patch(path: str, privilege: str = "ConfigureComponents") -> Callable[[Handler], Handler]:
    """Register a PATCH handler; it answers with the changed resource."""
    return ROUTES.add("PATCH", path, privilege)


def post(path: str, privilege: str | None = "ConfigureComponents") -> Callable[[Handler], Handler]:
    """Register a POST handler."""
    return ROUTES.add("POST", path, privilege)


def delete(path: str, privilege: str = "ConfigureComponents") -> Callable[[Handler], Handler]:
    """Register a DELETE handler."""
    return ROUTES.add("DELETE", path, privilege)
