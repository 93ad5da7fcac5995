"""One run at a time for each environment."""

import os
import subprocess
import sys

import pytest

from supernode.bringup import lock
from supernode.errors import CouldNotRun

HOLD = "import sys; from pathlib import Path; from supernode.bringup import lock\n"
HOLD += "with lock.held(Path(sys.argv[1]), 'x'): print('held', flush=True); sys.stdin.read()"


def refused(path, by):
    with pytest.raises(CouldNotRun, match=by), lock.held(path, "environment lab"):
        pass


def test_a_second_run_is_refused_and_told_who_runs(tmp_path):
    with lock.held(tmp_path / "run.lock", "environment lab"):
        refused(tmp_path / "run.lock", f"process {os.getpid()} on")


def test_the_lock_goes_with_its_process(tmp_path):
    argv = [sys.executable, "-c", HOLD, tmp_path / "run.lock"]
    other = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert other.stdout.readline() == b"held\n"
    refused(tmp_path / "run.lock", f"process {other.pid}")
    other.kill()
    other.wait()
    with lock.held(tmp_path / "run.lock", "environment lab"):
        pass
