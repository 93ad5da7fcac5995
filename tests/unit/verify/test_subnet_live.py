"""The exported netlist of a hundred end ports in the real ibsim, under the real opensm with the designed files."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
import subnets

from supernode import design, packaged, spec
from supernode.design import infiniband as designing
from supernode.records import Verdict
from supernode.verify.facts import infiniband
from supernode.verify.facts.raw import Raw

DRIVER = Path("/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so")
HERE = all(shutil.which(name) for name in ("ibsim", "opensm", "ibnetdiscover")) and DRIVER.exists()
pytestmark = pytest.mark.skipif(not HERE, reason="ibsim-utils, opensm and infiniband-diags are not installed")
SUPERPOD = packaged.root() / "inventories" / "examples" / "superpod-h100-1su-ib" / "environment.yml"


@pytest.fixture(scope="module")
def text():
    """A scalable unit with 13 systems, at the fastest rate that ibsim 0.10 knows."""
    whole = SUPERPOD.read_text()
    assert "count: 31" in whole
    return whole.replace("count: 31", "count: 13").replace("400 Gbit/s", "200 Gbit/s")


@pytest.fixture(scope="module")
def seen(text, tmp_path_factory):
    """What the tools print of the subnet after the manager's first sweep."""
    folder = tmp_path_factory.mktemp("subnet")
    found = design.build(spec.read({"environment": text}))
    (folder / "fabric.net").write_text("".join(designing.netlist(found)))
    name = f"supernode-test-{os.getpid()}"
    environ = {**os.environ, "IBSIM_SOCKNAME": name, "SIM_HOST": "gpu-001 mlx5_0", "OSM_CACHE_DIR": str(folder)}

    def run(*command):
        client = {**environ, "LD_PRELOAD": str(DRIVER)}
        done = subprocess.run(command, env=client, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
        return Raw(done.returncode, done.stdout, done.stderr)

    log = folder / "ibsim.log"
    with log.open("w") as output:
        simulator = subprocess.Popen(
            ["ibsim", "-s", "fabric.net"], env=environ, cwd=folder, stdin=subprocess.PIPE, stdout=output, stderr=output
        )
    try:
        for _ in range(200):
            if "simulator ready" in log.read_text():
                break
            time.sleep(0.05)
        assert "cannot" not in log.read_text()
        for file in found.files("gpu-001"):
            if file.path.startswith("/etc/opensm/"):
                moved = file.content.replace("/etc/opensm", str(folder)).replace("/var/log", str(folder))
                (folder / Path(file.path).name).write_text(moved)
        managed = run("opensm", "--once", "--config", "opensm.conf")
        yield {
            "opensm": managed,
            "log": (folder / "opensm.log").read_text(),
            **{tool: run(*infiniband.COMMANDS[tool][2:]) for tool in ("ibnetdiscover", "iblinkinfo", "sminfo")},
        }
    finally:
        simulator.kill()
        simulator.wait()


def test_the_subnet_comes_up_routed_as_the_tree_that_it_is(seen):
    assert "SUBNET UP" in seen["log"]
    assert "ftree tables configured on all switches" in seen["log"]
    assert "Unrecognized token" not in seen["opensm"].out + seen["opensm"].err + seen["log"]


def test_the_real_tools_find_the_designed_fabric_and_nothing_else(seen, text):
    case = subnets.wanted(text)
    raw = {tool: seen[tool] for tool in ("ibnetdiscover", "iblinkinfo", "sminfo")}
    facts = subnets.facts(case, {**raw, "opensm": Raw(0, "active\n")})
    rows = [row for row in subnets.judged(case, facts) if row.check != "subnet-manager"]
    assert len(rows) == 2 * (13 * 8 + 256)
    assert {row.verdict for row in rows} == {Verdict.PASS}
