"""What was said between a client and a device, kept for evidence, never with a secret in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_SECRET_KEY = re.compile(r"pass(word|phrase|wd)?|token|secret|credential|private|session|key$", re.IGNORECASE)
LONGEST = 300


@dataclass(frozen=True)
class Exchange:
    """One request and its answer; status 0 when no answer came."""

    method: str
    path: str
    status: int
    seconds: float
    note: str

    def line(self) -> str:
        """Write it on one line."""
        answer = f"{self.status}" if self.status else "no answer"
        told = f"{self.method} {self.path} -> {answer} in {self.seconds:.2f} s" + (f" {self.note}" if self.note else "")
        return printable(" ".join(told.splitlines()))


def printable(text: str) -> str:
    """Write what a device said so that a terminal only shows it: an escape sequence would tell it to do more."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


def scrub(text: str, *secrets: str) -> str:
    """Blank every known secret in a text, also as JSON or Python writes it."""
    spelled = {form for secret in secrets for form in (secret, json.dumps(secret)[1:-1], repr(secret)[1:-1])}
    for form in sorted(spelled, key=len, reverse=True):  # one may be part of another
        if len(form) >= 3:
            text = text.replace(form, "***")
    return text


def masked(value: Any) -> Any:
    """Copy a JSON value with what stands under a telling key blanked."""
    if isinstance(value, Mapping):
        return {key: _mask(str(key), item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [masked(v) for v in value]
    return value


def _mask(key: str, item: Any) -> Any:
    return _blanked(item) if _SECRET_KEY.search(key) else masked(item)


def _blanked(item: Any) -> Any:
    if isinstance(item, list | tuple):
        return [_blanked(each) for each in item]
    return "***" if isinstance(item, str) and item else masked(item)


def summary(sent: Any, answered: Any, raw: str, secrets: Iterable[str]) -> str:
    """Return what is worth keeping of an exchange: the body sent, and the error answered."""
    known, parts = tuple(secrets), []
    if sent:
        parts.append(f"sent {json.dumps(masked(sent))}")
    if isinstance(answered, Mapping) and "error" in answered:
        parts.append(f"answered {json.dumps(masked(answered['error']))}")
    elif raw and not answered:
        # Scrubbed before it is cut: half of a secret is found by nobody.
        parts.append(f"answered {scrub(raw.strip(), *known)[:80]!r}")
    return scrub(" ".join(parts), *known)[:LONGEST]
