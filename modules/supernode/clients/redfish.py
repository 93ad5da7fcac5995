"""A Redfish client: one session on each BMC, patience with busy ones, and a log of what was said that holds no secret.

After DSP0266 (Redfish Specification, https://www.dmtf.org/standards/redfish): sessions with X-Auth-Token, If-Match on
changes, 503 with Retry-After. BMCs allow few sessions (8 on some) and keep one that is not deleted for half an hour:
`close` deletes it.
"""

from __future__ import annotations

import asyncio
import json
import random
import ssl
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp

from supernode.clients.exchange import Exchange, scrub, summary
from supernode.errors import CouldNotRun

Json = Mapping[str, Any]
ROOT = "/redfish/v1/"
SESSIONS = "/redfish/v1/SessionService/Sessions"
BUSY = {429, 502, 503, 504}
LOGIN_LIMIT_S = 15.0


class RedfishError(CouldNotRun):
    """The BMC answered with an error.

    Attributes:
        status: HTTP status.
        message_ids, messages: `@Message.ExtendedInfo` of the answer, without secrets.
    """

    def __init__(self, where: str, what: str, status: int, document: Any = None) -> None:
        super().__init__(where, what)
        self.status = status
        self.message_ids, self.messages = extended(document)


class Unreachable(CouldNotRun):
    """The BMC gave no answer within the time allowed, however often asked."""


class Untrusted(CouldNotRun):
    """The BMC's certificate does not verify against the site's CA."""


class Ambiguous(CouldNotRun):
    """An action was sent and no answer came: it may or may not have happened. Read back before repeating it."""


@dataclass(frozen=True)
class Answer:
    """One answer; `body` is {} when there was none."""

    status: int
    headers: Mapping[str, str]
    body: Json


@dataclass(frozen=True)
class Patience:
    """How long to try.

    Attributes:
        answer_s: for one answer.
        tries: how often a request is sent at most.
        first_s, longest_s: the first wait between two tries, which doubles, and its ceiling, also for Retry-After.
    """

    answer_s: float = 30.0
    tries: int = 6
    first_s: float = 0.5
    longest_s: float = 15.0

    def waits(self, attempt: int, retry_after: str | None) -> float:
        """Return the seconds to wait after a failed attempt (from 0).

        Spread, so that requests that failed together do not come again together.
        """
        if retry_after and retry_after.strip().isdigit():
            return min(float(retry_after), self.longest_s)
        return float(min(self.first_s * 2**attempt, self.longest_s)) * random.uniform(0.7, 1.0)  # noqa: S311 - no secret hangs on it


