"""What every part of environment.yml is made of: closed, frozen documents, and the types of their values."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from supernode.units import MbitPerS, parse_rate

SCHEMES = ("file:", "vault:", "exec:")


def _rate(value: Any) -> MbitPerS:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a rate such as '400 Gbit/s'")
    return parse_rate(value)


def _reference(value: Any) -> str:
    if not isinstance(value, str) or not value.startswith(SCHEMES):
        # The value is not repeated: it may be the secret itself.
        raise ValueError("is no reference (file:, vault: or exec:), and a secret has no place in this file")
    return value


Rate = Annotated[
    MbitPerS,
    BeforeValidator(_rate),
    WithJsonSchema({"type": "string", "pattern": r"^\s*\d+(\.\d+)?\s*[kMGT]bit/s\s*$", "examples": ["400 Gbit/s"]}),
]
Reference = Annotated[
    str,
    BeforeValidator(_reference),
    WithJsonSchema({"type": "string", "pattern": "^(file|vault|exec):", "examples": ["file:secrets/bmc/{slot}"]}),
]
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$", max_length=32)]
HostName = Annotated[str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$", max_length=253)]
Plain = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9+.~:=_-]*$")]


class Document(BaseModel):
    """What every part of every document is: frozen, and closed to keys it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True, validate_default=False)


def references(document: Document) -> Iterator[str]:
    """Yield every secret's reference, by the type of its field: another text may well begin like one."""
    for name, field in type(document).model_fields.items():
        value = getattr(document, name)
        if isinstance(value, str) and any(getattr(m, "func", None) is _reference for m in field.metadata):
            yield value
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Document):
                yield from references(part)


class Route(Document):
    """What a site's router sends elsewhere than out: packets to `to` go to `via`."""

    to: IPv4Network
    via: IPv4Address


class Network(Document):
    """An address range; the gateway is the router that the site keeps on it, `routes` what that router was told."""

    cidr: IPv4Network
    gateway: IPv4Address | None = None
    routes: tuple[Route, ...] = ()
