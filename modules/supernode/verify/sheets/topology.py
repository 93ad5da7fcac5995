"""Reads the `.topo` file of ibdiagnet 2 and UFM: a block for each switch, a line for each of its cables."""

from __future__ import annotations

import re

from supernode.verify.sheets.rows import Row, Unreadable

_BLOCK = re.compile(r"(?P<kind>\S+)\s+(?P<name>\S+)")
_CABLE = re.compile(r"(?P<port>\S+)\s+-(?:\d+x)?-?[\w.]*->\s+(?P<kind>\S+)\s+(?P<name>\S+)\s+(?P<far>\S+)")


def is_topo(text: str) -> bool:
    """Tell a .topo file by its arrows."""
    return any(_CABLE.fullmatch(line.strip()) for line in text.splitlines()[:200])


def read(text: str) -> list[Row]:
    """Return the cables, each once: that between two switches stands under both.

    Raises:
        Unreadable: a line is neither the head of a block nor a cable of one.
    """
    lines: dict[tuple[tuple[str, str], ...], list[int]] = {}
    ends: dict[tuple[tuple[str, str], ...], tuple[tuple[str, str], tuple[str, str]]] = {}
    problems: list[tuple[int, str]] = []
    switch = ""
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.split("#")[0].strip()
        cable, block = _CABLE.fullmatch(line), _BLOCK.fullmatch(line)
        if cable is not None and switch:
            here, there = (switch, cable["port"]), (cable["name"], cable["far"])
            key = tuple(sorted((here, there)))
            lines.setdefault(key, []).append(number)
            ends.setdefault(key, (there, here))
        elif block is not None:
            switch = block["name"]
        elif line:
            problems.append((number, f"{line!r} is neither a device nor a cable of one"))
    if problems:
        raise Unreadable(problems, "a .topo file has lines such as `P2 -4x-50G-> HCA_mlx5_8 gpu-001 mlx5_0/P1`")
    return [Row(tuple(lines[key]), *a, *b) for key, (a, b) in ends.items()]
