"""Every family's subnet, routed by Debian's own opensm on ibsim as the design says, and its tables proved."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from supernode import design, families, packaged, spec
from supernode.design import forwarding, infiniband, routing

UMAD = Path("/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so")
LEAST_GUID = 0x200000  # ibsim's, of the first switch in its file
pytestmark = [
    pytest.mark.core,
    pytest.mark.skipif(
        not UMAD.exists() or shutil.which("opensm") is None or shutil.which("ibsim") is None,
        reason="needs opensm, ibsim-utils and libumad2sim0",
    ),
]
# Asks the manager for the service level of each path; saquery takes 20 ms for one and gets three of a table of them.
ASK = """
import ctypes, sys
mad = ctypes.CDLL("libibmad.so.5")
mad.mad_rpc_open_port.restype = ctypes.c_void_p
classes = (ctypes.c_int * 3)(0x81, 1, 3)
port = ctypes.c_void_p(mad.mad_rpc_open_port(None, 0, classes, 3))
class Way(ctypes.Structure):
    _fields_ = [("count", ctypes.c_int), ("p", ctypes.c_uint8 * 64), ("s", ctypes.c_uint16), ("d", ctypes.c_uint16)]
class Place(ctypes.Structure):
    _fields_ = [("lid", ctypes.c_int), ("way", Way), ("grh", ctypes.c_int), ("gid", ctypes.c_uint8 * 16),
                ("qp", ctypes.c_uint32), ("qkey", ctypes.c_uint32), ("sl", ctypes.c_uint8), ("pkey", ctypes.c_uint)]
manager = Place(lid=int(sys.argv[1]), qp=1, qkey=0x80010000)
gids = [bytes.fromhex("fe80000000000000" + guid) for guid in sys.argv[2:]]
for a in gids:
    row = []
    for b in gids:
        record = (ctypes.c_uint8 * 200)()
        if a != b and mad.ib_path_query_via(port, a, b, ctypes.byref(manager), record) < 0:
            sys.exit("no answer")
        row.append(record[53] & 15)
    print(*row)
