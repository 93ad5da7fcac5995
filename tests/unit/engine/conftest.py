"""Engines made of shell scripts: what is chosen, and what is left behind, is under test; not Pulumi."""

from pathlib import Path

import pytest
from engine_scripts import VERSION, script

from supernode.engine import build
from supernode.errors import CouldNotRun


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with nothing on it: an empty cache, a PATH of the system's tools alone, and no way out."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("sh", "setpriv", "sleep", "cat", "mkdir", "cp", "dirname", "touch"):
        found = next((p for p in ("/bin", "/usr/bin") if Path(p, name).exists()), None)
        if found:
            (tools / name).symlink_to(Path(found, name))
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setenv("SUPERNODE_CACHE", str(tmp_path / "cache"))
    # Nothing answers on port 9 of this machine, so the official release is out of reach at once.
    monkeypatch.setenv("SUPERNODE_ENGINE_MIRROR", "http://127.0.0.1:9/none")

    def refused(_scratch, _pinned):
        raise CouldNotRun("pulumi", "this test reaches no registry")

    monkeypatch.setattr(build, "_from_pypi", refused)
    return tmp_path


@pytest.fixture
def put_on_path(machine, monkeypatch):
    def put(version: str, *, host: bool = True) -> Path:
        folder = machine / f"pulumi-{version}"
        script(folder / "pulumi", f"echo {version}\n")
        if host:
            script(folder / "pulumi-language-python", "exit 0\n")
        monkeypatch.setenv("PATH", f"{folder}:{machine / 'tools'}")
        return folder / "pulumi"

    return put


@pytest.fixture
def put_in_cache(machine):
    def put() -> Path:
        for name in ("pulumi", "pulumi-language-python", "pulumi-language-python-exec"):
            script(machine / "cache" / "engine" / VERSION / "bin" / name, f"echo v{VERSION}\n")
        return machine / "cache" / "engine" / VERSION / "bin" / "pulumi"

    return put


# A Go that "builds" a pulumi: it answers what build.py asks of it, and takes as long as $GO_SLEEP says.
_GO = """
case "$1 $2" in
  "env GOVERSION") echo "${GO_VERSION:-go1.99.0}" ;;
  "list -deps") echo "go: downloading example.invalid/a v1.0.0" >&2; echo a; echo b; echo c ;;
  "list -m") echo "$GO_SDK" ;;
  "build -v")
    echo $$ > "$GO_SDK/started"
    echo a >&2; echo b >&2
    sleep "${GO_SLEEP:-0}"
    if [ -n "$GO_FAIL" ]; then echo "$GO_FAIL" >&2; exit 1; fi
    while [ "$1" != -o ]; do shift; done
    printf '#!/bin/sh\\necho v0.0.0\\n' > "$2"
    echo built >> "$GO_SDK/builds"
    ;;
esac
"""


@pytest.fixture
def put_go(machine, monkeypatch):
    def put(version: str = "go1.99.0") -> Path:
        sdk = machine / "sdk"
        script(sdk / "python" / "cmd" / "pulumi-language-python-exec", "exit 0\n")
        script(machine / "go" / "go", _GO)
        monkeypatch.setenv("GO_SDK", str(sdk))
        monkeypatch.setenv("GO_VERSION", version)
        monkeypatch.setenv("PATH", f"{machine / 'go'}:{machine / 'tools'}")
        return sdk

    return put
