"""What pydantic found, in the words of this project: the value, what it should be, how to mend it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network
from typing import Any

from pydantic import BaseModel

from supernode.errors import Path, Problem
from supernode.spec.mending import step, without_tags
from supernode.spec.yamltext import spell

_LIMITS = {
    "greater_than_equal": "at least {ge}",
    "greater_than": "more than {gt}",
    "less_than_equal": "at most {le}",
    "less_than": "less than {lt}",
    "string_too_long": "at most {max_length} characters",
    "too_short": "at least {min_length} entries",
    "too_long": "at most {max_length} entries",
    "literal_error": "{expected}",
    "enum": "{expected}",
}
_KINDS = {
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "string_type": "a text",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "ip_v4_address": "an IPv4 address",
    "ip_v4_network": "an IPv4 network such as 10.0.0.0/22",
}


def telling(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Leave out that a list with a wrong entry is too short: pydantic counts the right ones, which is no news."""
    wrong_inside = {row["loc"][: i + 1] for row in rows for i in range(len(row["loc"]) - 1)}
    return [row for row in rows if row["type"] != "too_short" or row["loc"] not in wrong_inside]


def problems(rows: Sequence[Mapping[str, Any]], model: type[BaseModel], document: str) -> list[Problem]:
    """Turn rows of `ValidationError.errors()` into Problems, one for each place."""
    return list({found.path: found for found in (problem(row, model, document) for row in rows)}.values())


def problem(row: Mapping[str, Any], model: type[BaseModel], document: str) -> Problem:
    """Turn one row of `ValidationError.errors()` into a Problem."""
    path = without_tags(row["loc"])
    kind = row["type"]
    if kind == "extra_forbidden":
        known = _keys(_holder(model, path[:-1]))
        return Problem(path, f"unknown key {spell(path)}", _near(str(path[-1]), known), document)
    if kind == "missing":
        return Problem(
            path, f"{spell(path)} is missing", f"add {path[-1]}: to {spell(path[:-1]) or 'the file'}", document
        )
    return Problem(path, *_value(row, spell(path)), document=document)


def _value(row: Mapping[str, Any], where: str) -> tuple[str, str | None]:
    kind, value, context = row["type"], row["input"], row.get("ctx", {})
    if kind == "value_error":
        return f"{where}: {context['error']}", _hint_of_value(where)
    if kind in _LIMITS:
        return f"{where} is {_shown(value)}, wanted: {_LIMITS[kind].format(**context)}", None
    if kind == "string_pattern_mismatch":
        return f"{where} is {_shown(value)}, which does not match {context['pattern']}", None
    if kind.startswith("ip_v4_network") and (first := _first_address(value)):
        return f"{where} is {value}, which has host bits set", f"the network is {first}"
    for prefix, wanted in _KINDS.items():
        if kind.startswith(prefix):
            hint = (
                "put quotes around it: YAML reads On, Off, Yes and No as true or false"
                if isinstance(value, bool)
                else None
            )
            return f"{where} is {_shown(value)}, wanted: {wanted}", hint
    return f"{where} is {_shown(value)}: {row['msg']}", None


def _hint_of_value(where: str) -> str | None:
    if where.endswith("password"):
        return "write file:<path>, vault:<name> or exec:<command>; the secret is read when a connection opens"
    return "write a number and a unit: kbit/s, Mbit/s, Gbit/s or Tbit/s" if "rates" in where else None


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    return "a mapping" if isinstance(value, dict) else "empty" if value is None else str(value)


def _near(key: str, known: list[str]) -> str:
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.7)
    return f"did you mean {near[0]}?" if near else f"known here: {', '.join(known)}"


def _keys(model: type[BaseModel] | None) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()] if model else []


def _first_address(value: Any) -> IPv4Network | None:
    """Return the network that an address with host bits lies in; None for what is no network at all."""
    try:
        return IPv4Network(value, strict=False)
    except (ValueError, TypeError):
        return None


def _holder(model: type[BaseModel], path: Path) -> type[BaseModel] | None:
    """Follow a path through the models' annotations to the model that holds its end."""
    found: Any = model
    for part in path:
        found, _ = step(found, part)
    return found if isinstance(found, type) and issubclass(found, BaseModel) else None
