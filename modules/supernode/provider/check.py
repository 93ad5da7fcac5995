"""Wrong inputs, all at once, before anything is touched. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from supernode import catalog
from supernode.clients import secrets
from supernode.provider import schema
from supernode.provider.values import UNKNOWN

Failure = tuple[str, str]  # property path, reason
_SLOT = re.compile(r"^[a-z0-9-]+u\d{2,3}$")
_DIGEST = re.compile(r"^[0-9a-f]{64}$")
_KEY_LINE = re.compile(r"^(ssh-(ed25519|rsa)|ecdsa-sha2-\S+) [A-Za-z0-9+/=]{40,}")
_MODE = re.compile(r"^0?[0-7]{3}$")
MEDIA = ("virtual-media", "uefi-http")
IDENTITIES = ("bmc_mac", "management_mac", "system_serial", "board_serial", "chassis_serial", "uuid")


_MISSING = {
    "hostKey": "is not known; run `supernode assign` with the delivery's sheet, or with the key scanned by hand"
}


def with_defaults(inputs: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Fill in what was left out; a null counts as left out."""
    return {**defaults, **{k: v for k, v in inputs.items() if v is not None}}


def machine(inputs: Mapping[str, Any]) -> list[Failure]:
    """Return everything wrong with a Machine's inputs (defaults filled in)."""
    # A quarantined slot is never contacted: what stands there need not be known.
    spared = {"identity"} if inputs.get("state") == "quarantined" else set()
    failures = [*_names(inputs, schema.MACHINE_INPUTS, schema.MACHINE_REQUIRED), *_checked(inputs, MACHINE_RULES)]
    return [(path, reason) for path, reason in failures if path not in spared]


def switch_config(inputs: Mapping[str, Any]) -> list[Failure]:
    """Return everything wrong with a SwitchConfig's inputs (defaults filled in)."""
    return [*_names(inputs, schema.SWITCH_INPUTS, schema.SWITCH_REQUIRED), *_checked(inputs, SWITCH_RULES)]


def tunnel(inputs: Mapping[str, Any]) -> list[Failure]:
    """Return everything wrong with a Tunnel's inputs (defaults filled in)."""
    return [*_names(inputs, schema.TUNNEL_INPUTS, schema.TUNNEL_REQUIRED), *_checked(inputs, TUNNEL_RULES)]


def _names(inputs: Mapping[str, Any], known: Mapping[str, Any], required: tuple[str, ...]) -> Iterator[Failure]:
    for name in required:
        if inputs.get(name) in (None, ""):
            yield name, _MISSING.get(name, "is missing")
    for name in sorted(set(inputs) - set(known)):
        if not name.startswith("__"):
            yield name, "is no input of this resource"


Rule = Callable[[Any], Iterator[Failure]]


def _checked(inputs: Mapping[str, Any], rules: Mapping[str, Rule]) -> Iterator[Failure]:
    for name, rule in rules.items():
        value = inputs.get(name)
        if value in (None, "") or value is UNKNOWN:
            continue
        for suffix, reason in rule(value):
            yield name + suffix, reason


def _matching(pattern: re.Pattern[str], what: str) -> Rule:
    def rule(value: Any) -> Iterator[Failure]:
        if not (isinstance(value, str) and pattern.match(value)):
            yield "", f"{value!r} is not {what}"

    return rule


def _one_of(*values: str) -> Rule:
    def rule(value: Any) -> Iterator[Failure]:
        if value not in values:
            yield "", f"{value!r} is none of {', '.join(values)}"

    return rule


def _address(value: Any) -> Iterator[Failure]:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        yield "", f"{value!r} is not an IP address"


def _endpoint(value: Any) -> Iterator[Failure]:
    """Accept an address, or address:port."""
    host, _, port = str(value).partition(":") if str(value).count(":") == 1 else (str(value), "", "")
    yield from _address(host)
    if port and not port.isdigit():
        yield "", f"{port!r} is not a port"


def _flag(value: Any) -> Iterator[Failure]:
    if not isinstance(value, bool):
        yield "", f"{value!r} is neither true nor false"


def _reference(value: Any) -> Iterator[Failure]:
    # The value is never repeated: it may be the password itself.
    if not (isinstance(value, str) and secrets.is_reference(value)):
        yield "", f"is not a reference to a secret; {secrets.HINT}"


def _https(value: Any) -> Iterator[Failure]:
    if not (isinstance(value, str) and value.startswith("https://")):
        yield "", f"{value!r} is not an https:// address"


def _deadline(value: Any) -> Iterator[Failure]:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value <= 86400:
        yield "", f"{value!r} is no number of seconds from 1 to 86400"


def _part(value: Mapping[str, Any], key: str, rule: Rule | None) -> Iterator[Failure]:
    inner = value.get(key)
    if inner is UNKNOWN:
        return
    if inner in (None, ""):
        yield f".{key}", "is missing"
    elif rule is not None:
        yield from ((f".{key}{suffix}", reason) for suffix, reason in rule(inner))


