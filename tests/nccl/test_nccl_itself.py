"""The real libnccl, of the PyPI wheel, on our files: without a GPU, in a process of its own for each.

    SUPERNODE_NCCL=<path of libnccl.so.2> pytest tests/nccl

The library is large (344 MB), so it is no part of the environment: `uv run --extra nccl` brings it.
"""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from supernode import catalog, design, packaged, spec
from supernode.design import collectives
from supernode.design.collectives import conf, topology

ASK = Path(__file__).parent / "ask_nccl.py"
LIMIT_S = 180  # the first call pages in 344 MB


def library():
    """Where the library is: named, or of the extra; None where it is neither."""
    if named := os.environ.get("SUPERNODE_NCCL"):
        return named
    try:
        found = importlib.util.find_spec("nvidia.nccl")
    except ModuleNotFoundError:
        return None
    places = list(found.submodule_search_locations or ()) if found else []
    return next((str(p) for place in places if (p := Path(place) / "lib" / "libnccl.so.2").exists()), None)


LIBRARY = library()
pytestmark = pytest.mark.skipif(LIBRARY is None, reason="no libnccl: SUPERNODE_NCCL=<path>, or the extra nccl")


def ask(*words, **environment):
    done = subprocess.run(
        [sys.executable, str(ASK), LIBRARY, *words],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        env={"HOME": "/nonexistent", "PATH": os.environ["PATH"], "NCCL_DEBUG": "WARN", **environment},
    )
    if done.returncode == 2:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads([line for line in done.stdout.splitlines() if line.startswith("{")][-1])


def rings(tmp_path, text):
    path = tmp_path / "topology.xml"
    path.write_text(text)
    return ask("topology", str(path))


DGX = topology.render(catalog.server("dgx-h100"), tree_only=False)


def test_a_dgx_has_a_ring_for_each_port_at_the_port_s_rate(tmp_path):
    found = rings(tmp_path, DGX)
    assert [found[step] for step in ("read", "copy", "build", "paths", "prepare", "search")] == [0] * 6
    assert found["channels"] == 8
    assert found["inter_gbyte_s"] == 48.0  # the step below 400 Gbit/s in the library's ladder
    assert (found["intra_path"], found["inter_path"]) == ("NVL", "PIX")


@pytest.mark.parametrize("name", ["dgx-h100", "lab-gpu8"])
@pytest.mark.parametrize("tree_only", [True, False])
def test_our_files_are_read(tmp_path, name, tree_only):
    found = rings(tmp_path, topology.render(catalog.server(name), tree_only=tree_only))
    assert found["read"] == found["build"] == 0


# What our own rules say of these is in tests/unit/design/test_collectives_topology.py.
SILENT = {
    "link_speed without PCIe": ("32.0 GT/s PCIe", "32.0 GT/s"),
    "no speed of a port": (' speed="400000"', ""),
    "no direct access": ('port="1"', 'port="1" gdr="0"'),
    "one guid twice": ('port="1"', 'port="1" guid="0x1"'),
    "one busid twice": ("0000:43:00.0", "0000:1b:00.0"),
}
REFUSED = {
    "prolog": ("<!-- NVIDIA", '<?xml version="1.0"?>\n<!-- NVIDIA'),
    "tabs": ("\n  <cpu", "\n\t<cpu"),
    "version": ('version="1"', 'version="2"'),
    "no sm": (' sm="90"', ""),
    "no class": (' class="0x060400"', ""),
    "no width": (' link_width="16"', ""),
    "no arch": (' arch="x86_64"', ""),
    "no count": (' count="18"', ""),
}


@pytest.mark.parametrize(("old", "new"), SILENT.values(), ids=SILENT)
def test_it_takes_these_in_silence_for_something_slower(tmp_path, old, new):
    found = rings(tmp_path, DGX.replace(old, new))
    assert found["search"] == 0
    assert found["channels"] * found["inter_gbyte_s"] < 8 * 48.0


@pytest.mark.parametrize(("old", "new"), REFUSED.values(), ids=REFUSED)
def test_it_refuses_these(tmp_path, old, new):
    found = rings(tmp_path, DGX.replace(old, new))
    assert found.get("read") or found.get("copy") or found.get("build")


def seen(tmp_path, text):
    path = tmp_path / "nccl.conf"
    path.write_text(text, newline="")
    found = ask("conf", NCCL_CONF_FILE=str(path), NCCL_DEBUG="")
    ours = {"NCCL_CONF_FILE", "NCCL_IGNORE_DISABLED_P2P", "NCCL_DEBUG"}
    return {name: value for name, value in found.items() if name not in ours}


def test_our_reading_of_a_conf_file_is_the_library_s(tmp_path):
    text = "\n".join([
        "NCCL_IB_SL = 5", "NCCL_SOCKET_IFNAME=eth0 # inline", 'NCCL_A="abc"', "export NCCL_B=1", " NCCL_C=1",
        "NCCL_IB_HCA==mlx5_0,mlx5_1", "NCCL_D=1", "NCCL_D=2", "# NCCL_E=1", "NCCL_F=1\r", "NCCL_G=", "NCCL_H", "=x",
        "NCCL_I=1  ", "NCCL_J=a=b", "",
    ])  # fmt: skip
    wanted = {name: value for name, value in conf.parse(text).items() if name.startswith("NCCL_")}
    assert seen(tmp_path, text) == wanted


def test_it_sees_what_was_designed(tmp_path):
    text = (packaged.root() / "inventories" / "examples" / "superpod-h100-1su" / "environment.yml").read_text()
    built = design.build(spec.read({"environment": text}))
    tuning = collectives.tuning(built, built.hosts[0])
    assert seen(tmp_path, conf.render(tuning)) == tuning.values()


def test_names_that_our_catalogue_knows_are_in_the_library():
    names = set(re.findall(rb"NCCL_[A-Z0-9_]+(?=\0)", Path(LIBRARY).read_bytes()))
    known = catalog.library("nccl").variables
    assert sorted(name for name in known if name.encode() not in names) == []
    assert sorted(name for name in catalog.library("nccl").gone if name in known) == []
