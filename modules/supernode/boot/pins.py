"""Exact package versions: what is wanted (pins/<suite>.txt) and what an image got (its packages.lock).

Both are lines `package=version`, sorted; `#` starts a comment. Pins are data of the package, one file for each suite.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources

_PRIORITY = 1001  # above 1000 apt takes the version even when a newer one is to be had


def text(suite: str) -> str:
    """Return the pins of a suite as text; empty when none are kept for it."""
    path = resources.files("supernode.boot") / "pins" / f"{suite}.txt"
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def parse(lines: str) -> dict[str, str]:
    """Read `package=version` lines.

    Raises:
        ValueError: a line of another form.
    """
    found: dict[str, str] = {}
    for number, raw in enumerate(lines.splitlines(), 1):
        line = raw.split("#", 1)[0].strip()
        if not line:
            continue
        name, equals, version = line.partition("=")
        if not equals or not name.strip() or not version.strip():
            raise ValueError(f"line {number}: {line!r} is not package=version")
        found[name.strip()] = version.strip()
    return found


def format_lock(versions: Mapping[str, str]) -> str:
    """Write versions as `parse` reads them."""
    return "".join(f"{name}={versions[name]}\n" for name in sorted(versions))


def preferences(pins: Mapping[str, str]) -> str:
    """Write the apt preferences that hold a build to the pins."""
    return "\n".join(
        f"Package: {name}\nPin: version {version}\nPin-Priority: {_PRIORITY}\n"
        for name, version in sorted(pins.items())
    )


def drift(pins: Mapping[str, str], got: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return the packages that came in another version than pinned: {name: (pinned, got)}."""
    return {name: (pins[name], got[name]) for name in sorted(pins) if name in got and got[name] != pins[name]}
