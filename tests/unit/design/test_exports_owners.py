"""The exports, read back by the tool or library that owns the format (`make owners`; it fetches them, 20 MB).

infragraph and pydot come from PyPI into an environment of their own, which uv keeps; Slurm's
controller comes from Debian and is unpacked, not installed.
"""

import json
import os
import socket
import subprocess
import time

import pytest

from supernode import design, packaged, spec
from supernode.design import artefacts

pytestmark = pytest.mark.owners

LIBRARIES = ("infragraph==3.1.0", "pydot==4.0.1")
SLURM = ("slurmctld", "slurm-client", "slurm-wlm-basic-plugins", "libslurm38", "libmunge2", "libjson-c5", "liblua5.3-0")


def exported(case):
    text = (packaged.root() / "inventories" / case / "environment.yml").read_text()
    found = design.build(spec.read({"environment": text}))
    return found, {row.name.removeprefix("exports/"): "".join(row.lines(found)) for row in artefacts.of(found)}


def ask(code, text, tmp_path):
    """Run code where the libraries are; `text` is what it reads from the file of its first argument."""
    uv = packaged.root() / ".venv-uv" / "bin" / "uv"
    file = tmp_path / "exported"
    file.write_text(text)
    wanted = [word for name in LIBRARIES for word in ("--with", name)]
    command = [
        str(uv) if uv.exists() else "uv",
        "run",
        "--quiet",
        "--no-project",
        "--isolated",
        *wanted,
        "python",
        "-c",
        code,
    ]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([*command, str(file)], capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


INFRAGRAPH = """
import json, sys, warnings
warnings.simplefilter("ignore")
from infragraph.infragraph_service import InfraGraphService
service = InfraGraphService()
service.set_graph(open(sys.argv[1]).read())
graph = service.get_networkx_graph()
json.dump(sorted(sorted(edge) for edge in graph.edges), sys.stdout)
"""


def test_infragraph_expands_its_yaml_to_our_cables(tmp_path):
    found, texts = exported("examples/superpod-h100-1su")
    edges = {frozenset(edge) for edge in map(tuple, ask(INFRAGRAPH, texts["infragraph.yaml"], tmp_path))}
    cables = {
        frozenset((f"{row.a_device}.0.{row.a_port}.0", f"{row.b_device}.0.{row.b_port}.0")) for row in found.links
    }
    assert cables <= edges
    between = {edge for edge in edges if len({name.split(".")[0] for name in edge}) == 2}
    assert between == cables


PYDOT = """
import json, sys, pydot
(graph,) = pydot.graph_from_dot_file(sys.argv[1])
edges = [[edge.get_source(), edge.get_destination()] for edge in graph.get_edges()]
nodes = {node.get_name(): node.get_attributes() for node in graph.get_nodes()}
json.dump({"edges": edges, "nodes": nodes}, sys.stdout)
"""


def test_a_reader_of_graphvizs_language_sees_each_cable(tmp_path):
    found, texts = exported("examples/superpod-h100-1su")
    seen = ask(PYDOT, texts["topology.dot"], tmp_path)
    wanted = {(f'"{row.b_device}":"{row.b_port}"', f'"{row.a_device}":"{row.a_port}"') for row in found.links}
    assert {tuple(edge) for edge in seen["edges"]} == wanted
    assert seen["nodes"]['"spine01"']["role"] == '"spine"'


@pytest.fixture(scope="session")
def slurm(tmp_path_factory):
    """Debian's Slurm, unpacked."""
    folder = tmp_path_factory.mktemp("slurm")
    subprocess.run(["apt-get", "download", *SLURM], cwd=folder, check=True, capture_output=True)
    for package in folder.glob("*.deb"):
        subprocess.run(["dpkg", "-x", str(package), str(folder / "root")], check=True)
    return folder / "root"


CONFIGURATION = """ClusterName=owners
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
AuthType=auth/none
CredType=cred/none
SlurmUser={user}
StateSaveLocation={folder}
SlurmctldPidFile={folder}/pid
PluginDir={plugins}
ProctrackType=proctrack/linuxproc
SelectType=select/cons_tres
TopologyPlugin=topology/tree
NodeName={nodes} NodeAddr=127.0.0.1 State=FUTURE
PartitionName=all Nodes=ALL
"""


def shown(slurm, folder, topology, nodes):
    """What `scontrol show topology` says of a controller that read the file."""
    library = slurm / "usr" / "lib" / "x86_64-linux-gnu"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    user = "root" if os.geteuid() == 0 else os.environ["USER"]
    values = {"host": socket.gethostname().split(".")[0], "port": port, "user": user, "folder": folder, "nodes": nodes}
    (folder / "slurm.conf").write_text(CONFIGURATION.format(plugins=library / "slurm-wlm", **values))
    (folder / "topology.conf").write_text(topology)
    environment = os.environ | {
        "LD_LIBRARY_PATH": f"{library}:{library / 'slurm-wlm'}",
        "SLURM_CONF": str(folder / "slurm.conf"),
    }
    with (folder / "log").open("w") as log:
        command = [str(slurm / "usr" / "sbin" / "slurmctld-wlm"), "-D", "-f", str(folder / "slurm.conf")]
        controller = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        for _ in range(50):
            ask = [str(slurm / "usr" / "bin" / "scontrol"), "show", "topology"]
            done = subprocess.run(ask, env=environment, capture_output=True, text=True, timeout=20)
            if done.returncode == 0 and done.stdout.strip():
                return done.stdout
            if controller.poll() is not None:
                break
            time.sleep(0.2)
    finally:
        controller.kill()
        controller.wait()
    return (folder / "log").read_text()


def test_slurms_controller_reads_the_tree(slurm, tmp_path):
    _, texts = exported("examples/superpod-h100-4su")
    said = shown(slurm, tmp_path, texts["slurm/topology.conf"], "gpu-[001-128]")
    assert "SwitchName=su01 Level=0 LinkSpeed=1 Nodes=gpu-[001-032]" in said
    assert "SwitchName=spines Level=1 LinkSpeed=1 Nodes=gpu-[001-128] Switches=su01,su02,su03,su04" in said


def test_slurms_controller_would_say_that_a_tree_is_wrong(slurm, tmp_path):
    _, texts = exported("examples/superpod-h100-4su")
    said = shown(
        slurm, tmp_path, texts["slurm/topology.conf"].replace("Switches=su01,", "Switches=su09,"), "gpu-[001-128]"
    )
    assert "su09" in said
    assert "Level=1" not in said
