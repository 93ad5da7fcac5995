"""NCCL's conf file: writing it, reading it as NCCL does, and what is wrong with one that somebody else wrote.

NCCL reads without mercy: the name is what stands before the first "=", blanks included; the value is the rest of the
line; a line whose first character is "#" is a remark, and no other; the first value of a name is the one that counts.
Values of the process's environment go before those of ~/.nccl.conf, and these before /etc/nccl.conf.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping

from supernode.design.collectives.settings import Tuning

PATH = "/etc/nccl.conf"
HEAD = "# Written by supernode from the design (`supernode tune`). Blanks count; of two values the first counts."
_WIDTH = 118
_LINE = 4095  # bytes of a line that are read; names and values have 1023 each
_WORD = 1023


def render(tuning: Tuning) -> str:
    """Write a conf file: each variable below its reason."""
    lines = [HEAD]
    for row in tuning.settings:
        lines += ["#", *(f"# {line}" for line in textwrap.wrap(row.reason, _WIDTH)), f"{row.name}={row.value}"]
    return "\n".join(lines) + "\n"


def parse(text: str, before: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables that NCCL sees, names that it will never ask for included.

    Args:
        text: a conf file.
        before: what counts before it.
    """
    found = dict(before or {})
    for line in text.split("\n"):
        if line.startswith("#"):
            continue
        name, equals, value = line.rstrip("\r").partition("=")
        if name and equals:
            found.setdefault(name[:_WORD], value[:_WORD])
    return found


def faults(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a conf file, from 1, that do not say what they seem to say."""
    seen: dict[str, int] = {}
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.rstrip("\r")
        if line.startswith("#") or not line:
            continue
        name, equals, value = line.partition("=")
        for what in _of_line(line, name, equals, value):
            yield number, what
        if name in seen and equals:
            yield number, f"{name} is there already, in line {seen[name]}, and the first counts"
        seen.setdefault(name, number)


def _of_line(line: str, name: str, equals: str, value: str) -> Iterator[str]:
    if not line.strip():
        return
    if line.lstrip().startswith("#"):
        yield "a remark begins in the first column, this is a variable"
    elif not equals:
        yield "no =, so the line is passed over"
    elif name.startswith("export "):
        yield f"sets a variable whose name is {name!r}"
    elif name != name.strip():
        yield f"sets a variable whose name is {name!r}, blanks included"
    elif value != value.strip():
        yield f"the value of {name} is {value!r}, blanks included"
    elif " #" in value:
        yield f"the value of {name} holds the remark behind it"
    elif value[:1] in ("'", '"'):
        yield f"the value of {name} holds its quotes"
    if len(line.encode()) > _LINE or len(name) > _WORD or len(value) > _WORD:
        yield "longer than what is read"
