"""Nodes as Slurm's controller shows them: every sample is recorded from slurmctld and slurmd 22.05.8."""

from pathlib import Path

import pytest

from supernode.clients import slurm
from supernode.records import Verdict
from supernode.units import Milliseconds
from supernode.verify import gates, localise
from supernode.verify.expected import GpusWanted, HostWanted, Wanted
from supernode.verify.facts import gpus
from supernode.verify.facts import slurm as facts
from supernode.verify.facts.device import DeviceFacts, Facts, request
from supernode.verify.facts.raw import NotSeenError, Raw
from supernode.verify.marks import Mark

SAMPLES = Path(__file__).parent / "samples"
WANTED = Wanted(
    {"gpu-001": HostWanted("r01u01", "", "", "", {}, gres="gpu:8")}, {}, Milliseconds(100), Mark(0.9, "contract")
)


def sample(name, rc=0):
    return Raw(rc, (SAMPLES / f"slurm-22.05.8-{name}").read_text(), "")


def judged(raw, wanted=WANTED):
    node, unseen = None, {}
    try:
        node = facts.read(raw)
    except NotSeenError as error:
        unseen = {"node": str(error)}
    seen = Facts({"gpu-001": DeviceFacts("gpu-001", reached=True, node=node, unseen=unseen)})
    (row,) = gates.GATES["scheduler"](wanted, seen)
    return row


@pytest.mark.parametrize(
    ("name", "rc", "verdict", "found"),
    [
        ("idle.txt", 0, Verdict.PASS, "registered with gpu:8"),
        ("not-verified.txt", 0, Verdict.PASS, "registered with gpu:8"),
        ("drained.txt", 0, Verdict.PASS, "registered with gpu:8"),
        ("drained-by-hand.txt", 0, Verdict.ADVICE, "closed by root: DIMM looks odd, jane"),
        ("not-registered.txt", 0, Verdict.FAIL, "slurmd has not registered"),
        ("fewer-gpus.txt", 0, Verdict.FAIL, "(7 < 8)"),
        ("unknown.txt", 1, Verdict.FAIL, "knows no such node"),
        ("no-controller.err", 1, Verdict.UNKNOWN, "not seen"),
    ],
)
def test_every_sample_is_judged(name, rc, verdict, found):
    row = judged(sample(name, rc))
    assert (row.check, row.place, row.verdict) == ("scheduler", "gpu-001", verdict)
    assert found in row.found


def test_a_controller_that_does_not_answer_is_not_a_node_that_is_ill():
    assert "Unable to contact slurm controller" in judged(sample("no-controller.err", 1)).evidence[0]
    assert judged(Raw(127, "", "sh: scontrol: not found")).verdict is Verdict.UNKNOWN


def test_another_count_than_designed_is_told():
    wanted = Wanted(
        {"gpu-001": HostWanted("r01u01", "", "", "", {}, gres="gpu:4")}, {}, Milliseconds(100), Mark(0.9, "contract")
    )
    row = judged(sample("idle.txt"), wanted)
    assert (row.verdict, row.found) == (Verdict.FAIL, "it offers gpu:8")


def test_a_host_that_is_no_node_is_not_asked():
    bare = Wanted({"head-001": HostWanted("r04u01", "", "", "", {})}, {}, Milliseconds(100), Mark(0.9, "contract"))
    assert "node" not in request(bare, "head-001")["commands"]
    assert gates.GATES["scheduler"](bare, Facts({})) == []
    assert request(WANTED, "gpu-001")["commands"]["node"][-1] == "gpu-001"


@pytest.mark.parametrize(
    ("name", "states", "user", "by_hand"),
    [
        ("idle.txt", {"IDLE"}, "", False),
        ("drained.txt", {"IDLE", "DRAIN"}, "root", False),
        ("drained-by-hand.txt", {"IDLE", "DRAIN"}, "root", True),
        ("not-verified.txt", {"DOWN"}, "", False),
        ("fewer-gpus.txt", {"IDLE", "DRAIN", "INVALID_REG"}, "slurm", False),
    ],
)
def test_who_closed_a_node_is_told_apart(name, states, user, by_hand):
    node = slurm.parse((SAMPLES / f"slurm-22.05.8-{name}").read_text())
    assert (node.states, node.user, node.by_hand) == (states, user, by_hand)
    assert node.closed is (name != "idle.txt")


def test_a_lost_accelerator_explains_the_node_that_slurm_does_not_take():
    addresses = ("0000:1b:00.0", "0000:43:00.0")
    host = HostWanted("r01u01", "", "", "", {}, GpusWanted("570.1", 2, addresses), "gpu:2")
    wanted = Wanted({"gpu-001": host}, {}, Milliseconds(100), Mark(0.9, "contract"))
    left = gpus.Gpus(addresses[:1], (gpus.Gpu(0, addresses[0], "H100", "u", "570.1", True),))
    node = slurm.parse((SAMPLES / "slurm-22.05.8-not-registered.txt").read_text())
    seen = Facts({"gpu-001": DeviceFacts("gpu-001", reached=True, gpus=left, node=node)})
    rows = [row for name in ("gpus", "scheduler") for row in gates.GATES[name](wanted, seen)]
    one, other = localise.explain(wanted, seen, rows)
    assert (one.verdict, other.verdict) == (Verdict.FAIL, Verdict.UNKNOWN)
    assert one.cause == other.cause
    assert "GPU 1 at 0000:43:00.0 is gone from the bus" in one.cause


def test_words_of_a_reason_are_its_authors_and_no_state():
    line = (SAMPLES / "slurm-22.05.8-drained-by-hand.txt").read_text()
    node = slurm.parse(line.replace("DIMM looks odd", "hold till State=IDLE and Gres=gpu:8"))
    assert node.states == {"IDLE", "DRAIN"}
    assert node.by_hand


def test_what_is_no_node_is_not_read_as_one():
    with pytest.raises(ValueError, match="no node"):
        slurm.parse("PartitionName=batch AllowGroups=ALL")
