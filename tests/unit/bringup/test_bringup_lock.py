"""One at a time for each environment, over all that runs stages or writes documents."""

import contextlib
import getpass
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from supernode.bringup import lock
from supernode.engine import running
from supernode.errors import CouldNotRun
from supernode.workspace import EnvironmentFolder

HOLD = (
    "import subprocess, sys; from pathlib import Path; from supernode.bringup import lock\n"
    "from supernode.workspace import EnvironmentFolder\n"
    "root = Path(sys.argv[1])\n"
    "with lock.held(EnvironmentFolder('lab', root, root), 'bringup'):\n"
    "    child = subprocess.Popen(['sleep', '60'])\n"
    "    print(child.pid, flush=True)\n"
    "    sys.stdin.read()"
)


@pytest.fixture
def folder(tmp_path):
    return EnvironmentFolder("lab", tmp_path, tmp_path)


def refused(folder):
    with pytest.raises(CouldNotRun) as error, lock.held(folder, "destroy"):
        pass
    return error.value


def test_a_second_one_is_refused_and_told_who_when_and_for_what(folder):
    with lock.held(folder, "bringup"):
        said = refused(folder)
    assert said.where == "environment lab"
    assert f"{getpass.getuser()} on {socket.gethostname()} (`supernode bringup`, process {os.getpid()}" in said.what
    assert "supernode runs lab" in said.hint


def test_the_lock_goes_with_its_process_and_not_with_what_it_started(folder):
    argv = [sys.executable, "-c", HOLD, folder.root]
    other = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child = int(other.stdout.readline())
    try:
        assert f"process {other.pid}" in refused(folder).what
        other.kill()
        other.wait()
        os.kill(child, 0)  # it lives on, and holds nothing
        with lock.held(folder, "bringup"):
            pass
    finally:
        os.kill(child, 9)


def test_what_a_killed_run_left_working_is_waited_for_and_named(folder):
    command = running.guarded(["sh", "-c", "sleep 1"], running.new(running.place(folder)), "engine of stack lab")
    left = subprocess.Popen(command, env={"SUPERNODE_RUN": "run-1"})
    wait_for(lambda: running.records(running.place(folder)))
    told = []
    with lock.occupied(folder, "bringup", told.append, limit_s=30):
        assert not running.records(running.place(folder))
    left.wait()
    assert len(told) == 1
    assert told[0].startswith("waiting for the engine of stack lab of run run-1 (process ")


def test_the_wait_has_an_end(folder):
    command = running.guarded(["sleep", "60"], running.new(running.place(folder)), "engine of stack lab")
    left = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        wait_for(lambda: running.records(running.place(folder)))
        with (
            pytest.raises(CouldNotRun, match="still works after 0 s"),
            lock.occupied(folder, "bringup", lambda _: None, limit_s=0.1),
        ):
            pass
    finally:
        left.terminate()
        left.wait()


KEEPER = 4711


@pytest.fixture
def kept(tmp_path):
    """An environment of somebody's, where root keeps one password for itself and an older run left a file."""
    place = EnvironmentFolder("lab", tmp_path / "inventories" / "lab", tmp_path)
    for path in (place.folder / "root-only", place.state / "old", tmp_path / "stacks" / "Pulumi.lab.yaml"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    os.chown(place.folder, KEEPER, KEEPER)
    return place


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@as_root
@pytest.mark.parametrize("fails", [False, True])
def test_what_root_writes_while_it_holds_an_environment_is_its_keepers_afterwards(kept, monkeypatch, fails):
    monkeypatch.setattr(lock, "_CLOCK_S", 0.1)
    time.sleep(0.3)
    written = [kept.state / "outputs.json", kept.runs / "r1" / "run.json", kept.root / ".supernode" / "passphrase"]
    with contextlib.suppress(KeyError), lock.held(kept, "bringup"):
        for path in written:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        (kept.root / "stacks" / "Pulumi.lab.yaml").write_text("config: {}")
        (kept.folder / "link").symlink_to("/etc/passwd")
        if fails:
            raise KeyError
    touched = [*written, kept.runs, kept.runs / "r1", kept.state / "run.lock", kept.root / "stacks" / "Pulumi.lab.yaml"]
    assert {path.stat().st_uid for path in touched} == {KEEPER}
    assert (kept.folder / "link").lstat().st_uid == KEEPER
    left = [kept.folder / "root-only", kept.state / "old", Path("/etc/passwd")]
    assert {path.stat().st_uid for path in left} == {0}


@as_root
def test_an_environment_of_roots_own_stays_so(folder):
    with lock.held(folder, "bringup"):
        pass
    assert (folder.state / "run.lock").stat().st_uid == 0


def test_an_environment_that_is_not_ours_to_write_in_says_how_to_get_it_back(folder, monkeypatch):
    def denied(path, *_, **__):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(CouldNotRun) as error, lock.held(folder, "verify"):
        pass
    assert error.value.where == str(folder.state / "run.lock")
    assert error.value.hint.endswith(
        f"sudo chown -R {os.getuid()}:{os.getgid()} {folder.root / '.supernode'} {folder.folder}"
    )


def wait_for(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.02)
