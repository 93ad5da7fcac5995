import os
import socket
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from pulumi.automation import CommandResult
from pulumi.automation.errors import create_command_error

from supernode.bringup.provision import command, locks, session
from supernode.engine import guard
from supernode.engine.running import Record
from supernode.workspace import EnvironmentFolder


@pytest.mark.parametrize(
    ("stack", "belongs"),
    [
        ("lab", True),
        ("lab-su2", True),
        ("lab-su12-3", True),
        ("lab-fabric2", True),
        ("lab-two", False),
        ("lab-su2x", False),
        ("mylab", False),
        ("lab-su2-two", False),
    ],
)
def test_which_stacks_are_an_environments(stack, belongs):
    assert session.belongs(stack, "lab") is belongs


def test_a_wheel_works_on_a_copy_of_the_program_with_its_own_provider(tmp_path):
    folder = EnvironmentFolder("lab", tmp_path / "inventories" / "lab", tmp_path)
    place = session.project(folder)
    assert place == tmp_path / ".supernode" / "program"
    document = yaml.safe_load((place / "Pulumi.yaml").read_text())
    assert document["runtime"]["options"]["virtualenv"] == sys.prefix
    assert document["plugins"]["providers"] == [{"name": "supernode", "path": f"{sys.prefix}/bin"}]
    assert "def main()" in (place / "stacks" / "__main__.py").read_text()


LOCKED = """error: the stack is currently locked by 1 lock(s). Either wait for the other process(es) to end or ...
  file:///x/.pulumi/locks/u.json: created by {user}@{host} (pid {pid}) at {at}
"""
LONG_AGO = "1999-11-30T18:49:09Z"


def locked(pid, host=None, user="root", at=None):
    at = at or datetime.now(UTC).isoformat(timespec="seconds")
    text = LOCKED.format(user=user, host=host or socket.gethostname(), pid=pid, at=at)
    return create_command_error(CommandResult("", text, 255))


def dead_pid():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return pid


def record(pid=None, host=None, boot=None, since=None):
    pid = pid or os.getpid()
    at = {pid: guard.started(pid) if since is None else since}
    return Record(Path("x.json"), "engine", "run-1", host or socket.gethostname(), boot or guard.boot(), at)


def stale(error, *records, **how):
    (lock,) = locks.read(str(error))
    return locks.stale(lock, records, **how)


def test_a_lock_of_a_dead_process_of_this_machine_is_stale():
    assert stale(locked(dead_pid()))


def test_a_lock_older_than_the_process_that_has_its_pid_now_is_stale():
    assert stale(locked(os.getpid(), at=LONG_AGO))


@pytest.mark.parametrize("error", [locked(os.getpid()), locked(1), locked(999_999_999, host="elsewhere")])
def test_a_lock_of_a_living_process_or_of_another_machine_is_not(error):
    assert not stale(error)


def test_an_engine_that_lives_and_has_no_record_is_never_judged_by_the_clock(monkeypatch):
    monkeypatch.setattr(locks, "ENGINE", Path("/proc/self/comm").read_text().strip())
    assert not stale(locked(os.getpid(), at=LONG_AGO))


@pytest.mark.parametrize(
    ("which", "dead"),
    [
        ({}, False),
        ({"since": "1"}, True),  # the pid is another process by now
        ({"boot": "another"}, True),
    ],
)
def test_our_own_record_says_whether_the_process_is_the_one_that_locked(which, dead):
    assert stale(locked(os.getpid()), record(**which)) is dead


def test_another_hosts_record_or_lock_says_nothing_here():
    assert not stale(locked(os.getpid()), record(host="elsewhere", since="1"))
    assert not stale(locked(os.getpid(), host="elsewhere"), record(host="elsewhere", since="1"))


def test_in_a_shared_state_a_name_and_a_free_pid_prove_nothing_without_our_own_record():
    pid = dead_pid()
    assert not stale(locked(pid), shared=True)
    assert not stale(locked(os.getpid(), at=LONG_AGO), shared=True)
    assert stale(locked(pid), record(pid, since="1"), shared=True)
    assert stale(locked(os.getpid()), record(boot="another"), shared=True)


class Locked:
    """Stands for a stack that is locked until somebody cancels, and for its session."""

    def __init__(self, error, folder, backend="file:///x?metadata=skip"):
        self.settings = {"PULUMI_BACKEND_URL": backend}
        self.error, self.cancelled, self.command = error, 0, SimpleNamespace(records=folder)

    def workspace(self):
        return None

    def cancel(self):
        self.cancelled += 1
        self.error = None

    def work(self):
        if self.error:
            raise self.error
        return "done"


@pytest.fixture
def lock_of(tmp_path, monkeypatch):
    def make(pid, **how):
        found = Locked(locked(pid), tmp_path, **how)
        monkeypatch.setattr(session.Stack, "select", lambda _name, _workspace: found)
        return found

    return make


def test_work_is_done_again_once_a_dead_runs_lock_is_gone(lock_of):
    pid, told = dead_pid(), []
    found = lock_of(pid)
    assert session.unlocked(found, "lab", found.work, told.append) == "done"
    assert found.cancelled == 1
    assert told[0].startswith(f"stack lab was locked by process {pid} of root on {socket.gethostname()} since ")
    assert "taken away" in told[0]


def test_a_living_runs_lock_stays(lock_of):
    found = lock_of(os.getpid())
    with pytest.raises(type(found.error)):
        session.unlocked(found, "lab", found.work, lambda _line: None)
    assert found.cancelled == 0


def test_a_lock_in_a_shared_state_stays_where_we_have_no_record_of_it(lock_of):
    found = lock_of(dead_pid(), backend="postgres://state.example/pulumi")
    with pytest.raises(type(found.error)):
        session.unlocked(found, "lab", found.work, lambda _line: None)
    assert found.cancelled == 0


def explained(stderr, said=(), settings=None):
    error = create_command_error(CommandResult("", stderr, 255))
    return command.explain(error, "lab-su2", "lab", settings or {}, list(said))


def test_a_locked_stack_names_who_and_how_to_free_it():
    found = command.explain(locked(4711, host="other", user="ann"), "lab", "lab", {}, [])
    assert "process 4711 of ann on other since " in found.what
    assert "pulumi cancel --yes -s lab" in found.hint


def test_the_engines_events_are_taken_before_its_output():
    found = explained("error: update failed", ["gpu-001: no", "gpu-001: no", "update failed"])
    assert (found.where, found.what) == ("stack lab-su2", "gpu-001: no")
    assert "something odd" in explained("error: something odd").what


def test_a_wrong_passphrase_names_the_file():
    found = explained("error: incorrect passphrase", settings={"PULUMI_CONFIG_PASSPHRASE_FILE": "/x/passphrase"})
    assert found.where == "/x/passphrase"
