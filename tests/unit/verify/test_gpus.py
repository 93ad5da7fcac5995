"""Accelerators: the driver's table as documented, well and faulty, and what the gate names."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from supernode import catalog
from supernode.records import Verdict
from supernode.verify import localise
from supernode.verify.expected import GpusWanted
from supernode.verify.facts import gpus
from supernode.verify.facts.device import Facts, request
from supernode.verify.facts.raw import NotSeenError, Raw
from supernode.verify.gpus import gate

SAMPLES = Path(__file__).parent / "samples"
ADDRESSES = catalog.server("dgx-h100").gpu_pci
WANTED = GpusWanted("570.133.20", 8, ADDRESSES)
XID = "NVRM: Xid (PCI:0000:c3:00): 79, pid=0, GPU has fallen off the bus."


def sample(name: str, rc: int = 0) -> Raw:
    return Raw(rc, (SAMPLES / f"nvidia-smi-documented-{name}.txt").read_text())


def judged(world, table: Raw, bus=ADDRESSES, xids: str | Raw = "", want: GpusWanted = WANTED):
    log = xids if isinstance(xids, Raw) else Raw(0 if xids else 1, xids)
    devices = {a: {"class": "0x030200", "vendor": "0x10de", "device": "0x2330"} for a in bus}
    devices["0000:18:00.0"] = {"class": "0x020000", "vendor": "0x15b3", "device": "0x1021"}
    raw = {"gpus": table, "bus": Raw(0, json.dumps(devices)), "xids": log}
    hosts = {n: dataclasses.replace(h, gpus=want) if n == "gpu-003" else h for n, h in world.wanted.hosts.items()}
    wanted = dataclasses.replace(world.wanted, hosts=hosts)
    facts = world.facts()
    seen = dataclasses.replace(facts.of("gpu-003"), gpus=gpus.parse(raw))
    rows = gate(wanted, Facts({**facts.devices, "gpu-003": seen}, facts.flows))
    return localise.explain(wanted, facts, rows)[0]


def without(number: int) -> tuple[str, ...]:
    return tuple(a for i, a in enumerate(ADDRESSES) if i != number)


def test_eight_of_eight_pass(world):
    row = judged(world, sample("8"))
    assert (row.verdict, row.place) == (Verdict.PASS, "gpu-003")


def test_one_that_left_the_bus_is_named_by_number_and_address_and_with_its_xid(world):
    row = judged(world, sample("7-of-8"), without(5), XID)
    assert row.verdict is Verdict.FAIL
    assert row.cause == "gpu-003: 7 of 8: GPU 5 at 0000:c3:00.0 is gone from the bus (XID 79)"
    assert XID in row.evidence
    assert "BMC" in row.hint


def test_one_on_the_bus_that_the_driver_does_not_see_is_told_from_one_that_is_gone(world):
    row = judged(world, sample("7-of-8"))
    assert "GPU 5 at 0000:c3:00.0 is on the bus, but the driver does not see it" in row.found


NOT_OPENED = Raw(1, "", (SAMPLES / "journalctl-252-not-opened.err").read_text())


@pytest.mark.parametrize("log", [NOT_OPENED, Raw(127, "", "No such file"), Raw(124, "", "no end after 20 s")])
def test_a_log_that_was_not_read_is_not_one_without_xids(world, log):
    row = judged(world, sample("8"), xids=log)
    assert (row.verdict, row.found) == (Verdict.UNKNOWN, "the kernel's log was not read")
    assert row.evidence == (f"kernel's log: {log.err.strip()}",)
    lost = judged(world, sample("7-of-8"), without(5), log)
    assert lost.verdict is Verdict.FAIL
    assert row.evidence[0] in lost.evidence


def test_a_file_of_the_log_that_a_power_cut_left_behind_hides_nothing(world):
    # recorded: journalctl of systemd 252 with a file of one byte beside a good one (folder shortened)
    log = Raw(1, "", "Journal file /var/log/journal/bad.journal is truncated, ignoring file.\n")
    assert judged(world, sample("8"), xids=log).verdict is Verdict.PASS


def test_what_the_log_says_of_accelerators_that_are_all_there_is_told(world):
    assert judged(world, sample("8"), xids=f"NVRM: loading\n{XID}\n").evidence == (XID,)


def test_without_known_addresses_the_drivers_table_is_counted(world):
    bare = GpusWanted("570.133.20", 8, ())
    assert judged(world, sample("8"), want=bare).verdict is Verdict.PASS
    row = judged(world, sample("7-of-8"), want=bare)
    assert (row.verdict, row.found) == (Verdict.FAIL, "7 of 8: the driver shows 7 of 8 accelerators")
    assert "BMC" in row.hint


@pytest.mark.parametrize(
    ("name", "rc", "found"),
    [
        ("lost", 15, "GPU is lost"),
        ("none", 6, "No devices were found"),
        ("mismatch", 18, "Driver/library version mismatch"),
        ("no-driver", 9, "couldn't communicate with the NVIDIA driver"),
    ],
)
def test_what_the_driver_says_instead_of_rows_is_the_finding(world, name, rc, found):
    row = judged(world, sample(name, rc))
    assert row.verdict is Verdict.FAIL
    assert found in row.found


def test_a_mismatch_of_module_and_library_asks_for_a_restart(world):
    assert "restart" in judged(world, sample("mismatch", 18)).hint


def test_another_version_and_persistence_that_is_off_are_named(world):
    rows = sample("8").out
    newer = judged(world, Raw(0, rows), want=GpusWanted("570.172.08", 8, ADDRESSES))
    assert "driver 570.133.20 runs, not 570.172.08" in newer.found
    off = judged(world, Raw(0, rows.replace("Enabled", "Disabled", 1)))
    assert "persistence is off at 0000:1b:00.0" in off.found
    assert "nvidia-persistenced" in off.hint


def test_no_driver_at_all_is_a_failure_and_another_form_is_not_seen(world):
    assert "not installed" in judged(world, Raw(127, "", "No such file")).found
    with pytest.raises(NotSeenError, match="5 fields"):
        gpus.table(Raw(0, "0, 00000000:1B:00.0, NVIDIA H100 80GB HBM3, GPU-1, 570.133.20\n"))


def test_only_hosts_with_a_driver_are_asked(world):
    name = "gpu-003"
    assert "gpus" not in request(world.wanted, name)["commands"]
    host = dataclasses.replace(world.wanted.hosts[name], gpus=WANTED)
    wanted = dataclasses.replace(world.wanted, hosts={**world.wanted.hosts, name: host})
    assert request(wanted, name)["commands"]["gpus"][0] == "nvidia-smi"


def test_addresses_are_read_in_each_of_their_forms():
    forms = ("00000000:C3:00.0", "0000:c3:00.0", XID, "GPU0000:C3:00.0: GPU is lost")
    assert {gpus.normal(form) for form in forms} == {"0000:c3:00.0"}