def _bmc(value: Any) -> Iterator[Failure]:
    known = (("address", _endpoint), ("username", None), ("password", _reference), ("media", _one_of(*MEDIA)))
    yield from _mapping(*known)(value)
    if not isinstance(value, Mapping):
        return
    if value.get("pin") not in (None, ""):
        yield from _part(value, "pin", _matching(_DIGEST, "a SHA-256 in hexadecimal"))
    if value.get("factory") not in (None, ""):
        yield from _part(value, "factory", _mapping(("username", None), ("password", _reference)))
        if str(value.get("password", "")).startswith("exec:"):
            yield ".password", "cannot take the new password that a factory's asks for; only file: and vault: can"


def _interlock(value: Any) -> Iterator[Failure]:
    if value == {}:
        return
    places = (("unit", None), ("kind", _one_of(*catalog.cdu_kinds())), ("address", _address), ("port", None))
    yield from _mapping(*places, ("minFlow", _amount), ("maxAgeS", _amount))(value)
    if not isinstance(value, Mapping):
        return
    if value.get("password") not in (None, ""):
        yield from _part(value, "password", _reference)
    reason = value.get("override", "none")
    if reason is not UNKNOWN and not str(reason).strip():
        yield ".override", "is empty: an override says why"


def _amount(value: Any) -> Iterator[Failure]:
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        yield "", f"{value!r} is no number above 0"


def _mapping(*parts: tuple[str, Rule | None]) -> Rule:
    def rule(value: Any) -> Iterator[Failure]:
        if not isinstance(value, Mapping):
            yield "", "is not an object"
            return
        for key, inner in parts:
            yield from _part(value, key, inner)

    return rule


def identity_values(identity: Mapping[str, Any]) -> dict[str, str]:
    """Return the known identities by their document names; accepts camelCase keys."""
    snake = {re.sub(r"([A-Z])", lambda m: "_" + m[1].lower(), k): v for k, v in identity.items()}
    return {k: str(snake[k]) for k in IDENTITIES if snake.get(k) and snake[k] is not UNKNOWN}


def _identity(value: Any) -> Iterator[Failure]:
    if not isinstance(value, Mapping):
        yield "", "is not an object"
    elif not identity_values(value) and UNKNOWN not in value.values():
        yield "", "names nothing to know the machine by; run `supernode assign`"


def _scalars(value: Any) -> Iterator[Failure]:
    if not isinstance(value, Mapping):
        yield "", "is not an object"
        return
    for key, inner in value.items():
        if inner is not UNKNOWN and not isinstance(inner, str | int | float | bool):
            yield f".{key}", "is neither text, number nor flag"


def _files(value: Any) -> Iterator[Failure]:
    if not isinstance(value, list):
        yield "", "is not a list"
        return
    seen: set[str] = set()
    for index, entry in enumerate(value):
        if entry is UNKNOWN:
            continue
        for suffix, reason in _FILE(entry):
            yield f"[{index}]{suffix}", reason
        path = entry.get("path") if isinstance(entry, Mapping) else None
        if isinstance(path, str):
            if path in seen:
                yield f"[{index}].path", f"{path!r} is listed twice"
            seen.add(path)


_PATH = re.compile(r"^/(?!.*(^|/)\.\.(/|$))[A-Za-z0-9._/@+-]+$")
_FILE = _mapping(("path", _matching(_PATH, "an absolute path")), ("mode", _matching(_MODE, "an octal mode")))
_SLOT_RULE = _matching(_SLOT, "a slot such as r01u05")
MACHINE_RULES: Mapping[str, Rule] = {
    "hostKey": _matching(_KEY_LINE, "a public key such as 'ssh-ed25519 AAAA…'"),
    "slot": _SLOT_RULE,
    "address": _endpoint,
    "bmc": _bmc,
    "identity": _identity,
    "state": _one_of("active", "spare", "quarantined"),
    "inService": _flag,
    "media": _mapping(("url", _https)),
    "image": _matching(_DIGEST, "a SHA-256 in hexadecimal"),
    "enrolment": _https,
    "bios": _scalars,
    "firmware": _scalars,
    "power": _one_of("On", "Off"),
    "deadlineS": _deadline,
    "sshKey": _reference,
    "strict": _flag,
    "interlock": _interlock,
}
SWITCH_RULES: Mapping[str, Rule] = {
    "slot": _SLOT_RULE,
    "address": _endpoint,
    "hostKey": _matching(_KEY_LINE, "a public key such as 'ssh-ed25519 AAAA…'"),
    "sshKey": _reference,
    "files": _files,
    "strict": _flag,
}


def _gateways(value: Any) -> Iterator[Failure]:
    if not (isinstance(value, list) and len(value) == 2):
        yield "", "a tunnel has two gateways"
        return
    for index, entry in enumerate(value):
        yield from ((f"[{index}]{suffix}", reason) for suffix, reason in _GATEWAY(entry))


_GATEWAY = _mapping(("name", None), ("address", _endpoint), ("hostKey", None), ("files", _files))
TUNNEL_RULES: Mapping[str, Rule] = {"gateways": _gateways, "sshKey": _reference, "strict": _flag}
