"""Of the machines in service the playbooks change at most the share that one run may change, and say who waits."""

import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from supernode import design as designing
from supernode import spec
from supernode.bringup import configure, pacing
from supernode.bringup.configure import Configured, Stats
from supernode.records import DeviceOutput, Event, Outputs, State, Verdict
from supernode.workspace import EnvironmentFolder

LAB = (Path(__file__).resolve().parents[3] / "tests" / "lab" / "slim" / "environment.yml").read_text()
HOSTS = [f"gpu-{n:03d}" for n in range(1, 10)]


def lab(**states):
    inputs = spec.read({"environment": LAB})
    bare = designing.build(inputs)
    slots = {h.slot: spec.SlotRecord(state=states.get(h.name.replace("-", "_"), "in_service")) for h in bare.hosts}
    return designing.build(spec.Inputs(inputs.environment, bare.allocation, spec.Machines(slots=slots)))


class Ansible:
    """Stands for the playbooks: who differs is changed by a real run alone; some fail or do not answer."""

    def __init__(self, root, monkeypatch, differ=(), fail=(), dark=()):
        self.folder = EnvironmentFolder("lab", root / "inventories" / "lab", root)
        self.folder.folder.mkdir(parents=True)
        self.differ, self.fail, self.dark, self.runs = set(differ), set(fail), set(dark), []
        monkeypatch.setattr(configure, "play", self.play)

    def play(self, built, _book, on_event, _run_dir, *, check=False, deadline_s=None, log=configure.LOG, records=None):
        assert deadline_s > 0
        hosts = built.groups["nodes"]
        self.runs.append((log, "check" if check else "real", list(hosts)))
        events = []
        for host in hosts:
            state = State.CHANGED if host in self.differ else State.OK
            events.append(Event(0.0, "configure", host, "rails", state, "Place"))
            on_event(events[-1])
        stats = {host: self.counted(host) for host in hosts}
        if not check:
            self.differ -= {host for host in hosts if stats[host].good}
        bad = sorted(host for host in hosts if not stats[host].good)
        return Configured(tuple(events), stats, not bad, f"not configured: {', '.join(bad)}" if bad else "")

    def counted(self, host):
        return Stats(3, int(host in self.differ), int(host in self.fail), int(host in self.dark))

    def run(self, design, late=()):
        self.runs, self.told = [], []
        devices = {
            h.name: DeviceOutput(h.name, "machine", h.slot, str(h.management.ip), "late" if h.name in late else "ready")
            for h in design.hosts
        }
        devices |= {s.name: DeviceOutput(s.name, "switch", s.slot, "") for s in design.switches}
        outputs = Outputs("lab", design.digest, devices)
        return configure.run(self.folder, design, outputs, self.told.append, self.folder.root)


@pytest.fixture
def ansible(tmp_path, monkeypatch):
    return lambda **how: Ansible(tmp_path, monkeypatch, **how)


def test_after_a_look_that_took_all_the_time_nothing_is_started(ansible, monkeypatch):
    books = ansible(differ=HOSTS)
    look = books.play

    def slow(*args, **how):
        done = look(*args, **how)
        late = configure.time.monotonic() + 3600 * 24
        monkeypatch.setattr(configure.time, "monotonic", lambda: late)
        return done

    monkeypatch.setattr(configure, "time", SimpleNamespace(monotonic=time.monotonic, time=time.time))
    monkeypatch.setattr(configure, "play", slow)
    done = books.run(lab())
    assert [kind for _, kind, _ in books.runs] == ["check"]
    assert not done.ok
    assert "the check run took all the time that this stage has" in done.reason


def test_when_nothing_changes_one_look_is_all(ansible):
    books = ansible()
    done = books.run(lab())
    assert [(log, kind, len(hosts)) for log, kind, hosts in books.runs] == [("ansible-check.log", "check", 9)]
    assert (done.ok, done.reason, set(done.stats)) == (True, "", set(HOSTS))


