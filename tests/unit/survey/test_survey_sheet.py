"""Rack sheets as sites keep them: headings are matched, every problem is told with its line."""

import asyncio

import pytest

from supernode.bringup.survey import run, sheet
from supernode.errors import Refusal, WrongInput


def told(text, **wanted):
    with pytest.raises(Refusal) as caught:
        sheet.read("racks.csv", text, wanted)
    return [(p.path[0], p.what) for p in caught.value.problems]


GOOD = """Rack,Rack Unit,Hostname,Model,Serial Number,BMC IP
R01,U1,gpu-001,DGX H100,SN42A,10.0.0.1
R01,9,gpu-002,DGX H100,SN42B,10.0.0.2
"""


def test_common_headings_are_matched():
    one, other = sheet.read("racks.csv", GOOD)
    assert (one.slot, one.name, one.kind, one.bmc) == ("r01u01", "gpu-001", "DGX H100", "10.0.0.1")
    assert one.identity == {"system_serial": "SN42A"}
    assert (other.slot, other.line) == ("r01u09", 3)


def test_a_spreadsheets_export_is_read():
    text = "\ufeffCabinet;U Position;S/N\r\nA-7;17-24;SN42A\r\n;;\r\n"
    (row,) = sheet.read("racks.csv", text)
    assert (row.slot, row.identity) == ("a7u17", {"system_serial": "SN42A"})


def test_columns_are_mapped_by_hand():
    wanted = sheet.parse_map('rack=Stellplatz,unit=HE,serial="Serien Nr"')
    assert wanted == {"rack": "Stellplatz", "unit": "HE", "serial": "Serien Nr"}
    (row,) = sheet.read("racks.csv", "Stellplatz,HE,Serien Nr\n3,5,SN42A\n", wanted)
    assert (row.slot, row.identity) == ("r3u05", {"system_serial": "SN42A"})


@pytest.mark.parametrize("text", ["rack", "shelf=X", ""])
def test_a_map_that_maps_nothing_is_refused(text):
    with pytest.raises(WrongInput):
        sheet.parse_map(text or "=")


def test_every_problem_of_a_sheet_is_told_with_its_line():
    text = (
        "Rack,Unit,Name,Serial,UUID,BMC,BMC MAC\n"
        "R1,0,a,SN1A,,10.0.0.1,\n"
        "R1,9,b,To be filled by O.E.M.,,10.0.0.300,\n"
        "R1,17,c,SN1C,03000200-0400-0500-0006-000700080009,,02:00:00:00:00\n"
        "R1,17,d,sn1c,,10.0.0.1,\n"
        "R1,33,e,,,,\n"
    )
    found = told(text)
    assert [line for line, _ in found] == sorted(line for line, _ in found)
    for line, words in (
        (2, "unit '0' is no rack unit"),
        (3, "placeholder"),
        (3, "bmc '10.0.0.300' is no IPv4 address"),
        (4, "is a placeholder"),
        (4, "is no MAC address"),
        (5, "place r1u17 is there twice, first on line 4"),
        (5, "bmc 10.0.0.1 is there twice, first on line 2"),
        (6, "nothing tells this machine from another"),
    ):
        assert any(at == line and words in what for at, what in found), (line, words, found)


def test_missing_columns_are_told_at_once():
    assert told("Name,Colour\nx,blue\n") == [(1, "no column says the rack"), (1, "no column says the unit")]
    assert told("Rack,Unit\n1,1\n") == [(1, "no column tells one machine from another (serial, UUID, MAC, BMC)")]
    assert told("Rack,Unit,Serial\n1,1,SN1A\n", rack="Cabinet") == [(1, "there is no column 'Cabinet' (for rack)")]
    assert told("Rack,Unit,Serial\n") == [(1, "the sheet lists no machine")]


def test_a_sheet_alone_gives_machines_and_a_pool_and_says_what_is_lacking(tmp_path):
    rows = sheet.read("racks.csv", GOOD)
    found = asyncio.run(run.of_sheet(rows, None, tmp_path, "hall", lambda *_: None))
    assert found.findings == ()
    assert sorted(found.conclusion.machines.slots) == ["r01u01", "r01u09"]
    assert (
        found.conclusion.proposal.draft.values["pools"][0] | {"name": "gpu", "kind": "dgx-h100", "count": 2}
        == (found.conclusion.proposal.draft.values["pools"][0])
    )
    assert "fabric.leaf" in found.conclusion.proposal.lacking


def test_a_sheet_and_a_controller_that_contradict_each_other_are_listed(tmp_path):
    from supernode.bringup.survey import sources
    from supernode.bringup.survey.observed import ControllerSeen, Placement

    rows = sheet.read("racks.csv", GOOD)
    one = ControllerSeen("10.0.0.1", identity={"system_serial": "OTHER7"}, placement=Placement("r02", 1))
    other = ControllerSeen("10.0.0.2", why="no answer")
    merged, findings = sources.merge(rows, {one.address: one, other.address: other})
    assert [row.cause for row in findings] == [
        "line 2: the sheet says system_serial SN42A, the controller OTHER7",
        "line 2: the sheet says place r01u01, the controller r02u01",
        "controller 10.0.0.2 (line 3) could not be read: no answer",
    ]
    placed = [(row.placement.slot, row.identity["system_serial"]) for row in merged]
    assert placed == [("r02u01", "OTHER7"), ("r01u09", "SN42B")]
