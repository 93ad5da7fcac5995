"""`supernode tune`."""

import json

from typer.testing import CliRunner

from supernode import packaged
from supernode.cli.main import app


def run(*words):
    return CliRunner().invoke(app, ["tune", *words])


def test_each_line_has_its_reason_its_source_and_its_owner():
    done = run("lab", "--explain")
    assert done.exit_code == 0
    said = " ".join(done.stdout.split())
    assert "NCCL_SOCKET_IFNAME==eno1 jobs find each other over the management port" in said
    assert "from catalogue: lab-gpu8.hcas; ours" in said
    assert "not written: " in said
    assert "NCCL_IB_GID_INDEX a place in a table that changes" in said


def test_without_explain_there_are_the_lines_alone():
    done = run("lab")
    assert "NCCL_IB_ADDR_RANGE=198.18.8.0/21" in done.stdout
    assert "not written" not in done.stdout


def test_as_json_the_files_are_whole():
    found = json.loads(run(str(packaged.root() / "inventories" / "examples" / "superpod-h100-1su"), "--json").stdout)
    assert [row["pool"] for row in found] == ["gpu"]
    assert [file["path"] for file in found[0]["files"]] == ["/etc/nccl.conf", "/etc/supernode/nccl-topology.xml"]
    assert {"name", "value", "kind", "reason", "source", "owner"} == set(found[0]["settings"][0])


def test_who_has_no_library_is_said():
    done = run("lab-ib")
    assert done.exit_code == 2
    assert "no collective library is configured there" in done.stderr
    assert run("lab", "--host", "head-001").exit_code == 2
    assert "no host of lab" in run("lab", "--host", "nobody").stderr