@dataclass
class Redfish:
    """One BMC. Use `connect`; every path is absolute (`/redfish/v1/…`)."""

    address: str
    username: str
    _password: str = field(repr=False)
    _http: aiohttp.ClientSession = field(repr=False)
    patience: Patience = field(default_factory=Patience)
    exchanges: deque[Exchange] = field(default_factory=lambda: deque(maxlen=32))
    _token: str = field(default="", repr=False)
    _session_path: str = ""
    _etags: dict[str, str] = field(default_factory=dict, repr=False)
    _gate: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)

    async def get(self, path: str) -> Json:
        """Fetch a resource.

        Raises:
            RedfishError: an error status; `status` tells which.
            Unreachable, Untrusted: no answer; a certificate that does not verify.
        """
        return (await self._ask("GET", path, None)).body

    async def find(self, path: str) -> Json | None:
        """Fetch a resource that may be absent: None on 404."""
        try:
            return await self.get(path)
        except RedfishError as error:
            if error.status == 404:
                return None
            raise

    async def members(self, path: str) -> list[Json]:
        """Fetch a collection with every member, in order, following `Members@odata.nextLink`."""
        found: list[Json] = []
        page: str | None = path
        for _ in range(64):
            if page is None:
                break
            document = await self.get(page)
            for entry in document.get("Members", ()):
                bare = set(entry) <= {"@odata.id"}
                found.append(await self.get(entry["@odata.id"]) if bare else entry)
            page = document.get("Members@odata.nextLink")
        return found

    async def patch(self, path: str, body: Json) -> Answer:
        """Change a resource; sends If-Match when the last `get` of the path brought an ETag."""
        headers = {"If-Match": self._etags[path]} if self._etags.get(path) else {}
        try:
            return await self._ask("PATCH", path, body, headers)
        except RedfishError as error:
            if error.status not in (412, 428):
                raise
        # 412: a weak ETag that is handed out and refused, or a change underneath; 428: If-Match is demanded. Once anew.
        await self.get(path)
        fresh = self._etags.get(path, "").removeprefix("W/")
        return await self._ask("PATCH", path, body, {"If-Match": fresh} if fresh else {})

    async def post(self, path: str, body: Json) -> Answer:
        """Start an action or create a member. Never repeated when it may have happened.

        Raises:
            Ambiguous: sent, but no answer came.
        """
        return await self._ask("POST", path, body)

    async def delete(self, path: str) -> None:
        """Delete a resource; one that is gone already counts as deleted."""
        try:
            await self._ask("DELETE", path, None)
        except RedfishError as error:
            if error.status != 404:
                raise

    async def close(self) -> None:
        """End the session on the BMC, trying once and briefly, and the connection."""
        try:
            await self._log_out()
        finally:
            await self._http.close()

    async def _ask(self, method: str, path: str, body: Json | None, headers: Mapping[str, str] | None = None) -> Answer:
        token = await self._log_in()
        answer = await self._patiently(method, path, body, headers or {})
        if answer.status == 401 and path != ROOT:
            await self._log_in(refused=token)
            answer = await self._patiently(method, path, body, headers or {})
        self._refuse_errors(method, path, answer)
        if method == "GET" and (etag := answer.headers.get("ETag")):
            self._etags[path] = etag
        elif method != "GET":
            self._etags.pop(path, None)
        return answer

    def _refuse_errors(self, method: str, path: str, answer: Answer) -> None:
        if answer.status >= 400:
            detail = "; ".join(extended(answer.body)[1])
            what = f"{method} {path} answers {answer.status}" + (f": {detail}" if detail else "")
            raise RedfishError(self.address, scrub(what, self._password), answer.status, answer.body)

    async def _log_in(self, *, refused: str = "") -> str:
        """Return the session's token; begins one when there is none, or when it is the one that was refused."""
        async with self._gate:
            if self._token and self._token != refused:
                return self._token
            await self._log_out()  # of a few sessions it would hold one until it lapses
            begun = time.monotonic()
            answer, lost = await self._begin_session()
            self._refuse_errors("POST", SESSIONS, answer)
            self._token = answer.headers.get("X-Auth-Token", "")
            if not self._token:
                raise RedfishError(self.address, "the session service answers without a token", answer.status)
            self._session_path = _path_of(answer.headers.get("Location") or answer.body.get("@odata.id", ""))
            if lost:
                await self._drop_lost_session(time.monotonic() - begun)
            return self._token

    async def _begin_session(self) -> tuple[Answer, bool]:
        """Ask for a session; a second time, and no more, when the answer to the first was lost, for each may make one.

        Returns:
            the answer, and whether an earlier one was lost.
        """
        body = {"UserName": self.username, "Password": self._password}
        try:
            return await self._patiently("POST", SESSIONS, body, {}), False
        except Ambiguous:
            await asyncio.sleep(self.patience.waits(0, None))
        try:
            return await self._patiently("POST", SESSIONS, body, {}), True
        except Ambiguous as error:
            what = f"no answer to two requests for a session ({error.what})"
            raise Unreachable(self.address, what, "it may hold sessions now that lapse by themselves") from error

    async def _drop_lost_session(self, within_s: float) -> None:
        """Delete the session that the lost answer told of: our account's, made no earlier than we first asked.

        Both times are the BMC's own. One that does not say when a session was made keeps it: it may be another's.
        """
        try:
            async with asyncio.timeout(self.patience.answer_s * 2):
                listed = await self._patiently("GET", SESSIONS, None, {})
                paths = [str(m.get("@odata.id", "")) for m in listed.body.get("Members", ())]
                found = {path: (await self._patiently("GET", path, None, {})).body for path in paths if path}
                for path in _lost(found, self._session_path, self.username, within_s + 1.0):
                    await self._patiently("DELETE", path, None, {})
        except (CouldNotRun, TimeoutError):
            pass  # it lapses by itself

    async def _log_out(self) -> None:
        """End the session on the BMC, trying once and briefly; it lapses by itself where that does not work."""
        try:
            if self._session_path and self._token:
                async with asyncio.timeout(5):
                    await self._send("DELETE", self._session_path, None, {})
        except (aiohttp.ClientError, TimeoutError, OSError):
            pass
        finally:
            self._session_path = self._token = ""

    async def _patiently(self, method: str, path: str, body: Json | None, headers: Mapping[str, str]) -> Answer:
        """Send until there is an answer that is not "busy"; a busy answer after the last try is returned as it is."""
        again = method != "POST"
        failure: Exception | None = None
        for attempt in range(self.patience.tries):
            retry_after = None
            try:
                answer = await self._send(method, path, body, headers)
                if answer.status not in BUSY or attempt + 1 == self.patience.tries:
                    return answer
                retry_after = answer.headers.get("Retry-After")
            except aiohttp.ClientConnectorCertificateError as error:
                what = f"its certificate does not verify: {error.certificate_error}"
                raise Untrusted(self.address, what, "is it signed by bmc.ca?") from error
            except (aiohttp.ClientConnectorError, ConnectionRefusedError) as error:
                failure = error  # nothing was sent: any method may try again
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                if not again:
                    raise Ambiguous(self.address, f"{method} {path}: no answer ({type(error).__name__})") from error
                failure = error
            if attempt + 1 < self.patience.tries:
                await asyncio.sleep(self.patience.waits(attempt, retry_after))
        what = f"{method} {path}: no answer in {self.patience.tries} tries ({_reason(failure)})"
        raise Unreachable(self.address, what) from failure

    async def _send(self, method: str, path: str, body: Json | None, headers: Mapping[str, str]) -> Answer:
        sent = {"OData-Version": "4.0", "Accept": "application/json", **headers}
        if self._token and (method, path) != ("POST", SESSIONS):
            sent["X-Auth-Token"] = self._token
        started, status, text = time.monotonic(), 0, ""
        try:
            async with self._http.request(
                method, f"https://{self.address}{path}", json=body, headers=sent, allow_redirects=False
            ) as reply:
                status, text = reply.status, await reply.text(errors="replace")
                return Answer(status, reply.headers.copy(), _document(text))
        finally:
            seconds = time.monotonic() - started
            note = summary(body, _document(text), text, secrets=(self._password, self._token))
            self.exchanges.append(Exchange(method, path, status, seconds, note))


