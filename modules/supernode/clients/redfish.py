"""A Redfish client: one session on each BMC, patience with busy ones, and a log of what was said that holds no secret.

After DSP0266 (Redfish Specification, https://www.dmtf.org/standards/redfish): sessions with X-Auth-Token, If-Match on
changes, 503 with Retry-After. BMCs allow few sessions (8 on some) and keep one that is not deleted for half an hour:
`close` deletes it.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from supernode.clients import lost_session, trust
from supernode.clients.answer import (
    BUSY,
    CHANGE_REQUIRED,
    MISSHAPEN,
    SESSIONS_TAKEN,
    Answer,
    Json,
    RedfishError,
    document,
    extended,
)
from supernode.clients.exchange import Exchange, scrub, summary
from supernode.clients.patience import Ambiguous, LookOnly, Patience, Unreachable
from supernode.clients.tries import Tries, digest, judge
from supernode.clients.trust import Trust, Untrusted, fingerprint, tls
from supernode.errors import CouldNotRun

__all__ = [
    "Ambiguous",
    "Answer",
    "Json",
    "LookOnly",
    "Patience",
    "Redfish",
    "RedfishError",
    "Unreachable",
    "Untrusted",
    "connect",
    "extended",
    "fingerprint",
    "tls",
]

ROOT = "/redfish/v1/"
OPEN = {"/redfish", "/redfish/v1", "/redfish/v1/odata", "/redfish/v1/$metadata"}  # to everyone, says DSP0266
SESSIONS = "/redfish/v1/SessionService/Sessions"
LOGIN_LIMIT_S = 15.0
MOST_PAGES, MOST_MEMBERS, MEMBERS_LIMIT = 64, 4096, 64 << 20  # of one collection, the last in bytes
ANSWER_LIMIT = 16 << 20  # bytes; the largest real ones, registries of BIOS attributes, are a few MiB


@dataclass
class Redfish:
    """One BMC. Use `connect`; every path is absolute (`/redfish/v1/…`).

    Attributes:
        look: only reads, by HTTP Basic, so that not even a session is made; anything else is refused before it is sent.
        tries: how many logins were sent in vain; shared by all clients of one controller.
        received, most: bytes of all answers, and how many there may be; 0 where there is no end to them.
        account: path of our own account once the BMC said that its password must be changed before anything else.
    """

    address: str
    username: str
    _password: str = field(repr=False)
    _http: aiohttp.ClientSession = field(repr=False)
    _trust: Trust = field(repr=False)
    patience: Patience = field(default_factory=Patience)
    look: bool = False
    tries: Tries = field(default_factory=Tries, repr=False)
    account: str = ""
    received: int = 0
    most: int = 0
    exchanges: deque[Exchange] = field(default_factory=lambda: deque(maxlen=32))
    _basic: bool = False
    _concealed: set[str] = field(default_factory=set, repr=False)
    _token: str = field(default="", repr=False)
    _session_path: str = ""
    _etags: dict[str, str] = field(default_factory=dict, repr=False)
    _gate: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)
    _proof: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)

    async def get(self, path: str) -> Json:
        """Fetch a resource.

        Raises:
            RedfishError: an error status; `status` tells which.
            Unreachable, Untrusted: no answer; a certificate that is not as it should be.
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
        """Fetch a collection with every member, in order, following `Members@odata.nextLink`.

        Raises:
            CouldNotRun: it has no end, or none within bounds: a part of it would pass for the whole.
        """
        found: list[Json] = []
        page, pages, begun = path, set[str](), self.received
        while page:
            if page in pages or len(pages) == MOST_PAGES:
                raise CouldNotRun(self.address, f"{path} has no end: {len(pages)} pages, and then {page[:80]}")
            pages.add(page)
            document = await self.get(page)
            for entry in document.get("Members", ()):
                if len(found) == MOST_MEMBERS or self.received - begun > MEMBERS_LIMIT:
                    raise CouldNotRun(self.address, f"{path} has too many members: given up after {len(found)}")
                bare = set(entry) <= {"@odata.id"}
                found.append(await self.get(entry["@odata.id"]) if bare else entry)
            page = str(document.get("Members@odata.nextLink") or "")
        return found

    async def become(self, username: str, password: str) -> None:
        """Speak as this account from now on; the session of the one before is ended. Nothing else is sent yet."""
        async with self._gate:
            await self._log_out()
            self.username, self._password, self.account = username, password, ""
            self._basic = self.look
            self.conceal(password)

    async def sign_in(self) -> None:
        """Have the BMC accept the password, once: begin the session or, without one, ask for what only accounts see.

        Raises:
            RedfishError: status 401 is a password that it refuses.
        """
        await self._log_in()
        if self._basic:
            answer = await self._patiently("GET", SESSIONS, None, {})
            if not answer.says(CHANGE_REQUIRED):
                self._refuse_errors("GET", SESSIONS, answer)

    def conceal(self, secret: str) -> None:
        """Keep a secret out of everything this client says, whoever says it first."""
        if secret:
            self._concealed |= {secret, _basic(self.username, secret).partition(" ")[2]}

    async def patch(self, path: str, body: Json, *, once: bool = False) -> Answer:
        """Change a resource; sends If-Match when the last `get` of the path brought an ETag.

        Args:
            path: the resource.
            body: what to change.
            once: where no answer came, or 401, it is not sent again.

        Raises:
            Ambiguous: sent once, and no answer came.
        """
        headers = {"If-Match": self._etags[path]} if self._etags.get(path) else {}
        try:
            return await self._ask("PATCH", path, body, headers, once=once)
        except RedfishError as error:
            if error.status not in (412, 428):
                raise
        # 412: a weak ETag that is handed out and refused, or a change underneath; 428: If-Match is demanded. Once anew.
        await self.get(path)
        fresh = self._etags.get(path, "").removeprefix("W/")
        return await self._ask("PATCH", path, body, {"If-Match": fresh} if fresh else {}, once=once)

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

    async def _ask(
        self, method: str, path: str, body: Json | None, headers: Mapping[str, str] | None = None, *, once: bool = False
    ) -> Answer:
        token = await self._log_in()
        answer = await self._patiently(method, path, body, headers or {}, once=once)
        if answer.status == 401 and path != ROOT and not (self._basic or once):
            await self._log_in(refused=token)
            answer = await self._patiently(method, path, body, headers or {})
        self._refuse_errors(method, path, answer)
        if method == "GET" and (etag := answer.headers.get("ETag")):
            self._etags[path] = etag
        elif method != "GET":
            self._etags.pop(path, None)
        return answer

    def _refuse_errors(self, method: str, path: str, answer: Answer) -> None:
        if answer.status >= 300:  # where a redirect leads is not asked: it would be another's word for our request
            detail = "; ".join(extended(answer.body)[1]) or ("redirects are not followed" * (answer.status < 400))
            what = f"{method} {path} answers {answer.status}" + (f": {detail}" if detail else "")
            error = RedfishError(self.address, scrub(what, *self._concealed), answer.status, answer.body)
            error.messages = tuple(scrub(text, *self._concealed) for text in error.messages)
            raise error

    @property
    def _key(self) -> str:
        return digest(self.username, self._password)

    def _refuse_one_more(self) -> None:
        if not self.tries.may(self._key):
            what = "the password was refused before, or went unanswered, and is not sent again"
            raise RedfishError(self.address, what, 401)

    async def _log_in(self, *, refused: str = "") -> str:
        """Return the session's token; begins one when there is none, or when it is the one that was refused.

        Without a session ("" is returned then) each request carries the password: a client that only looks, and one
        whose BMC has none free. Those that are taken are others', and not ours to delete.
        """
        async with self._gate:
            if self._basic or (self._token and self._token != refused):
                return self._token
            await self._log_out()  # of a few sessions it would hold one until it lapses
            begun = time.monotonic()
            answer, lost = await self._begin_session()
            if answer.status >= 400 and answer.says((*SESSIONS_TAKEN, *CHANGE_REQUIRED)):
                self._do_without(answer)
                return ""
            self._refuse_errors("POST", SESSIONS, answer)
            self._token = answer.headers.get("X-Auth-Token", "")
            if not self._token:
                raise RedfishError(self.address, "the session service answers without a token", answer.status)
            self._session_path = _path_of(answer.headers.get("Location") or answer.body.get("@odata.id", ""))
            if lost:
                await self._drop_lost_session(time.monotonic() - begun)
            return self._token

    def _do_without(self, answer: Answer) -> None:
        self._basic = True
        why = "every session is taken" if answer.says(SESSIONS_TAKEN) else "no session before the password is changed"
        note = f"{why}: Basic authentication from here on"
        self.exchanges.append(Exchange("POST", SESSIONS, answer.status, 0.0, note))

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
        if not self.tries.may(self._key):
            raise Unreachable(self.address, "no answer to a request for a session, and one more might lock the account")
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
                for path in lost_session.candidates(found, self._session_path, self.username, within_s + 1.0):
                    await self._patiently("DELETE", path, None, {})
        except (CouldNotRun, TimeoutError, *MISSHAPEN):
            pass  # it lapses by itself

    async def _log_out(self) -> None:
        """End the session on the BMC, trying once and briefly; it lapses by itself where that does not work."""
        try:
            if self._session_path and self._token:
                async with asyncio.timeout(5):
                    await self._send("DELETE", self._session_path, None, {})
        except (CouldNotRun, aiohttp.ClientError, TimeoutError, OSError, *MISSHAPEN):
            pass
        finally:
            self._session_path = self._token = ""

    async def _patiently(
        self, method: str, path: str, body: Json | None, headers: Mapping[str, str], *, once: bool = False
    ) -> Answer:
        """Send until there is an answer that is not "busy"; a busy answer after the last try is returned as it is."""
        again = method != "POST" and not once
        failure: Exception | None = None
        for attempt in range(self.patience.tries):
            retry_after = None
            try:
                answer = await self._counted(method, path, body, headers)
                if answer.status not in BUSY or attempt + 1 == self.patience.tries or answer.says(SESSIONS_TAKEN):
                    return answer
                retry_after = answer.headers.get("Retry-After")
            except aiohttp.ClientConnectorCertificateError as error:
                what = f"its certificate does not verify: {error.certificate_error}"
                raise Untrusted(self.address, what, "is it signed by bmc.ca?") from error
            except aiohttp.ServerFingerprintMismatch as error:
                raise trust.changed(self.address, error) from error
            except (aiohttp.ClientConnectorError, ConnectionRefusedError) as error:
                failure = error  # nothing was sent: any method may try again
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                if self._bears_password(method, path) and not self.tries.known(self._key):
                    again = False  # it may have been refused, and a third refusal may lock the account
                if not again:
                    raise Ambiguous(self.address, f"{method} {path}: no answer ({type(error).__name__})") from error
                failure = error
            if attempt + 1 < self.patience.tries:
                await asyncio.sleep(self.patience.waits(attempt, retry_after))
        what = f"{method} {path}: no answer in {self.patience.tries} tries ({_reason(failure)})"
        raise Unreachable(self.address, what) from failure

    def _bears_password(self, method: str, path: str) -> bool:
        """Tell whether a request carries the password; what is open to all gets only one that was taken."""
        basic = self._basic and (path.rstrip("/") not in OPEN or self.tries.known(self._key))
        return basic or (method, path) == ("POST", SESSIONS)

    async def _counted(self, method: str, path: str, body: Json | None, headers: Mapping[str, str]) -> Answer:
        """Send; one that carries a password that was never taken goes alone, and is counted before it goes."""
        if not self._bears_password(method, path):
            return await self._send(method, path, body, headers)
        async with AsyncExitStack() as stack:
            if not self.tries.known(self._key):
                await stack.enter_async_context(self._proof)
            self._refuse_one_more()
            key, left = self._key, list[bool]()
            self.tries.sent(key)
            try:
                answer = await self._send(method, path, body, headers, None if self.tries.known(key) else left)
            except BaseException:
                if not left:
                    self.tries.unsent(key)
                raise
            judge(self.tries, key, answer, proves=path.rstrip("/") not in OPEN, login=method == "POST")
            return answer

    async def _send(
        self, method: str, path: str, body: Json | None, headers: Mapping[str, str], left: list[bool] | None = None
    ) -> Answer:
        if self.look and method not in ("GET", "HEAD"):
            raise LookOnly(self.address, f"{method} {path} was asked of a connection that only looks: not sent")
        if not path.startswith("/"):  # put behind the address it could name another host, and that would get our login
            raise CouldNotRun(self.address, f"it names {path[:80]!r}, which is no path of its own: not sent")
        sent = {"OData-Version": "4.0", "Accept": "application/json", **headers, **self._credentials(method, path)}
        started, status, text = time.monotonic(), 0, ""
        url = f"https://{self.address}{path}"
        how: dict[str, Any] = {"json": body, "headers": sent, "ssl": self._trust.verifying, "allow_redirects": False}
        how["trace_request_ctx"] = left
        try:
            async with self._http.request(method, url, **how) as reply:
                status, text = reply.status, await self._text(reply)
                answer = Answer(status, reply.headers.copy(), document(text))
                self.account = answer.account_to_change() or self.account
                return answer
        finally:
            seconds = time.monotonic() - started
            note = summary(body, document(text), text, secrets=(*self._concealed, self._token))
            self.exchanges.append(Exchange(method, path, status, seconds, note))

    async def _text(self, reply: aiohttp.ClientResponse) -> str:
        """Read an answer, up to a bound: a controller cannot fill the operator's memory."""
        held = bytearray()
        async for chunk in reply.content.iter_any():
            held += chunk
            self.received += len(chunk)
            if self.most and self.received > self.most:
                raise CouldNotRun(self.address, f"it answers more than {self.most >> 20} MiB in all: given up")
            if len(held) > ANSWER_LIMIT:
                raise CouldNotRun(self.address, f"an answer is longer than {ANSWER_LIMIT >> 20} MiB: given up")
        return held.decode(errors="replace")

    def _credentials(self, method: str, path: str) -> Mapping[str, str]:
        if (method, path) == ("POST", SESSIONS):
            return {}
        if self._bears_password(method, path):
            return {"Authorization": _basic(self.username, self._password)}
        return {"X-Auth-Token": self._token} if self._token else {}


