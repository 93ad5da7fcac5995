"""An InfiniBand subnet against the design, on what the real tools print of ibsim's fabric, well and faulty."""

import dataclasses

import pytest
import subnets

from supernode.records import Verdict
from supernode.verify import gates
from supernode.verify.facts import infiniband
from supernode.verify.facts.device import DeviceFacts, Facts, parse, request
from supernode.verify.facts.raw import NotSeenError, Raw


@pytest.fixture(scope="module")
def case():
    return subnets.wanted()


def wrong(case, raw, **more):
    return [row for row in subnets.judged(case, subnets.facts(case, raw, **more)) if row.verdict is not Verdict.PASS]


def test_a_healthy_subnet_passes_at_every_place(case):
    rows = subnets.judged(case, subnets.facts(case, subnets.answers()))
    assert {row.verdict for row in rows} == {Verdict.PASS}
    counts = {check: sum(row.check == check for row in rows) for check in subnets.ASKED}
    assert counts == {"cabling": 32, "ib-links": 32, "subnet-manager": 2}


def test_each_fault_is_one_cause_that_names_its_cable(case):
    found = {}
    for row in wrong(case, subnets.answers("faults")):
        found.setdefault(row.cause, []).append(row)
    swap, narrow, pulled = sorted(found, key=lambda cause: found[cause][0].cables)
    assert "C00001 (from gpu-001:rail0) and C00002 (from gpu-001:rail1) are exchanged" in swap
    assert "su01-leaf0:p1" in swap
    assert "su01-leaf1:p1" in swap
    assert "LLDP" not in found[swap][0].hint + " ".join(found[swap][0].evidence)
    assert "2 of 4 lanes run" in narrow
    assert (found[narrow][0].check, found[narrow][0].cables) == ("ib-links", ("C00005",))
    assert "cable C00032 between su01-leaf3:p12 and spine02:p8 is missing" in pulled


@pytest.mark.parametrize("check", ["ib-links", "cabling"])
def test_without_the_check_its_fault_slips_through(case, check, monkeypatch):
    monkeypatch.setattr(gates, "GATES", {name: gate for name, gate in gates.GATES.items() if name != check})
    cables = {row.cables for row in wrong(case, subnets.answers("faults")) if row.verdict is Verdict.FAIL}
    assert (("C00005",) in cables) == (check != "ib-links")
    assert (("C00001", "C00002") in cables) == (check != "cabling")


def test_a_slower_link_and_one_that_is_not_active_are_told(case):
    raw = subnets.answers()
    slow = raw["ibnetdiscover"].out.replace("4x HDR - SW     2  2", "4x EDR - SW     2  2")
    assert slow != raw["ibnetdiscover"].out
    idle = raw["iblinkinfo"].out.replace("Active/", "Initialize/")
    (row,) = [r for r in wrong(case, {**raw, "ibnetdiscover": Raw(0, slow)}) if r.check == "ib-links"]
    assert "runs at EDR, not at HDR" in row.found
    rows = wrong(case, {**raw, "iblinkinfo": Raw(0, idle)})
    assert all("is Initialize, not Active" in row.found for row in rows)
    assert all("the manager has not brought it up" in row.hint for row in rows)
    assert len(rows) == 32


def test_a_link_whose_state_nobody_saw_is_not_taken_for_an_active_one(case):
    # as a tool of another form would print it
    other = Raw(0, subnets.answers()["iblinkinfo"].out.replace("==(", "--("), "")
    rows = [row for row in wrong(case, {**subnets.answers(), "iblinkinfo": other}) if row.check == "ib-links"]
    assert {row.place for row in rows} == set(case.cables())
    assert {(row.verdict, row.found) for row in rows} == {(Verdict.UNKNOWN, "state not seen")}


def test_an_adapter_that_was_never_named_is_a_stranger_at_its_cable(case):
    raw = subnets.answers()
    text = raw["ibnetdiscover"].out.replace("gpu-003 ibsim1", "MT4129 ConnectX7 Mellanox Technologies")
    rows = wrong(case, {**raw, "ibnetdiscover": Raw(0, text)})
    told = [row for row in rows if row.check == "cabling"]
    assert [row.cables for row in told] == [("C00010",)]
    assert "MT4129 ConnectX7" in told[0].cause


