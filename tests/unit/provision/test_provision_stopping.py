"""Ctrl-C while stacks are worked on: what runs is let end, what waits for its turn never begins."""

import threading
from concurrent import futures
from types import SimpleNamespace

import pytest

from supernode.bringup.provision import run
from supernode.bringup.provision.command import Command
from supernode.errors import CouldNotRun

STACKS = [f"lab-su{n}" for n in range(1, 12)]


class Work:
    """Stacks that are at work until the engine is interrupted; Ctrl-C comes once all that may begin have begun."""

    def __init__(self):
        self.begun, self.asked = [], threading.Event()
        self.full = threading.Barrier(run._SIDE_BY_SIDE + 1)
        self.command = SimpleNamespace(interrupt=self.asked.set, stopped=False)
        self.progress = lambda _line: None
        self.waits = 0

    def __call__(self, name):
        self.begun.append(name)
        if not self.asked.is_set():
            self.full.wait(10)
        assert self.asked.wait(10)
        return name

    def wait(self, begun):
        self.waits += 1
        if self.waits == 1:
            self.full.wait(10)
            raise KeyboardInterrupt
        return futures.wait(begun, 10)


def test_stacks_that_wait_for_their_turn_never_begin(monkeypatch):
    work = Work()
    monkeypatch.setattr(run, "wait", work.wait)
    with pytest.raises(KeyboardInterrupt):
        run._each(work, STACKS, work)
    assert sorted(work.begun) == sorted(STACKS[: run._SIDE_BY_SIDE])


def engine(folder):
    return Command(SimpleNamespace(path="/bin/echo", version="3.0.0"), folder)


def test_no_engine_is_started_once_the_run_was_told_to_stop_until_that_is_over(tmp_path):
    command = engine(tmp_path)
    command.interrupt()
    with pytest.raises(CouldNotRun, match="told to stop"):
        command.run(["up", "--stack", "lab"], str(tmp_path), {})
    session = SimpleNamespace(command=command)
    assert run._each(session, [], str) == {}
    assert command.run(["config", "--stack", "lab"], str(tmp_path), {}).stdout == "--non-interactive config --stack lab"
