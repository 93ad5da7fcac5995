"""One-time tokens and what machines reported with them, on the operator's disk.

    .supernode/<env>/serve/tokens/<host>.json    the token's hash, when it was issued and when spent
    .supernode/<env>/serve/armed/<host>          the host is about to be booted: its next medium may have a new token
    .supernode/<env>/enrolled/<host>.json        the last accepted report, and when

One boot, one token: whoever boots a machine arms it first, and the medium that is made then takes the mark away.
A token admits any number of `deploy` reports and exactly one `firstboot` report; then it is dead, also for the same
report again. A machine whose answer was lost on the way finds its own keys in what the site hands out of it.
"""

from __future__ import annotations

import enum
import hashlib
import hmac
import json
import re
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from supernode.boot import cache as store
from supernode.workspace import give, write_atomically

TOKEN_FOR_S = 24 * 3600.0
ARMED_FOR_S = 3600.0  # from filling the drive to the first read of it; a mark that nobody took away is void then
PHASES = ("deploy", "firstboot")
_STATES = ("started", "progress", "ok", "failed")
_MOST_KEYS = 8
_MOST_TEXT = 2000
_TOKEN_BYTES = 32
_HOST_KEY = re.compile(r"[a-z0-9][a-z0-9@.-]* [A-Za-z0-9+/]+={0,2}( [^\r\n]*)?")  # one line, as ssh-keygen writes it
_TOKEN = re.compile(rb"(?<![\w-])[\w-]{43}(?![\w-])")  # what token_urlsafe makes of 32 bytes


class Answer(enum.Enum):
    """What a report is answered with."""

    ACCEPTED = 204
    MALFORMED = 400
    REFUSED = 401


def arm(state: Path, host: str) -> None:
    """Let the host's next medium have a new token; to be called right before the medium is inserted.

    Args:
        state: .supernode/<env>.
        host: the designed name.
    """
    mark = _mark(state, host)
    write_atomically(mark, "", mode=0o600)
    for path in (mark.parent, mark):
        give(path, state)  # the server has to take the mark away


def armed(state: Path, host: str) -> bool:
    """Return whether the host was armed within the last ARMED_FOR_S and no medium was made since."""
    try:
        return time.time() - _mark(state, host).stat().st_mtime < ARMED_FOR_S
    except FileNotFoundError:
        return False


def disarm(state: Path, host: str) -> None:
    """Take the mark away, if there is one."""
    _mark(state, host).unlink(missing_ok=True)


def revoke(state: Path, host: str) -> None:
    """End whatever was given to a host: it is no longer armed, its reports are refused and its medium is gone.

    Whoever arms it again gives it a new token. What it reported before stays.

    Args:
        state: .supernode/<env>.
        host: the designed name.
    """
    if not (state / "serve").is_dir():
        return  # nothing was ever given to anyone
    tokens = state / "serve" / "tokens"
    with making(state, host):  # a medium that is just being made ends as well
        disarm(state, host)
        for path in (state / "serve" / "iso" / host).glob("*.iso"):
            path.unlink(missing_ok=True)
        if tokens.is_dir():
            with store.lock(tokens / f"{host}.lock"):
                (tokens / f"{host}.json").unlink(missing_ok=True)
            give(tokens / f"{host}.lock", state)


@contextmanager
def making(state: Path, host: str) -> Iterator[None]:
    """Hold what only one may do at a time: give a host a medium, or take it away."""
    path = state / "serve" / "iso" / f"{host}.lock"
    with store.lock(path):
        for made in (path.parent, path):
            give(made, state)
        yield


def _mark(state: Path, host: str) -> Path:
    return state / "serve" / "armed" / host


def issued(state: Path) -> dict[str, str]:
    """Return the host of each token by the token's hash; the tokens themselves are kept nowhere."""
    records = sorted((state / "serve" / "tokens").glob("*.json"))
    return {json.loads(path.read_text(encoding="utf-8"))["hash"]: path.stem for path in records}