"""


def graph_of(name, cards):
    """Return the first likely parameters of a family and its graph as a subnet."""
    family = families.family(name)
    p = next(iter(family.candidates(cards)))
    graph = family.graph(p)
    return family, p, families.behind_switches(graph, 1) if graph.direct else graph


def end(process):
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def routed(folder, graph, options, levels=True, wait_s=60):
    """Return the tables that opensm makes of a graph, and the service levels of all paths if asked for."""
    return simulated(folder, "".join(infiniband.graph_netlist(graph, "HDR")), "s0", options, levels, wait_s)


def simulated(folder, netlist, first, options, levels, wait_s=60):
    """Return the same of a netlist; the manager runs at the switch `first`."""
    folder.mkdir(exist_ok=True)
    (folder / "fabric.net").write_text(netlist)
    env = {**os.environ, "IBSIM_SOCKNAME": f"t{os.getpid()}-{folder.name}", "OSM_CACHE_DIR": str(folder)}
    env |= {"OSM_TMP_DIR": str(folder), "SIM_HOST": first}
    limits = ["-N", "20000", "-S", "4096", "-P", "200000", "-L", "40000"]
    with (folder / "ibsim.log").open("w") as said:
        simulator = subprocess.Popen(
            ["ibsim", "-s", *limits, "fabric.net"], cwd=folder, env=env, stdin=subprocess.PIPE, stdout=said, stderr=said
        )
    manager = None
    try:
        until(lambda: "simulator ready" in (folder / "ibsim.log").read_text(errors="replace"), 30)
        loaded = {**env, "LD_PRELOAD": str(UMAD)}
        command = ["opensm", "-s", "0", "-d", "2", "-D", "0x43", "-f", f"{folder}/osm.log", "-e"]
        with (folder / "out").open("w") as said:
            manager = subprocess.Popen(
                [*command, "--dump_files_dir", folder, *options], cwd=folder, env=loaded, stdout=said, stderr=said
            )
        log = folder / "osm.log"
        until(lambda: log.exists() and "SUBNET UP" in log.read_text(errors="replace"), wait_s, manager)
        tables = forwarding.read(
            *(lines(folder / f"opensm{name}") for name in ("-subnet.lst", "-lfts.dump")),
            lines(folder / "opensm-sl2vl.dump") or None,
        )
        return tables, ask(folder, loaded, tables) if levels else None
    finally:
        for process in (manager, simulator):
            if process is not None:
                end(process)


def lines(path):
    return path.read_text().splitlines() if path.exists() else []


def until(true, seconds, process=None):
    last = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < last, "too late"
        assert process is None or process.poll() is None, "opensm has ended"
        time.sleep(0.05)


def ask(folder, env, tables):
    """Return [from, to] -> service level, in the order of the tables' ends."""
    text = (folder / "opensm-subnet.lst").read_text()
    guids = dict(re.findall(r"^\{ CA .*?PortGUID:(\w+) .*?\{(.*?)\}", text, re.MULTILINE))
    names = {name: guid for guid, name in guids.items()}
    manager = int(re.search(r"SW-SM .*?LID:(\w+)", text)[1], 16)
    done = subprocess.run(
        [sys.executable, "-c", ASK, str(manager), *(names[name] for name in tables.ends)],
        env={**env, "SIM_HOST": tables.ends[0]},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return np.array([[int(level) for level in row.split()] for row in done.stdout.splitlines()])


def chosen(folder, family, p):
    """Return opensm's arguments for what the design chose."""
    way = family.routing(p)
    engines = ",".join(routing.TREE_ENGINES) if way.engine == "ftree" else way.engine
    options = ["-R", f"{engines},no_fallback", *(["-Q"] if way.lanes > 1 else [])]
    if way.engine == "torus-2QoS":
        folder.mkdir(exist_ok=True)
        guids = [LEAST_GUID + number for number in range(family.size(p))]
        (folder / "torus.conf").write_text("".join(routing.torus_2qos(p.shape, guids)))
        options += ["--torus_config", f"{folder}/torus.conf"]
    return options


# One of each kind of answer: two sizes of torus, one tier and two of a tree, order of dimensions, layers.
@pytest.mark.parametrize(
    ("name", "cards"),
    [
        ("torus", 27),
        ("hyperx", 64),
        ("full-mesh", 16),
        ("dragonfly", 27),
        ("torus-chords", 16),
        ("two-tier", 16),
        ("switched", 16),
        ("leaf-spine", 16),
        ("fat-tree", 16),
    ],
)
def test_what_the_family_chose_has_no_circle_and_reaches_all(tmp_path, name, cards):
    family, p, graph = graph_of(name, cards)
    tables, levels = routed(tmp_path / "run", graph, chosen(tmp_path / "run", family, p))
    found = forwarding.prove(tables, levels)
    assert len(tables.ends) == np.count_nonzero(graph.links["a"] < graph.cards)
    assert (found.unreached, found.loop) == ((), ())
    assert len(found.lanes) <= family.routing(p).lanes
    assert found.most_switches >= int(graph.hops(0).max())


def tree(leaves, spines, each, parallel):
    """Return a fat tree of two tiers written down here: `each` ends a leaf, `parallel` cables to each spine."""
    ends = np.arange(leaves * each)
    down = families.linked(ends, 0, len(ends) + ends // each, ends % each, 0)
    leaf, spine, lane = (part.ravel() for part in np.indices((leaves, spines, parallel)))
    up = families.linked(
        len(ends) + leaf, each + spine * parallel + lane, len(ends) + leaves + spine, leaf * parallel + lane, 1
    )
    groups = (families.Group("end"), families.Group("up"))
    return families.Graph(len(ends), (leaves, spines), np.concatenate([down, up]), groups)


def test_a_tree_of_1024_ends_is_routed_without_a_circle_and_evenly(tmp_path):
    engines = ",".join((*routing.TREE_ENGINES, "no_fallback"))
    tables, _ = routed(tmp_path / "run", tree(32, 16, 32, 2), ["-R", engines], levels=False)
    found = forwarding.prove(tables)
    assert len(tables.ends) == 1024
    assert (found.unreached, found.loop, found.lanes, found.most_switches) == ((), (), (0,), 3)
    assert found.mean_switches == pytest.approx((31 * 1 + 992 * 3) / 1023)
    assert found.spread[1] <= 32


def test_the_superpod_is_routed_from_its_own_netlist(tmp_path):
    text = (packaged.root() / "inventories" / "examples" / "superpod-h100-1su-ib" / "environment.yml").read_text()
    built = design.build(spec.read({"environment": text}))
    # ibsim knows no faster lanes than HDR's, and routes do not hang on them.
    netlist = "".join(infiniband.netlist(built)).replace("4xNDR", "4xHDR")
    engines = ",".join((*routing.manager(built).engines, "no_fallback"))
    run = tmp_path / "run"
    tables, _ = simulated(run, netlist, built.switches[0].name, ["-R", engines], levels=False)
    found = forwarding.prove(tables)
    assert (len(tables.ends), len(tables.switches)) == (248, 12)
    assert (found.unreached, found.loop, found.lanes, found.most_switches) == ((), (), (0,), 3)
    assert "ftree tables configured" in (run / "osm.log").read_text()


def test_minhop_on_a_torus_goes_in_a_circle_that_is_named(tmp_path):
    _, _, graph = graph_of("torus", 64)
    found = forwarding.prove(*routed(tmp_path / "run", graph, ["-R", "minhop"]))
    assert len(found.loop) >= 3
    assert all(switch.startswith("s") and port > 0 for switch, port, _ in found.loop)
    assert found.unreached == ()


def test_the_lanes_are_what_breaks_the_circle_of_a_torus(tmp_path):
    family, p, graph = graph_of("torus", 64)
    tables, levels = routed(tmp_path / "run", graph, chosen(tmp_path / "run", family, p))
    assert forwarding.prove(tables, levels).lanes == (0, 1)
    assert forwarding.prove(tables).loop


@pytest.mark.parametrize("shape", [(2, 2, 2), (5, 3), (4, 2, 3)])
def test_a_torus_of_any_shape(tmp_path, shape):
    family = families.family("torus")
    p = family.Parameters(family="torus", shape=shape)
    graph = families.behind_switches(family.graph(p), 2)
    found = forwarding.prove(*routed(tmp_path / "run", graph, chosen(tmp_path / "run", family, p)))
    assert (found.unreached, found.loop) == ((), ())
    assert found.most_switches == 1 + sum(size // 2 for size in shape)
