"""The rollout checks as pytest runs them: in this process, and alone in another; both must say the same."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest
from world import World, cooling_page

from supernode.errors import CouldNotRun
from supernode.records import DeviceOutput, Outputs, Verdict
from supernode.verify import gates, gather, localise, run
from supernode.verify.facts.clock import Clock
from supernode.verify.facts.identity import Identity
from supernode.workspace import EnvironmentFolder

ROOT = Path(__file__).parents[3]
ROLLOUT = ROOT / "tests" / "rollout"


def faulty() -> World:
    world = World()
    world.exchange(("su01-leaf0", "swp3"), ("su01-leaf1", "swp3"))
    world.off.add("gpu-004")
    world.slow[(world.cable(("gpu-001", "rail2")), "down")] = 2.0
    return world


class WorldCase(run.Case):
    """A case whose facts come from the bendable fabric instead of from machines."""

    def __init__(self, world: World) -> None:
        super().__init__(world.wanted, lambda name: lambda command: "")
        object.__setattr__(self, "world", world)

    def findings(self):
        facts = self.world.facts()
        return localise.explain(self.wanted, facts, gates.judge(self.wanted, facts))


def keys(rows) -> set[tuple[str, str, str]]:
    return {(row.check, row.place, row.verdict.value) for row in rows}


def test_in_process_every_finding_is_asserted_by_a_test_and_comes_back_whole(tmp_path):
    case = WorldCase(faulty())
    found = run.run_tests(run.Session(case), "lab", run_dir=tmp_path)
    assert {f.cause for f in found if f.verdict is Verdict.FAIL} >= {"gpu-004 does not answer: timed out"}
    assert sorted(found, key=repr) == sorted(case.findings(), key=repr)
    assert [f.check for f in found] == sorted((f.check for f in found), key=list(gates.GATES).index)
    assert "failed" in (tmp_path / "verify.log").read_text()


def test_pytest_alone_says_the_same_as_verify_in_process(tmp_path):
    (tmp_path / "bent.py").write_text(
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from supernode.verify import run\nimport test_run\n"
        "run.load = lambda environment: test_run.WorldCase(test_run.faulty())\n"
    )
    junit = tmp_path / "junit.xml"
    argv = [
        sys.executable,
        "-m",
        "pytest",
        "tests/rollout",
        "--environment",
        "lab",
        "-p",
        "bent",
        f"--junitxml={junit}",
    ]
    environ = {**os.environ, "PYTHONPATH": f"{tmp_path}:{Path(__file__).parent}"}
    done = subprocess.run(argv, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=120)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    assert "are exchanged at su01-leaf0:swp3 and su01-leaf1:swp3" in done.stdout
    properties = Xml.parse(junit).iter("property")  # noqa: S314 - our own
    told = [p.get("value") for p in properties if p.get("name") == run.PROPERTY]
    alone = {(row["check"], row["place"], row["verdict"]) for row in map(json.loads, told)}
    in_process = run.run_tests(run.Session(WorldCase(faulty())), "lab")
    assert alone == keys(in_process)
    assert len(alone) > 100


def test_a_bare_pytest_collects_no_rollout_check():
    argv = [
        sys.executable,
        "-m",
        "pytest",
        "--collect-only",
        "-q",
        "tests/rollout/..",
        "--ignore=tests/unit",
        "--ignore=tests/lab",
    ]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert "rollout" not in done.stdout


def test_without_an_environment_pytest_says_how(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "pytest", str(ROLLOUT)], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--environment says what to look at" in done.stderr


def test_checks_that_cannot_run_are_no_clean_bill(monkeypatch):
    class Broken(WorldCase):
        def places(self, check):
            raise RuntimeError("no places")

    with pytest.raises(CouldNotRun, match="pytest ended with"):
        run.run_tests(run.Session(Broken(World())), "lab")


def test_facts_that_cannot_be_gathered_are_no_clean_bill():
    class Broken(WorldCase):
        def findings(self):
            raise RuntimeError("the pool broke")

    with pytest.raises(CouldNotRun, match="the pool broke"):
        run.run_tests(run.Session(Broken(World())), "lab")


def test_a_check_without_its_test_lets_its_fault_slip(tmp_path, monkeypatch):
    """Every check has a fault that nothing else sees at that place; without the gate nobody says it."""
    for check, bend in FAULTS.items():
        world = World()
        bend(world)
        with_gate = {f.check for f in WorldCase(world).findings() if f.verdict is not Verdict.PASS}
        assert check in with_gate, check
        with monkeypatch.context() as patch:
            patch.delitem(gates.GATES, check)
            without = [f for f in WorldCase(world).findings() if f.check == check]
        assert not without


def swap_within_a_leaf(world: World) -> None:
    world.exchange(("su01-leaf0", "swp1"), ("su01-leaf0", "swp2"))


FAULTS = {
    "reach": lambda w: w.off.add("gpu-001"),
    "identity": lambda w: w.identities.update({"gpu-001": w.facts().of("gpu-002").identity}),
    "image": lambda w: w.identities.update({"gpu-001": Identity("gpu-001", "SN0001", "", "0" * 64)}),
    "cabling": swap_within_a_leaf,
    "ports": lambda w: w.mtus.update({("su01-leaf0", "swp1"): 1500}),
    "rails": lambda w: w.mtus.update({("gpu-001", "rail0"): 1500}),
    "mtu": lambda w: w.mtus.update({("su01-leaf0", "swp1"): 1500}),
    "rate": lambda w: w.slow.update({("C00001", "up"): 1.0}),
    "fib": lambda w: w.fib_missing.add(("su01-leaf0", "swp49")),
    "time": lambda w: w.clocks.update({"gpu-001": Clock(False)}),
    "cooling": lambda w: setattr(w, "cooling", cooling_page("critical")),
    "watch": lambda w: w.unscraped.add("gpu-002"),
}


def test_outputs_say_which_image_is_expected(tmp_path):
    """The digest that the engine installed is what /etc/supernode/image must say."""
    from supernode import design, spec

    text = (ROOT / "tests" / "lab" / "slim" / "environment.yml").read_text()
    made = design.build(spec.read({"environment": text}))
    outputs = Outputs(
        "lab", made.digest, {"gpu-001": DeviceOutput("gpu-001", "machine", "r01u01", "198.18.0.10", image="d" * 64)}
    )
    folder = EnvironmentFolder("lab", tmp_path, tmp_path)
    case = run.case(folder, made, outputs)
    assert case.places("image") == ["gpu-001"]
    assert len(case.places("cabling")) == len(list(made.links))
    assert case.findings()[0].verdict is Verdict.FAIL, "no key and no machine: nothing is reached"


def test_ctrl_c_breaks_the_connections_and_comes_back_as_itself(tmp_path):
    world, asked, broken = World(), threading.Event(), threading.Event()

    def answer(_command):
        asked.set()
        assert broken.wait(30)
        raise gather.UnreachableError("cut")

    def interrupt():
        asked.wait(30)
        os.kill(os.getpid(), signal.SIGINT)

    case = run.Case(world.wanted, lambda name: answer, cut=broken.set)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=interrupt, daemon=True).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            run.run_tests(run.Session(case), "lab", run_dir=tmp_path)
    finally:
        signal.signal(signal.SIGINT, before)
    assert broken.is_set()
