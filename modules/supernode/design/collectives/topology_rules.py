"""What is wrong with a topology file for NCCL: what it refuses, and what it takes in silence for something slow."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

# Prefixes that NCCL knows; any other text is read as Gen3.
_SPEEDS = (
    *(f"{speed} GT/s" for speed in ("2.5", "5", "8", "16", "32")),
    *(f"{speed} GT/s PCIe" for speed in ("5.0", "8.0", "16.0", "32.0", "64.0")),
)
_NEEDED = {
    "system": ("version",),
    "cpu": ("numaid", "arch"),
    "pci": ("busid", "class", "link_speed", "link_width"),
    "gpu": ("dev", "sm"),
    "nvlink": ("count", "tclass"),
    "net": ("dev", "speed"),
}
_INSIDE = {
    "": ("system",),
    "system": ("cpu",),
    "cpu": ("pci", "nic"),
    "pci": ("pci", "gpu", "nic"),
    "nic": ("net",),
    "gpu": ("nvlink", "c2c"),
}
_ONCE = {"pci": "busid", "net": "guid"}
_LINE = re.compile(r" *<(/?)([a-z0-9]+)((?: [a-z_]+=\"[^\"<>]*\")*)(/?)>")
_WORD = re.compile(r'([a-z_]+)="([^"]*)"')
_LONGEST, _MOST = 255, 16  # characters of a text, attributes of an element


@dataclass(frozen=True)
class _Element:
    line: int
    name: str
    words: Mapping[str, str]


def faults(text: str) -> Iterator[tuple[int, str]]:
    """Yield each fault with its line, from 1."""
    above: list[str] = []
    seen: dict[tuple[str, str], int] = {}
    last = 0
    for number, line in enumerate(text.rstrip("\n").split("\n"), start=1):
        last = number
        if re.fullmatch(r" *<!--.*-->", line):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            yield number, _unreadable(line)
            return
        closing, name, words, empty = match.groups()
        if closing:
            if not above or above.pop() != name:
                yield number, f"</{name}> closes nothing that is open"
                return
            continue
        element = _Element(number, name, dict(_WORD.findall(words)))
        yield from ((number, what) for what in _of(element, above[-1] if above else "", seen))
        if not empty:
            above.append(name)
    if above:
        yield last, f"<{above[-1]}> is never closed"


def _unreadable(line: str) -> str:
    if line.startswith("<?"):
        return "NCCL refuses a prolog"
    return "NCCL refuses tabs" if "\t" in line else "not one tag on a line of its own"


def _of(element: _Element, above: str, seen: dict[tuple[str, str], int]) -> Iterator[str]:
    words, name = element.words, element.name
    if name not in _INSIDE.get(above, ()):
        yield f"<{name}> has no place in {f'<{above}>' if above else 'the file'}"
    yield from (f"<{name}> without {word}" for word in _NEEDED.get(name, ()) if not words.get(word))
    if len(words) > _MOST or any(len(value) > _LONGEST for value in words.values()):
        yield f"<{name}> has more than is read"
    yield from {"system": _system, "cpu": _cpu, "pci": _pci, "net": _net}.get(name, _nothing)(words)
    key = _ONCE.get(name, "")
    if value := words.get(key):
        first = seen.setdefault((name, value), element.line)
        if first != element.line:
            yield f"{key} {value} is there already, in line {first}: the two are taken for one device"


def _nothing(_words: Mapping[str, str]) -> Iterator[str]:
    yield from ()


def _system(words: Mapping[str, str]) -> Iterator[str]:
    if words.get("version", "1") != "1":
        yield f"version {words['version']}, and NCCL reads 1"


def _cpu(words: Mapping[str, str]) -> Iterator[str]:
    needed = ["vendor"] if words.get("arch") == "x86_64" else []
    needed += ["familyid", "modelid"] if words.get("vendor") == "GenuineIntel" else []
    yield from (f"<cpu> without {word}" for word in needed if not words.get(word))


def _pci(words: Mapping[str, str]) -> Iterator[str]:
    speed = words.get("link_speed", "")
    if speed and not speed.startswith(_SPEEDS):
        yield f'link_speed "{speed}" is none that NCCL knows, so it counts as Gen3'
    if words.get("link_width", "1") == "0":
        yield "link_width 0"


def _net(words: Mapping[str, str]) -> Iterator[str]:
    speed = words.get("speed", "")
    if speed and not re.fullmatch(r"[1-9]\d*", speed):
        yield f"speed {speed} is none, so it counts as 10 Gbit/s"
    if words.get("gdr") == "0":
        yield 'gdr="0": everything would go by way of the processor'
