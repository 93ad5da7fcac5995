"""What a Redfish service answers: a document, or an error with its messages (DSP0266, "Error responses")."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from supernode.clients.exchange import printable
from supernode.errors import CouldNotRun

Json = Mapping[str, Any]
# All sessions are taken: the Base registry's name for it and the iDRAC's. The status differs by vendor (503, 400).
SESSIONS_TAKEN = ("SessionLimitExceeded", "RAC0218")
LOGIN_REFUSED = ("UnauthorizedLoginAttempt",)  # an iLO's, with status 400; others answer 401
BUSY = {429, 502, 503, 504}
CHANGE_REQUIRED = ("PasswordChangeRequired",)
# What reading a document raises that is not shaped as its schema says: a controller may answer anything.
MISSHAPEN = (AttributeError, KeyError, TypeError, ValueError, RecursionError)


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


@dataclass(frozen=True)
class Answer:
    """One answer; `body` is {} when there was none."""

    status: int
    headers: Mapping[str, str]
    body: Json

    def says(self, keys: tuple[str, ...]) -> bool:
        """Tell whether one of its messages has one of these keys, whatever registry and version it names."""
        return any(entry.rpartition(".")[2] in keys for entry in (*extended(self.body)[0], *_noted(self.body)))

    def account_to_change(self) -> str:
        """Return the path of the account whose password must be changed first; "" where that is not what it says."""
        error = self.body.get("error")
        entries = [*messages(self.body), *(messages(error) if isinstance(error, Mapping) else ())]
        for entry in entries:
            if str(entry.get("MessageId", "")).rpartition(".")[2] in CHANGE_REQUIRED:
                return next((str(a) for a in entry.get("MessageArgs") or () if str(a).startswith("/redfish/")), "")
        return ""


def document(text: str) -> Json:
    """Read an answer's text; what is no JSON object is {}."""
    try:
        found = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, Mapping) else {}


def misshapen(error: Exception) -> str:
    """Say of one of MISSHAPEN what it means."""
    return f"it answers what is not shaped as Redfish says ({type(error).__name__}: {str(error)[:120]})"


def extended(body: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the message ids and the messages of a Redfish error document."""
    error = body.get("error") if isinstance(body, Mapping) else None
    if not isinstance(error, Mapping):
        return (), ()
    entries = messages(error)
    ids = [str(e["MessageId"]) for e in entries if e.get("MessageId")] or [str(error.get("code") or "")]
    texts = [str(e["Message"]) for e in entries if e.get("Message")] or [str(error.get("message") or "")]
    return tuple(filter(None, ids)), tuple(printable(text) for text in texts if text)


def messages(holder: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the Message objects of an error, or of a resource that comes with some; one alone may be no list."""
    entries = holder.get("@Message.ExtendedInfo") or ()
    return [entries] if isinstance(entries, Mapping) else [e for e in entries if isinstance(e, Mapping)]


def _noted(body: Json) -> list[str]:
    return [str(entry.get("MessageId", "")) for entry in messages(body)]