def _lost(sessions: Mapping[str, Json], ours: str, account: str, within_s: float) -> list[str]:
    """Pick the sessions of our account that were made in the seconds up to the making of ours, by the BMC's clock."""
    made = {path: _moment(document.get("CreatedTime")) for path, document in sessions.items()}
    mine = made.get(ours)
    if mine is None:
        return []
    return [
        path
        for path, at in made.items()
        if path != ours
        and at is not None
        and timedelta(0) <= mine - at <= timedelta(seconds=within_s)
        and sessions[path].get("UserName") == account
        and sessions[path].get("ClientOriginIPAddress") == sessions[ours].get("ClientOriginIPAddress")
    ]


def _moment(text: Any) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _document(text: str) -> Json:
    try:
        document = json.loads(text) if text.strip() else {}
    except ValueError:
        return {}
    return document if isinstance(document, Mapping) else {}


def _path_of(location: str) -> str:
    """Reduce a Location header, which may be absolute, to its path."""
    if "://" in location:
        return "/" + location.split("://", 1)[1].partition("/")[2]
    return location


def _reason(error: Exception | None) -> str:
    if error is None:
        return "busy"
    return "time out" if isinstance(error, TimeoutError) else (str(error) or type(error).__name__)


def extended(document: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the message ids and the messages of a Redfish error document (DSP0266, "Error responses")."""
    error = document.get("error") if isinstance(document, Mapping) else None
    if not isinstance(error, Mapping):
        return (), ()
    entries = error.get("@Message.ExtendedInfo") or ()
    entries = [entries] if isinstance(entries, Mapping) else [e for e in entries if isinstance(e, Mapping)]
    ids = [str(e["MessageId"]) for e in entries if e.get("MessageId")] or [str(error.get("code") or "")]
    texts = [str(e["Message"]) for e in entries if e.get("Message")] or [str(error.get("message") or "")]
    return tuple(filter(None, ids)), tuple(filter(None, texts))


def tls(ca: str | None) -> ssl.SSLContext:
    """Return a verifying context for a CA given as PEM text; None means the system's own store.

    Raises:
        CouldNotRun: the text holds no certificate.
    """
    try:
        return ssl.create_default_context(cadata=ca)
    except (ssl.SSLError, ValueError) as error:
        raise CouldNotRun("ca", f"holds no usable certificate: {error}") from error


@asynccontextmanager
async def connect(
    address: str, username: str, password: str, ca: ssl.SSLContext | str | None, patience: Patience | None = None
) -> AsyncIterator[Redfish]:
    """Open a client for one BMC; the session begins with the first request and ends with the block.

    Args:
        address: where the BMC listens: host or host:port.
        username: an account with the Administrator or Operator role.
        password: the password itself, already resolved.
        ca: what its certificate must verify against: a context of `tls`, PEM text, or None for the system's store.
        patience: limits on time and tries.
    """
    patience = patience or Patience()
    context = ca if isinstance(ca, ssl.SSLContext) else await asyncio.to_thread(tls, ca)
    # A BMC serves few connections; two keep a slow answer from blocking a short one.
    connector = aiohttp.TCPConnector(ssl=context, limit=2, keepalive_timeout=30)
    limit = aiohttp.ClientTimeout(total=patience.answer_s, sock_connect=min(5.0, patience.answer_s))
    http = aiohttp.ClientSession(connector=connector, timeout=limit, trust_env=False)
    client = Redfish(address, username, password, http, patience)
    try:
        yield client
    finally:
        await asyncio.shield(client.close())