def test_the_aggregation_node_inside_a_switch_is_no_cable(case):
    raw = subnets.answers()
    extra = (
        "SW     2 65 0x0000000000200000 4x HDR - CA    90  1 0x0000000000900001"
        " ( 'su01-leaf0' - 'Mellanox Technologies Aggregation Node' )\n"
    )
    assert wrong(case, {**raw, "ibnetdiscover": Raw(0, raw["ibnetdiscover"].out + extra)}) == []


def test_another_master_than_the_designed_one_is_told_by_every_manager(case):
    raw = subnets.answers()
    other = raw["sminfo"].out.replace("0x100001", "0x100009")
    assert other != raw["sminfo"].out
    rows = wrong(case, {**raw, "sminfo": Raw(0, other)})
    assert [(row.check, row.place) for row in rows] == [("subnet-manager", "gpu-001"), ("subnet-manager", "gpu-002")]
    assert all(row.found.startswith("obeys gpu-002") for row in rows)


def test_no_manager_and_a_stopped_one_are_told(case):
    none = subnets.sample("sminfo-none", rc=255)
    rows = wrong(case, subnets.answers(sminfo=none))
    assert {row.found for row in rows} == {"no subnet manager answers it"}
    rows = wrong(case, subnets.answers(opensm=Raw(3, "inactive\n")))
    assert {row.found for row in rows} == {"its subnet manager is inactive"}


def test_the_second_manager_s_host_sees_it_where_the_first_does_not(case):
    rows = wrong(case, subnets.answers(), without=("gpu-001",))
    assert [(row.check, row.place, row.verdict) for row in rows] == [("subnet-manager", "gpu-001", Verdict.UNKNOWN)]


def test_a_subnet_that_nobody_saw_is_one_cause(case):
    devices = {name: DeviceFacts(name, reached=True, unseen={"subnet": "no adapter"}) for name in case.asked()}
    rows = subnets.judged(case, Facts(devices))
    assert {row.verdict for row in rows} == {Verdict.UNKNOWN}
    cabling = {row.cause for row in rows if row.check != "subnet-manager"}
    assert len(cabling) == 1
    assert "no subnet manager's host saw the subnet" in cabling.pop()


def test_only_managers_are_asked_for_the_subnet_and_nobody_for_what_it_has_not(case):
    keys = {name: set(request(case, name)["commands"]) for name in case.asked()}
    assert set(infiniband.COMMANDS) <= keys["gpu-001"]
    assert not set(infiniband.COMMANDS) & keys["gpu-003"]
    assert not any(key.startswith("ping") or key == "routes" for rows in keys.values() for key in rows)
    assert case.asked() == ("gpu-001", "gpu-002", "gpu-003", "gpu-004")
    silent = {row.check for row in gates.judge(case, Facts({}))}
    assert not silent & {"rails", "ports", "mtu", "rate", "fib"}


def test_what_a_tool_does_not_print_is_not_seen():
    with pytest.raises(NotSeenError):
        infiniband.parse(subnets.answers(ibnetdiscover=Raw(1, "", "ibnetdiscover: iberror: failed: discover failed")))
    with pytest.raises(NotSeenError):
        infiniband.parse(subnets.answers(ibnetdiscover=Raw(0, "")))
    assert parse("gpu-001", "nothing").subnet is None


def test_a_host_that_is_off_is_unknown_not_missing(case):
    """Its adapters have left the subnet; whether a cable is bad nobody saw."""
    raw = subnets.answers()
    lines = raw["ibnetdiscover"].out.splitlines(keepends=True)
    gone = []
    for line in lines:
        if line.startswith("CA") and "gpu-004" in line:
            continue
        gone.append(f"{line.split(' - ')[0]}      '{line.split(chr(39))[1]}'\n" if "gpu-004" in line else line)
    seen = subnets.facts(case, {**raw, "ibnetdiscover": Raw(0, "".join(gone))})
    off = dataclasses.replace(seen.of("gpu-004"), reached=False, ports=None, neighbours=None, why="no answer")
    found = subnets.judged(case, Facts({**seen.devices, "gpu-004": off}))
    rows = [row for row in found if row.verdict is not Verdict.PASS]
    assert {row.place for row in rows} == {"C00013", "C00014", "C00015", "C00016"}
    assert {row.verdict for row in rows} == {Verdict.UNKNOWN}
