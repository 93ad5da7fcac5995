"""The guard: what it runs is interrupted once when whoever started it dies, and otherwise left alone."""

import os
import signal
import subprocess
import sys
import time

import pytest

from supernode.engine import guard

GUARDED = [sys.executable, "-I", "-S", guard.__file__]

# Counts interrupts, and ends half a second after the first.
COUNTER = """
import signal, sys, time
from pathlib import Path
seen = 0
def count(*_):
    global seen
    seen += 1
signal.signal(signal.SIGINT, count)
Path(sys.argv[1], "ready").touch()
while not seen:
    time.sleep(0.05)
time.sleep(0.5)
Path(sys.argv[1], "seen").write_text(str(seen))
"""

# Starts the guard from one of many threads, as supernode does.
STARTER = """
import subprocess, sys, threading, time
for _ in range(16):
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
threading.Thread(target=lambda: subprocess.run(sys.argv[1:], start_new_session=True)).start()
time.sleep(60)
"""


def wait_for(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.02)


@pytest.mark.parametrize("code", [0, 3, 255])
def test_the_exit_code_is_the_commands(code):
    assert subprocess.run([*GUARDED, "sh", "-c", f"exit {code}"]).returncode == code


def test_an_interrupt_is_passed_on(tmp_path):
    process = subprocess.Popen([*GUARDED, sys.executable, "-c", COUNTER, tmp_path], start_new_session=True)
    wait_for((tmp_path / "ready").exists)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == 0
    assert (tmp_path / "seen").read_text() == "1"


def test_a_starter_with_threads_that_is_killed_outright_makes_one_interrupt(tmp_path):
    command = [sys.executable, "-c", STARTER, *GUARDED, sys.executable, "-c", COUNTER, tmp_path]
    starter = subprocess.Popen(command)
    wait_for((tmp_path / "ready").exists)
    os.kill(starter.pid, signal.SIGKILL)
    starter.wait()
    wait_for(lambda: (tmp_path / "seen").exists() and (tmp_path / "seen").read_text())
    assert (tmp_path / "seen").read_text() == "1"
