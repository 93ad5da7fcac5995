"""The guard: what it runs is interrupted once when whoever started it dies, and leaves no process behind."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from supernode.engine import guard, running

GUARDED = [sys.executable, "-I", "-S", guard.__file__, "--"]

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


def test_a_command_started_in_the_background_hears_the_interrupt_too(tmp_path):
    ignoring = lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)  # noqa: E731 - as a shell does for `command &`
    script = "touch $0/ready; exec sleep 60"
    process = subprocess.Popen([*GUARDED, "sh", "-c", script, tmp_path], start_new_session=True, preexec_fn=ignoring)
    wait_for((tmp_path / "ready").exists)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == 128 + signal.SIGINT


# Leaves two processes behind, one of them out of the session and without its parent, and ignores all it is told.
LEAVER = """
import os, signal, subprocess, sys, time
from pathlib import Path
stay = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
subprocess.Popen([sys.executable, "-c", stay])
orphan = "import subprocess; subprocess.Popen(['sleep', '61'])"
subprocess.run([sys.executable, "-c", orphan], start_new_session=True)
Path(sys.argv[1], "ready").touch()
if sys.argv[2] == "stays":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    time.sleep(60)
"""


def marked(folder):
    mark = f"LEFT_BY={folder}".encode()
    found = set()
    for entry in guard.Path("/proc").glob("[0-9]*"):
        try:
            if mark in (entry / "environ").read_bytes() and guard.started(int(entry.name)):
                found.add(int(entry.name))
        except OSError:
            continue
    return found


def leave(folder, *options, how="ends"):
    words = [*GUARDED[:-1], *options, "--", sys.executable, "-c", LEAVER, folder, how]
    return subprocess.Popen(words, env={**os.environ, "LEFT_BY": str(folder)}, start_new_session=True)


def test_what_the_command_leaves_is_ended(tmp_path):
    assert leave(tmp_path, "--patience", "0").wait(timeout=30) == 0
    assert marked(tmp_path) == set()


def test_a_command_that_does_not_hear_is_killed_after_its_grace(tmp_path):
    process = leave(tmp_path, "--grace", "0.3", "--patience", "0", how="stays")
    wait_for((tmp_path / "ready").exists)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 137
    assert marked(tmp_path) == set()


def test_a_second_word_ends_the_grace(tmp_path):
    process = leave(tmp_path, "--grace", "3600", "--patience", "0", how="stays")
    wait_for((tmp_path / "ready").exists)
    process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 137


def test_a_guard_that_is_killed_alone_interrupts_its_command(tmp_path):
    process = subprocess.Popen([*GUARDED, sys.executable, "-c", COUNTER, tmp_path], start_new_session=True)
    wait_for((tmp_path / "ready").exists)
    process.kill()
    process.wait()
    wait_for(lambda: (tmp_path / "seen").exists() and (tmp_path / "seen").read_text())
    assert (tmp_path / "seen").read_text() == "1"


def test_the_record_names_the_command_while_it_works(tmp_path):
    words = running.guarded(["sleep", "60"], running.new(tmp_path), "engine of stack lab")
    process = subprocess.Popen(words, env={"SUPERNODE_RUN": "20261130-1"})
    wait_for(lambda: running.records(tmp_path))
    (record,) = running.records(tmp_path)
    assert (record.what, record.run) == ("engine of stack lab", "20261130-1")
    assert set(record.alive) == set(record.processes)
    assert process.pid in record.alive
    process.send_signal(signal.SIGINT)
    process.wait(timeout=20)
    assert running.records(tmp_path) == []


def test_a_record_of_the_dead_counts_for_nothing_and_another_hosts_is_left_alone(tmp_path):
    me = {str(os.getpid()): guard.started(os.getpid())}
    row = {"what": "engine", "run": "", "host": guard.socket.gethostname(), "boot": guard.boot(), "processes": me}
    rows = {
        "alive": row,
        "reused": {**row, "processes": {str(os.getpid()): "1"}},
        "boot": {**row, "boot": "another"},
        "elsewhere": {**row, "host": "elsewhere"},
    }
    for name, text in rows.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(text))
    (tmp_path / "half.json").write_text('{"what"')
    found = {record.file.stem: bool(record.alive) for record in running.records(tmp_path)}
    assert found == {"alive": True, "reused": False, "boot": False, "elsewhere": False}
    running.prune(tmp_path)
    assert {record.file.stem for record in running.records(tmp_path)} == {"alive", "elsewhere"}
