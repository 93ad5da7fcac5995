"""A Redfish tree without secrets, for the disk: passwords, tokens, keys, licences, sessions.

What a BMC shows by GET should hold none; some do all the same, and in vendors' own parts (`Oem`) anything may lie. Too
much is blanked rather than too little, for what is blanked is seldom what a client reads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from supernode.bringup.survey.observed import Tree

BLANK = "***"
_TELLING = re.compile(
    r"pass(word|phrase|wd|code)?|pwd|secret|token|credential|private|cookie|community|licen[cs]e(key|string|text)?$"
    r"|psk|pin$|key$|keys$|keystring|hash|salt|otp|challenge|signature$|sessionid|bearer|authorization",
    re.IGNORECASE,
)
# Rules about secrets, which hold none and which a client reads.
_RULE = re.compile(
    r"(length|(?<!ac)count|expiration|threshold|duration|minimum|maximum|policy|required|enabled|supported|history"
    r"|algorithm|type|set|registry|slots?|schema)$|@",
    re.IGNORECASE,
)
_NAMES = ("Name", "AttributeName", "Key", "Id", "MemberId")
_VALUES = ("Value", "CurrentValue", "DefaultValue", "Data", "Content")
_SSH_KEY = re.compile(r"(ssh-(?:ed25519|rsa|dss)|ecdsa-sha2-\S+) [A-Za-z0-9+/=]{16,}")
_PRIVATE = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|$)", re.DOTALL)
_USERINFO = re.compile(r"(\b[a-z][a-z0-9+.-]*://)[^/@\s]*@", re.IGNORECASE)
_QUERY = re.compile(r"\?[A-Za-z0-9_.~-]+=[^\s#\"]*")  # also of a name alone; OData's own begin with a $
_SCHEMED = re.compile(r"\b(Basic|Bearer) [A-Za-z0-9+/=._-]{8,}")
_SHORTEST = 3
_PASSING = ("/Sessions", "/Entries", "/Tasks")


def tree(found: Tree, secrets: Sequence[str] = ()) -> dict[str, Any]:
    """Return a tree without secrets.

    Args:
        found: as read.
        secrets: what is known to be one, wherever it stands.
    """
    kept = {p: d for p, d in found.items() if not any(f"{name}/" in p for name in _PASSING)}
    known = sorted((s for s in secrets if len(s) >= _SHORTEST), key=len, reverse=True)
    return {path: _passing(path, _clean(document, known)) for path, document in kept.items()}


def _passing(path: str, document: Any) -> Any:
    """Empty a list of what comes and goes, which free text may lie in; how many there are stays."""
    return (
        {**document, "Members": []} if path.partition("?")[0].endswith(_PASSING) and "Members" in document else document
    )


def _clean(value: Any, secrets: Sequence[str]) -> Any:
    if isinstance(value, Mapping):
        hidden = _hidden(value)
        return {key: _item(str(key), item, secrets, hidden) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item, secrets) for item in value]
    return _text(value, secrets) if isinstance(value, str) else value


def _hidden(document: Mapping[str, Any]) -> frozenset[str]:
    """Return the properties that hold a secret because another one of the same object says so."""
    says = " ".join(str(document[name]) for name in _NAMES if isinstance(document.get(name), str))
    telling = document.get("Type") == "Password" or any(_secret(word) for word in says.split())
    return frozenset(_VALUES) if telling else frozenset()


def _item(key: str, item: Any, secrets: Sequence[str], hidden: frozenset[str]) -> Any:
    if key in hidden or _secret(key):
        return _blank(item, secrets)
    return _clean(item, secrets)


def _secret(key: str) -> bool:
    return _TELLING.search(key) is not None and _RULE.search(key) is None


def _blank(item: Any, secrets: Sequence[str]) -> Any:
    """Blank what a telling name stands for; empty, true, false and links to other resources say nothing."""
    if isinstance(item, Mapping):
        return {k: v if k.startswith("@odata.") else _blank(v, secrets) for k, v in item.items()}
    if isinstance(item, list | tuple):
        return [_blank(entry, secrets) for entry in item]
    return item if item in ("", None) or isinstance(item, bool) else BLANK


def _text(text: str, secrets: Sequence[str]) -> str:
    for secret in secrets:
        text = text.replace(secret, BLANK)
    text = _PRIVATE.sub(BLANK, text)
    text = _SSH_KEY.sub(rf"\1 {BLANK}", text)
    text = _SCHEMED.sub(rf"\1 {BLANK}", text)
    return _QUERY.sub(f"?{BLANK}", _USERINFO.sub(rf"\1{BLANK}@", text))