def _basic(username: str, password: str) -> str:
    # By hand: hosts run this with the aiohttp of their Debian, which has no function for it (docs/decisions.md).
    return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()


async def _on_the_wire(_session: Any, context: Any, _sent: Any) -> None:
    """Note that a request leaves: from here on a password in it may have arrived.

    A connection that was closed meanwhile makes aiohttp send a GET again by itself: not where that is to be counted.
    """
    left = context.trace_request_ctx
    if left:
        raise aiohttp.ClientError("not sent again on another connection")
    if left is not None:
        left.append(True)


def _path_of(location: str) -> str:
    """Reduce a Location header, which may be absolute, to its path."""
    if "://" in location:
        return "/" + location.split("://", 1)[1].partition("/")[2]
    return location


def _reason(error: Exception | None) -> str:
    if error is None:
        return "busy"
    return "time out" if isinstance(error, TimeoutError) else (str(error) or type(error).__name__)


@asynccontextmanager
async def connect(
    address: str,
    username: str,
    password: str,
    ca: ssl.SSLContext | str | None = None,
    patience: Patience | None = None,
    *,
    pin: str = "",
    look: bool = False,
    tries: Tries | None = None,
) -> AsyncIterator[Redfish]:
    """Open a client for one BMC; the session begins with the first request and ends with the block.

    Args:
        address: where the BMC listens: host or host:port.
        username: an account with the Administrator or Operator role.
        password: the password itself, already resolved.
        ca: what its certificate must verify against: a context of `tls`, PEM text, or None where only the pin counts.
        patience: limits on time and tries.
        pin: the certificate's SHA-256 in hexadecimal: it must be exactly that one, whatever address it names; "" where
            only the CA counts. One of the two must be given, and with both, both must hold.
        look: see `Redfish`.
        tries: see `Redfish`.

    Raises:
        Untrusted: neither a CA nor a pin.
    """
    patience = patience or Patience()
    trusted = await asyncio.to_thread(trust.trust, address, ca, pin)
    # A BMC serves few connections; two keep a slow answer from blocking a short one.
    limit = aiohttp.ClientTimeout(total=patience.answer_s, sock_connect=min(5.0, patience.answer_s))
    traces = aiohttp.TraceConfig()
    traces.on_request_headers_sent.append(_on_the_wire)
    connector = trusted.connector(2)
    http = aiohttp.ClientSession(connector=connector, timeout=limit, trust_env=False, trace_configs=[traces])
    client = Redfish(address, username, password, http, trusted, patience, look, tries or Tries(), _basic=look)
    client.conceal(password)
    try:
        yield client
    finally:
        await asyncio.shield(client.close())
