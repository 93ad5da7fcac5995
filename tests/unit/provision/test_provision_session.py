import os
import socket
import sys

import pytest
import yaml
from pulumi.automation import CommandResult
from pulumi.automation.errors import create_command_error

from supernode.bringup.provision import command, session
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
  file:///x/.pulumi/locks/u.json: created by {user}@{host} (pid {pid}) at 2026-11-30T18:49:09Z
"""


def locked(pid, host=None, user="root"):
    text = LOCKED.format(user=user, host=host or socket.gethostname(), pid=pid)
    return create_command_error(CommandResult("", text, 255))


def dead_pid():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return pid


def test_a_lock_of_a_dead_process_of_this_machine_is_left_by_the_dead():
    assert command.left_by_the_dead(locked(dead_pid()))


@pytest.mark.parametrize("error", [locked(os.getpid()), locked(1), locked(999_999_999, host="elsewhere")])
def test_a_lock_of_a_living_process_or_of_another_machine_is_not(error):
    assert not command.left_by_the_dead(error)


class Stack:
    """Stands for a stack that is locked until somebody cancels."""

    name = "lab"

    def __init__(self, error):
        self.error, self.cancelled = error, 0

    def cancel(self):
        self.cancelled += 1
        self.error = None

    def work(self):
        if self.error:
            raise self.error


def test_work_is_done_again_once_a_dead_runs_lock_is_gone():
    stack, told = Stack(locked(dead_pid())), []
    session.unlocked(stack, stack.work, told.append)
    assert stack.cancelled == 1
    assert "taken away" in told[0]


def test_a_living_runs_lock_stays():
    stack = Stack(locked(os.getpid()))
    with pytest.raises(type(stack.error)):
        session.unlocked(stack, stack.work, lambda _line: None)
    assert stack.cancelled == 0


def explained(stderr, said=(), settings=None):
    error = create_command_error(CommandResult("", stderr, 255))
    return command.explain(error, "lab-su2", "lab", settings or {}, list(said))


def test_a_locked_stack_names_who_and_how_to_free_it():
    found = command.explain(locked(4711, host="other", user="ann"), "lab", "lab", {}, [])
    assert "ann@other (pid 4711)" in found.what
    assert "pulumi cancel --yes -s lab" in found.hint


def test_the_engines_events_are_taken_before_its_output():
    found = explained("error: update failed", ["gpu-001: no", "gpu-001: no", "update failed"])
    assert (found.where, found.what) == ("stack lab-su2", "gpu-001: no")
    assert "something odd" in explained("error: something odd").what


def test_a_wrong_passphrase_names_the_file():
    found = explained("error: incorrect passphrase", settings={"PULUMI_CONFIG_PASSPHRASE_FILE": "/x/passphrase"})
    assert found.where == "/x/passphrase"