def tokens_in(data: bytes, hashes: Mapping[str, str]) -> list[str]:
    """Name the hosts whose token stands in these bytes, by trying every word of a token's length."""
    found = {hashes.get(hashlib.sha256(word).hexdigest()) for word in set(_TOKEN.findall(data))}
    return [f"the token of {host}" for host in sorted(host for host in found if host)]


class Enrolment:
    """The tokens and reports of one environment.

    Args:
        state: .supernode/<env>.
    """

    def __init__(self, state: Path) -> None:
        self._tokens = state / "serve" / "tokens"
        self._enrolled = state / "enrolled"

    def issue(self, host: str) -> str:
        """Return a new token for a host; the one before is dead at once."""
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        record = {"hash": _hash(token), "issued": time.time(), "spent": None}
        self._tokens.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._lock(host):
            write_atomically(self._tokens / f"{host}.json", json.dumps(record), mode=0o600)
        return token

    def alive(self, host: str) -> bool:
        """Return whether the host's last token can still be spent."""
        record = self._token(host)
        return record is not None and record["spent"] is None and _fresh(record)

    def report(self, host: str, token: str, document: Any) -> Answer:
        """Take a report: `{"phase", "state", "detail", "host_keys", "image"}`.

        The record's host keys are those of the last completed first boot, whatever else is reported meanwhile.
        """
        if self._token(host) is None:  # before the lock, which is a file: a stranger's names leave nothing here
            return Answer.REFUSED
        with self._lock(host):
            record = self._token(host)
            if record is None or not hmac.compare_digest(record["hash"], _hash(token)):
                return Answer.REFUSED
            clean = _clean(document)
            if clean is None:
                return Answer.MALFORMED
            if record["spent"] is not None or not _fresh(record):
                return Answer.REFUSED
            # The report first: killed in between, the machine reports again and the token is spent then.
            complete = clean["phase"] == "firstboot" and clean["state"] == "ok"
            keys = clean["host_keys"] if complete else (self.read(host) or {}).get("host_keys", [])
            kept = {**clean, "host_keys": keys, "host": host, "at": time.time()}
            write_atomically(self._enrolled / f"{host}.json", json.dumps(kept, indent=2) + "\n")
            if complete:
                spent = {**record, "spent": kept["at"]}
                write_atomically(self._tokens / f"{host}.json", json.dumps(spent), mode=0o600)
            return Answer.ACCEPTED

    def read(self, host: str) -> dict[str, Any] | None:
        """Return the last accepted report, with `host` and `at` (seconds since the epoch)."""
        path = self._enrolled / f"{host}.json"
        if not path.is_file():
            return None
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return document

    def _token(self, host: str) -> dict[str, Any] | None:
        path = self._tokens / f"{host}.json"
        if not path.is_file():
            return None
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return record

    def _lock(self, host: str) -> Any:
        return store.lock(self._tokens / f"{host}.lock")


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _fresh(record: Mapping[str, Any]) -> bool:
    return time.time() - float(record["issued"]) < TOKEN_FOR_S


def _clean(document: Any) -> dict[str, Any] | None:
    """Return the known fields of a report, or None when it is none; a machine's word is bounded before it is kept."""
    if not isinstance(document, dict) or document.get("phase") not in PHASES or document.get("state") not in _STATES:
        return None
    keys = document.get("host_keys", [])
    detail, image = document.get("detail", ""), document.get("image", "")
    texts = [detail, image, *(keys if isinstance(keys, list) else [None])]
    if len(texts) > _MOST_KEYS + 2 or not all(isinstance(text, str) and len(text) <= _MOST_TEXT for text in texts):
        return None
    if not all(_HOST_KEY.fullmatch(key) for key in keys):
        return None
    if document["phase"] == "firstboot" and document["state"] == "ok" and not keys:
        return None
    return {"phase": document["phase"], "state": document["state"], "detail": detail, "host_keys": keys, "image": image}
