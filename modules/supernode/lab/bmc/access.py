"""Who may do what: accounts with hashed passwords, roles, sessions."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from supernode.lab.bmc.hardware import Habits
from supernode.lab.bmc.messages import RedfishError
from supernode.lab.bmc.state import Account, State

ROLES: Mapping[str, tuple[str, ...]] = {
    "Administrator": ("Login", "ConfigureManager", "ConfigureUsers", "ConfigureComponents", "ConfigureSelf"),
    "Operator": ("Login", "ConfigureComponents", "ConfigureSelf"),
    "ReadOnly": ("Login", "ConfigureSelf"),
}
PASSWORD_LENGTH = (8, 64)


def hash_password(password: str) -> str:
    """Return salt and hash in hex; some 10 ms, so for a thread."""
    salt = secrets.token_bytes(16)
    return f"{salt.hex()}:{_scrypt(password, salt).hex()}"


def _scrypt(password: str, salt: bytes) -> bytes:
    return hashlib.scrypt(password.encode(), salt=salt, n=1 << 12, r=8, p=1, dklen=32)


def _matches(password: str, stored: str) -> bool:
    salt, _, digest = stored.partition(":")
    return hmac.compare_digest(_scrypt(password, bytes.fromhex(salt)).hex(), digest)


@dataclass
class Session:
    """One login; times in seconds of the monotonic clock, `created` since the epoch."""

    id: str
    account: Account
    token: str = field(repr=False)
    created: float
    used: float


class Access:
    """Accounts and sessions of one BMC; sessions are in memory and end with it, as on a real one."""

    def __init__(self, state: State, habits: Habits, clock: Callable[[], float] = time.monotonic) -> None:
        self._state, self._habits, self._clock = state, habits, clock
        self._sessions: dict[str, Session] = {}
        self._known: dict[
            bytes, str
        ] = {}  # digest of good credentials -> stored hash; spares scrypt on each Basic request
        self._key = secrets.token_bytes(32)
        self._failures: dict[str, list[float]] = {}
        self._serial = 0

    async def authenticate(self, headers: Mapping[str, str]) -> tuple[Account, Session | None]:
        """Return the account of X-Auth-Token or of Basic credentials.

        Raises:
            RedfishError: NoValidSession.
        """
        token = headers.get("X-Auth-Token")
        if token is not None:
            session = self._live().get(token)
            if session is None or not session.account.enabled:
                raise RedfishError("NoValidSession")
            session.used = self._clock()
            return session.account, session
        name, password = _basic(headers.get("Authorization", ""))
        return await self.check(name, password), None

    async def check(self, name: str, password: str) -> Account:
        """Return the account of these credentials.

        Raises:
            RedfishError: NoValidSession; also while the account is locked after too many failures.
        """
        account = next((a for a in self._state.accounts if a.name == name and a.enabled), None)
        if account is None or self.locked(name):
            raise RedfishError("NoValidSession")
        digest = hmac.digest(self._key, f"{name}\0{password}".encode(), "sha256")
        if self._known.get(digest) != account.password:
            if not await asyncio.to_thread(_matches, password, account.password):
                self._failures.setdefault(name, []).append(self._clock())
                raise RedfishError("NoValidSession")
            self._known[digest] = account.password
        self._failures.pop(name, None)
        return account

    def locked(self, name: str) -> bool:
        """Tell whether too many logins failed of late."""
        since = self._clock() - self._habits.lockout_s
        recent = [at for at in self._failures.get(name, []) if at > since]
        return 0 < self._habits.lockout_after <= len(recent)

    async def login(self, name: str, password: str) -> Session:
        """Open a session.

        Raises:
            RedfishError: NoValidSession, or SessionLimitExceeded when all are taken.
        """
        account = await self.check(name, password)
        if len(self._live()) >= self._habits.sessions:
            raise RedfishError("SessionLimitExceeded", status=self._habits.session_limit_status)
        self._serial += 1
        session = Session(str(self._serial), account, secrets.token_hex(16), time.time(), self._clock())
        self._sessions[session.token] = session
        return session

    def sessions(self) -> list[Session]:
        """Return those that stand, oldest first."""
        return list(self._live().values())

    def logout(self, session_id: str) -> bool:
        """End a session; False when there is none of that id."""
        session = next((s for s in self._live().values() if s.id == session_id), None)
        if session is not None:
            del self._sessions[session.token]
        return session is not None

    def forget(self, account: Account | None = None) -> None:
        """End all sessions, or those of one account."""
        self._sessions = {t: s for t, s in self._sessions.items() if account is not None and s.account is not account}

    async def set_password(self, account: Account, password: str) -> None:
        """Change a password; the account's sessions end, but for Basic clients that know the new one.

        Raises:
            RedfishError: too short or too long.
        """
        low, high = PASSWORD_LENGTH
        if not low <= len(password) <= high:
            # The value stays out of the message: it is a password.
            raise RedfishError("PropertyValueFormatError", "******", "Password", related=["#/Password"])
        account.password = await asyncio.to_thread(hash_password, password)
        account.change_required = False
        self.forget(account)

    def _live(self) -> dict[str, Session]:
        oldest = self._clock() - self._state.session_timeout_s
        self._sessions = {token: s for token, s in self._sessions.items() if s.used > oldest}
        return self._sessions


def _basic(header: str) -> tuple[str, str]:
    scheme, _, value = header.partition(" ")
    if scheme.lower() != "basic":
        raise RedfishError("NoValidSession")
    try:
        name, _, password = base64.b64decode(value, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise RedfishError("NoValidSession") from error
    return name, password
