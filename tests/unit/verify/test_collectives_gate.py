"""The collective library's files and devices: as designed, edited by hand, gone, overruled."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path

import pytest

from supernode import catalog
from supernode.design.collectives import conf
from supernode.records import Verdict
from supernode.verify.collectives import gate
from supernode.verify.expected import CollectivesWanted
from supernode.verify.facts import collectives
from supernode.verify.facts.device import Facts, request
from supernode.verify.facts.raw import NotSeenError, Raw

SAMPLES = Path(__file__).parent / "samples"
GOOD = (SAMPLES / "nccl-conf-composed-good.txt").read_text()
EDITED = (SAMPLES / "nccl-conf-composed-edited.txt").read_text()
DEVICES = (SAMPLES / "sysfs-composed-rdma-8.txt").read_text()
TOPOLOGY = "/etc/supernode/nccl-topology.xml"
GONE = Raw(1, "", "[Errno 2] No such file or directory")


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


WANTED = CollectivesWanted(
    {conf.PATH: digest(GOOD), TOPOLOGY: digest("<system/>\n")},
    conf.parse(GOOD),
    {nic.hca: nic.pci for nic in catalog.server("dgx-h100").nics},
)


def answers(file=GOOD, devices=DEVICES, before="", bus=0):
    texts = {conf.PATH: file, TOPOLOGY: "<system/>\n", "/etc/environment": before}
    raw = {f"collectives {path}": GONE if text is None else Raw(0, text) for path, text in texts.items()}
    return {**raw, "rdma": Raw(bus, devices)}


def judged(world, raw):
    hosts = dict(world.wanted.hosts)
    hosts["gpu-003"] = dataclasses.replace(hosts["gpu-003"], collectives=WANTED)
    wanted = dataclasses.replace(world.wanted, hosts=hosts)
    facts = world.facts()
    seen = dataclasses.replace(facts.of("gpu-003"), collectives=collectives.parse(raw))
    (row,) = gate(wanted, Facts({**facts.devices, "gpu-003": seen}, facts.flows))
    assert row.place == "gpu-003"
    return row


def test_as_designed(world):
    assert judged(world, answers()).verdict is Verdict.PASS


def test_what_the_library_makes_of_an_edited_file_is_said_line_by_line(world):
    row = judged(world, answers(EDITED))
    assert row.verdict is Verdict.FAIL
    said = "\n".join(row.evidence)
    assert "/etc/nccl.conf does not set NCCL_SOCKET_IFNAME" in said
    assert "line 2: sets a variable whose name is 'NCCL_SOCKET_IFNAME ', blanks included" in said
    assert "sets NCCL_IB_HCA to mlx5_0,mlx5_3, not =mlx5_0" in said
    assert "line 4: NCCL_IB_HCA is there already, in line 3" in said
    assert "it also sets NCCL_SOCKET_IFNAME , NCCL_DEBUG" in said


def test_a_remark_alone_is_a_difference_too(world):
    row = judged(world, answers(GOOD + "# mine\n"))
    assert (row.verdict, row.found) == (Verdict.FAIL, "/etc/nccl.conf is otherwise than designed")


def test_a_file_that_is_not_there(world):
    assert judged(world, answers(None)).found == "/etc/nccl.conf is not there"


def test_what_goes_before_the_file(world):
    row = judged(world, answers(before="PATH=/bin\nNCCL_IB_ADDR_RANGE=10.0.0.0/8\nNCCL_DEBUG=WARN\n"))
    assert row.evidence == ("/etc/environment sets NCCL_IB_ADDR_RANGE to 10.0.0.0/8, which goes before /etc/nccl.conf",)


def test_a_device_under_another_name_and_one_that_is_gone_are_named(world):
    row = judged(world, answers(devices=(SAMPLES / "sysfs-composed-rdma-renamed.txt").read_text()))
    assert row.evidence == (
        "the RDMA device at 0000:40:00.0 is mlx5_1, not mlx5_3",
        "no RDMA device at 0000:c0:00.0, where mlx5_9 should be",
    )


def test_where_nobody_can_look_at_the_bus_it_is_unknown(world):
    row = judged(world, answers(devices="", bus=3))
    assert row.verdict is Verdict.UNKNOWN
    assert judged(world, answers(None, devices="", bus=3)).verdict is Verdict.FAIL


def test_a_file_that_cannot_be_read_is_not_missing():
    with pytest.raises(NotSeenError):
        collectives.parse({**answers(), f"collectives {conf.PATH}": Raw(1, "", "sudo: a password is required")})


def test_only_who_has_a_library_is_asked(world):
    hosts = dict(world.wanted.hosts)
    hosts["gpu-003"] = dataclasses.replace(hosts["gpu-003"], collectives=WANTED)
    wanted = dataclasses.replace(world.wanted, hosts=hosts)
    asked = request(wanted, "gpu-003")
    assert asked["commands"]["rdma"] == collectives.COMMAND
    assert asked["files"]["collectives /etc/nccl.conf"] == "/etc/nccl.conf"
    assert "rdma" not in request(wanted, "gpu-001")["commands"]


def test_the_command_lists_devices_by_address(tmp_path, monkeypatch):
    """The real shell, over a tree like sysfs: also one without any RDMA device, and none at all."""
    import subprocess

    def run(folder):
        command = [word.replace("/sys/bus/pci/devices", str(folder)) for word in collectives.COMMAND]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return collectives.parse({"rdma": Raw(done.returncode, done.stdout, done.stderr)}).rdma

    assert run(tmp_path / "none") is None
    (tmp_path / "0000:1b:00.0").mkdir()
    assert run(tmp_path) == {}
    (tmp_path / "0000:18:00.0" / "infiniband" / "mlx5_0").mkdir(parents=True)
    assert run(tmp_path) == {"0000:18:00.0": "mlx5_0"}
