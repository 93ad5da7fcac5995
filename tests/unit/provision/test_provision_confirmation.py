"""A confirmation to install anew what is in service ends with the run that it was given for, however that run ends."""

import json
from types import SimpleNamespace

import pytest

from supernode.bringup.provision import run
from supernode.bringup.provision import session as sessions
from supernode.errors import CouldNotRun
from supernode.provider.settings import ConfigError, Settings

GIVEN = {"reinstall": '["r01u05"]', "plan": "0123abcd", "until": "1000"}


def test_a_confirmation_holds_until_its_time():
    assert Settings.read(GIVEN, now=999).reinstall == {"r01u05"}


@pytest.mark.parametrize("change", [{"until": "999"}, {"until": "1000"}, {"until": ""}, {"plan": ""}])
def test_one_that_is_over_or_has_no_end_or_no_plan_holds_nothing(change):
    assert Settings.read({**GIVEN, **change}, now=1000).reinstall == set()


def test_one_without_an_end_at_all_holds_nothing():
    """Known bad: a run that was killed left reinstall and plan behind, and the next `pulumi up` used them."""
    assert Settings.read({k: v for k, v in GIVEN.items() if k != "until"}, now=0).reinstall == set()


@pytest.mark.parametrize("until", ["soon", "-1", "1e9", "99999999999999"])
def test_a_time_that_is_none_is_refused(until):
    with pytest.raises(ConfigError) as caught:
        Settings.read({**GIVEN, "until": until})
    assert caught.value.key == "until"


class Stack:
    def __init__(self, name):
        self.name, self.config = name, {}

    def get_all_config(self):
        return dict(self.config)

    def set_all_config(self, config):
        self.config.update(config)

    def remove_all_config(self, keys):
        for key in keys:
            del self.config[key]


class Session(sessions.Session):
    """A session whose stacks are held here; the second cannot be reached once."""

    def __init__(self, folder, names, broken=()):
        super().__init__(folder, folder.folder, {}, SimpleNamespace(interrupt=lambda: None))
        self.stacks, self.broken = {name: Stack(name) for name in names}, list(broken)

    def select(self, name):
        if name in self.broken:
            self.broken.remove(name)
            raise CouldNotRun(name, "is locked")
        return self.stacks[name]


@pytest.fixture
def bench(tmp_path, monkeypatch):
    folder = SimpleNamespace(name="lab", folder=tmp_path, root=tmp_path)
    budgets = SimpleNamespace(provision_s=1200)
    design = SimpleNamespace(
        stacks=lambda: ["lab", "lab-su2"],
        hosts=(),
        environment=SimpleNamespace(budgets=budgets),
        stack_sizes=lambda: {"lab": 1, "lab-su2": 1},
    )

    def play(update, broken=()):
        session = Session(folder, design.stacks(), broken)
        monkeypatch.setattr(run.Session, "open", lambda *_: session)
        monkeypatch.setattr(run.time, "time", lambda: 5000.0)
        monkeypatch.setattr(run, "_update", lambda _session, stack, *_, **_more: update(stack))
        with pytest.raises((KeyboardInterrupt, CouldNotRun)):
            run.up(folder, design, lambda _: None, reinstall=("r01u05",), plan_hash="0123abcd")
        return session

    return play


def test_it_is_written_with_its_end_and_taken_back_when_the_run_is_interrupted(bench):
    seen = []

    def stop(stack):
        seen.append({key: value.value for key, value in stack.config.items()})
        raise KeyboardInterrupt

    session = bench(stop)
    assert seen[0]["supernode:until"] == "6200"
    assert json.loads(seen[0]["supernode:reinstall"]) == ["r01u05"]
    assert [set(stack.config) for stack in session.stacks.values()] == [{"supernode:folder"}] * 2


def test_it_is_taken_back_when_only_some_stacks_could_be_prepared(bench):
    """Known bad: the first stack kept it when the second was locked."""
    session = bench(lambda _stack: None, broken=["lab-su2"])
    assert set(session.stacks["lab"].config) == {"supernode:folder"}