def test_five_that_would_change_are_changed_two_at_a_time(ansible):
    books, design = ansible(differ=HOSTS[:5]), lab()
    done = books.run(design)
    assert books.runs[1] == ("ansible.log", "real", HOSTS[:2])
    assert done.turn.held == tuple(HOSTS[2:5])
    assert (done.ok, set(done.stats)) == (False, set(HOSTS) - set(HOSTS[2:5]))
    assert "5 of 9 machines in service would change, one run changes at most 2" in done.reason
    assert [books.run(design).ok for _ in range(2)] == [False, True]
    assert books.run(design).changed == 0


def test_who_is_not_in_service_is_configured_at_once(ansible):
    states = {host.replace("-", "_"): "new" for host in HOSTS[:5]} | {"gpu_009": "spare"}
    books = ansible(differ=HOSTS)
    done = books.run(lab(**states))
    assert books.runs == [
        ("ansible-check.log", "check", HOSTS[5:]),
        ("ansible.log", "real", [*HOSTS[:6], "gpu-009"]),  # of three in service, one; and the spare
    ]
    assert done.turn.held == ("gpu-007", "gpu-008")


def test_a_ready_spare_that_needs_nothing_is_only_looked_at(ansible):
    books = ansible()
    assert books.run(lab(gpu_009="spare")).ok
    assert [(kind, len(hosts)) for _, kind, hosts in books.runs] == [("check", 9)]


def test_nobody_in_service_costs_no_look(ansible):
    books = ansible(differ=HOSTS)
    assert books.run(lab(**{host.replace("-", "_"): "new" for host in HOSTS})).ok
    assert [kind for _, kind, _ in books.runs] == ["real"]


def test_a_look_that_fails_may_be_a_change_and_takes_a_turn(ansible):
    books = ansible(differ=HOSTS[:1], fail=HOSTS[1:4])
    done = books.run(lab())
    assert books.runs[1][2] == HOSTS[:2]
    assert done.turn.held == ("gpu-003", "gpu-004")
    assert "not configured: gpu-002" in done.reason


def test_who_does_not_answer_takes_no_turn_and_is_not_configured(ansible):
    books = ansible(differ=HOSTS[1:3], dark=HOSTS[:1])
    done = books.run(lab())
    assert books.runs[1][2] == HOSTS[1:3]
    assert (done.ok, done.turn.held) == (False, ())
    assert "gpu-001" in done.reason


def test_an_unknown_record_counts_as_in_service():
    design = designing.build(spec.read({"environment": LAB}))
    assert pacing.serving(design, HOSTS) == tuple(HOSTS)


def test_a_look_is_told_as_a_look(ansible):
    books = ansible(differ=HOSTS[:3])
    books.run(lab())
    looks = [event for event in books.told if event.detail.startswith("would change")]
    assert [event.host for event in looks] == HOSTS[:3]
    assert {event.state for event in looks} == {State.PROGRESS}
    assert [e.host for e in books.told if e.state is State.CHANGED] == HOSTS[:2]
    assert [e.host for e in books.told if e.state is State.SKIPPED] == HOSTS[2:3]


def test_who_waits_is_one_problem_and_who_failed_another():
    turn = pacing.Turn(("gpu-001",), ("gpu-002", "gpu-003"), 3, 1, 7)
    rows = pacing.findings(lab(), HOSTS[:4], {"gpu-002": "x", "gpu-004": "did not run to the end"}, turn)
    assert [row.verdict for row in rows] == [Verdict.PASS, Verdict.FAIL, Verdict.FAIL, Verdict.FAIL]
    assert rows[1].cause == rows[2].cause != rows[3].cause
    assert "supernode bringup lab" in rows[1].hint


def test_no_host_can_be_reached(ansible):
    books = ansible()
    done = books.run(lab(), late=HOSTS)
    assert (books.runs, done.ok, done.reason) == ([], False, "no host can be reached")


def test_who_can_never_be_foretold_does_not_keep_the_others_waiting(ansible):
    """Known bad: two whose check run fails each time took both turns of every run."""
    books = ansible(differ=[HOSTS[2]], fail=HOSTS[:2])
    done = books.run(lab())
    assert books.runs[1] == ("ansible.log", "real", [HOSTS[0], HOSTS[2]])
    assert done.turn.held == (HOSTS[1],)
