"""Who a machine is: the serial and UUID that its firmware shows, the image it runs, the name it bears."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from supernode.verify.facts.raw import Raw

COMMANDS = {"hostname": ("hostname",)}
FILES = {
    "serial": "/sys/class/dmi/id/product_serial",
    "uuid": "/sys/class/dmi/id/product_uuid",
    "image": "/etc/supernode/image",
}

_PLACEHOLDERS = frozenset({
    "", "none", "n/a", "default string", "not specified", "to be filled by o.e.m.", "system serial number",
    "0123456789", "00000000-0000-0000-0000-000000000000", "03000200-0400-0500-0006-000700080009",
    "ffffffff-ffff-ffff-ffff-ffffffffffff",
})  # fmt: skip


@dataclass(frozen=True)
class Identity:
    """An empty string is *not seen*: no file, no right to read it, or a vendor's placeholder."""

    hostname: str
    serial: str = ""
    uuid: str = ""
    image: str = ""


def parse(raw: Mapping[str, Raw]) -> Identity:
    """Read the four sources; a value that vendors ship as a placeholder counts as not seen."""
    return Identity(
        _value(raw, "hostname").split(".")[0], _value(raw, "serial"), _value(raw, "uuid").lower(), _image(raw)
    )


def _value(raw: Mapping[str, Raw], key: str) -> str:
    row = raw.get(key)
    text = row.out.strip() if row is not None and row.rc == 0 else ""
    return "" if text.lower() in _PLACEHOLDERS else text


def _image(raw: Mapping[str, Raw]) -> str:
    """Return the first word: the digest, whatever the file says after it."""
    words = _value(raw, "image").split()
    return words[0] if words else ""
