"""Switches of a fabric that serves somebody restart one after the other, and the first that fails ends it."""

import asyncio
import threading
import time
from contextlib import ExitStack

import pytest
from nos import possible
from ssh_server import serving
from test_provider_switch import CONF, DAEMONS, Bench

from supernode.provider import guard
from supernode.provider.pace import NotTouchedError, Pace
from supernode.provider.switch_config import SwitchConfigResource

SERVES = "slots: {r01u01: {state: in_service}, r03u40: {state: new}}\n"
IDLE = "slots: {r01u01: {state: new}, r01u02: {state: quarantined}, r01u03: {state: spare}}\n"


@pytest.mark.parametrize(
    ("text", "serves"),
    [(SERVES, True), (IDLE, False), ("slots: {}\n", False), (None, True), ("slots: {x: odd}\n", True)],
)
def test_whether_any_machine_is_in_service(tmp_path, text, serves):
    if text is not None:
        (tmp_path / "machines.yml").write_text(text)
    assert asyncio.run(guard.any_in_service(tmp_path)) is serves


class Line:
    """Several turns at once: the most that were in theirs together, and who got none."""

    def __init__(self, folder, bad=()):
        self.folder, self.bad, self.pace = folder, set(bad), Pace()
        self.now = self.most = 0
        self.turned_away = {}

    async def one(self, name):
        try:
            async with self.pace.turn(name, self.folder):
                self.now += 1
                self.most = max(self.most, self.now)
                await asyncio.sleep(0.01)
                self.now -= 1
                if name in self.bad:
                    raise ValueError
        except NotTouchedError as error:
            self.turned_away[name] = str(error)
        except ValueError:
            pass

    def go(self, *names):
        async def together():
            await asyncio.gather(*(self.one(name) for name in names))

        asyncio.run(together())
        return self


def line(folder, text, bad=()):
    (folder / "machines.yml").write_text(text)
    return Line(folder, bad)


def test_one_after_the_other_while_a_machine_is_in_service(tmp_path):
    assert line(tmp_path, SERVES).go(*"abcd").most == 1


def test_a_machines_yml_that_cannot_be_read_counts_as_in_service(tmp_path):
    assert line(tmp_path, "slots: {").go(*"abcd").most == 1


def test_all_at_once_where_nobody_is_served(tmp_path):
    idle = line(tmp_path, IDLE, bad="b").go(*"abcd")
    assert (idle.most, idle.turned_away) == (4, {})


def test_the_first_that_does_not_come_back_ends_it_until_it_is_back(tmp_path):
    serving = line(tmp_path, SERVES, bad="b").go("a").go("b").go("c", "d")
    assert serving.turned_away == dict.fromkeys("cd", "not touched: b did not come back")
    serving.bad, serving.turned_away = set(), {}
    assert serving.go("b").go("c", "d").turned_away == {}


def test_of_those_that_wait_together_none_is_touched_after_the_first_that_fails(tmp_path):
    assert len(line(tmp_path, SERVES, bad="abcd").go(*"abcd").turned_away) == 3


class Fabric:
    """Two switches of one run; `together` is the most whose FRR restarted at the same time."""

    def __init__(self, folder):
        self.resource = SwitchConfigResource(reach_s=3)
        self.benches = {}
        for name in ("leaf0", "leaf1"):
            (folder / name).mkdir()
            self.benches[name] = Bench(folder / name)
            self.benches[name].resource = self.resource
        self.now = self.together = 0
        self._lock = threading.Lock()

    def answer(self, bench):
        def answer(command, stdin):
            if "restart frr" not in command:
                return bench.nos.answer(command, stdin)
            with self._lock:
                self.now += 1
                self.together = max(self.together, self.now)
            time.sleep(0.4)
            try:
                return bench.nos.answer(command, stdin)
            finally:
                with self._lock:
                    self.now -= 1

        return answer

    def create(self, machines, **broken):
        async def both():
            wanted = []
            for name, bench in self.benches.items():
                (bench.folder / "machines.yml").write_text(machines)
                inputs = bench.inputs(name=name, conf=broken.get(name, "router bgp 65001\n"))
                wanted.append(self.resource.create(bench.scene, inputs))
            return await asyncio.gather(*wanted)

        return dict(zip(self.benches, asyncio.run(both()), strict=True))


@pytest.fixture
def fabric(tmp_path):
    made = Fabric(tmp_path)
    with ExitStack() as stack:
        for bench in made.benches.values():
            bench.port = stack.enter_context(serving(bench.host, bench.user, made.answer(bench))).port
        yield made


pytestmark = pytest.mark.skipif(not possible(), reason="no user namespaces")


def test_switches_restart_one_at_a_time_under_machines_in_service(fabric):
    """Known bad: both leaves of a host restarted FRR in the same second."""
    out = fabric.create(SERVES)
    assert {name: found["status"] for name, found in out.items()} == {"leaf0": "ready", "leaf1": "ready"}
    assert fabric.together == 1


def test_switches_of_a_new_fabric_restart_at_once(fabric):
    out = fabric.create(IDLE)
    assert {found["status"] for found in out.values()} == {"ready"}
    assert fabric.together == 2


def test_a_switch_that_fails_leaves_the_other_untouched(fabric):
    out = fabric.create(SERVES, leaf0="poison\n", leaf1="poison\n")
    first = next(name for name, found in out.items() if "not touched" not in found["reason"])
    other = {"leaf0": "leaf1", "leaf1": "leaf0"}[first]
    assert (out[other]["status"], out[other]["reason"]) == ("failed", f"not touched: {first} did not come back")
    nos = fabric.benches[other].nos
    assert (nos.read(CONF), nos.read(DAEMONS)) == ("! factory\n", "bgpd=no\n")
    assert nos.log() == []
