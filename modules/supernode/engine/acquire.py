"""Which engine to use, in a fixed order, and why that one.

1. `pulumi` on PATH, when it is new enough and has its Python language host
2. our cache
3. the official release of the pinned version, or a site's mirror of it
4. a build from the Go modules that tools/engine pins
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from supernode import packaged
from supernode.engine import build, cache, release
from supernode.errors import CouldNotRun

Progress = Callable[[str], None]

# The engine is never older than the SDK that pyproject.toml pins: an older one may not know what the SDK asks of it.
MINIMUM = (3, 272, 0)
_MODULE = re.compile(r"^\s*github\.com/pulumi/pulumi/pkg/v3 v(\d+\.\d+\.\d+)", re.M)
_VERSION = re.compile(r"v?(\d+)\.(\d+)\.(\d+)")


@dataclass(frozen=True)
class Engine:
    """An engine that can be started.

    Attributes:
        path: the `pulumi` program; its language host lies beside it or on PATH.
        version: e.g. "3.274.1".
        source: "path", "cache", "release", "mirror" or "build".
        why: one sentence: why this one and none before it in the order.
    """

    path: Path
    version: str
    source: str
    why: str


def pinned_version() -> str:
    """Return the version that tools/engine/go.mod pins, e.g. "3.274.1"."""
    text = (packaged.root() / "tools" / "engine" / "go.mod").read_text(encoding="utf-8")
    match = _MODULE.search(text)
    if match is None:
        raise CouldNotRun("tools/engine/go.mod", "requires no github.com/pulumi/pulumi/pkg/v3")
    return match[1]


def find() -> Engine | None:
    """Return an engine that is there already, on PATH or in the cache; None when one must be fetched or built."""
    engine, why_not = _on_path()
    return engine or _cached(pinned_version(), why_not)


def ensure(progress: Progress) -> Engine:
    """Return an engine, fetching or building one when there is none.

    Args:
        progress: told one line at a time what is going on.

    Raises:
        CouldNotRun: none on PATH, none to download, and no Go to build one with; says what failed at each step.
    """
    version = pinned_version()
    engine, why_not = _on_path()
    engine = engine or _cached(version, why_not)
    if engine is not None:
        return engine
    with cache.locked(version, progress):
        # Another run may have placed it while this one waited for the lock.
        return _cached(version, why_not) or _make(version, why_not, progress)


def _make(version: str, why_not: str, progress: Progress) -> Engine:
    source = "mirror" if release.mirror() else "release"
    try:
        path = cache.place(version, lambda folder: release.fetch(version, folder, progress))
    except release.ReleaseUnavailableError as error:
        progress(f"no release to download: {error}")
        path = cache.place(version, lambda folder: build.build(version, folder, progress))
        return Engine(path, version, "build", f"{why_not}; none cached; {error}; so built from tools/engine/go.mod")
    return Engine(path, version, source, f"{why_not}; none cached; so downloaded from {release.base()}")


def _cached(version: str, why_not: str) -> Engine | None:
    path = cache.placed(version)
    return None if path is None else Engine(path, version, "cache", f"{why_not}; version {version} is in the cache")


def _on_path() -> tuple[Engine | None, str]:
    found = shutil.which("pulumi")
    if found is None:
        return None, "no pulumi on PATH"
    path = Path(found)
    if path.resolve() == (cache.folder(pinned_version()) / "bin" / "pulumi").resolve():
        return None, "the pulumi on PATH is our own"
    version = _version_of(path)
    if version is None:
        return None, f"{path} does not say its version"
    text = ".".join(map(str, version))
    if version[0] != MINIMUM[0] or version < MINIMUM:
        return None, f"{path} is {text}, wanted {'.'.join(map(str, MINIMUM))} or newer"
    if not _has_language_host(path):
        return None, f"{path} has no pulumi-language-python beside it or on PATH"
    return Engine(path, text, "path", f"{path} is on PATH, new enough, and has its language host"), ""


def _has_language_host(pulumi: Path) -> bool:
    beside = pulumi.resolve().parent / "pulumi-language-python"
    return beside.is_file() or shutil.which("pulumi-language-python") is not None


def _version_of(path: Path) -> tuple[int, int, int] | None:
    environment = {**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "true"}
    try:
        result = subprocess.run(
            [path, "version"], capture_output=True, text=True, timeout=30, check=False, env=environment
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.match(result.stdout.strip()) if result.returncode == 0 else None
    return (int(match[1]), int(match[2]), int(match[3])) if match else None
