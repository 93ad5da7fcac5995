"""A point-to-point sheet against the design: a good one passes, and each sort of mistake is called by its name."""

import csv
import functools
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supernode import design, packaged, spec
from supernode.design import artefacts, export
from supernode.verify.sheets import compare, table, topology
from supernode.verify.sheets.rows import Unreadable


@functools.cache
def built(name):
    folder = packaged.root() / "inventories" / name
    return design.build(
        spec.read({part: (folder / f"{part}.yml").read_text() for part in ("environment", "allocation")})
    )


def records(name="lab"):
    return list(csv.DictReader(io.StringIO("".join(export.cabling_csv(built(name))))))


def written(rows, delimiter=","):
    out = io.StringIO()
    writer = csv.DictWriter(out, rows[0], delimiter=delimiter, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def compared(rows, name="lab"):
    return compare.compare(built(name), table.read(written(rows)))


def cable(rows, device, port):
    return next(row for row in rows if (row["a_device"], row["a_port"]) == (device, port))


def test_the_designs_own_sheet_has_no_difference():
    found = compared(records())
    assert (found.differences, found.agreeing, found.designed) == ((), 88, 88)


def test_which_end_is_called_a_does_not_matter():
    rows = records()
    for row in rows[::2]:
        for part in ("device", "port"):
            row[f"a_{part}"], row[f"b_{part}"] = row[f"b_{part}"], row[f"a_{part}"]
    assert compared(rows).differences == ()


def test_swapped_ends_name_both_cables_and_both_lines():
    rows = records()
    one, two = cable(rows, "gpu-001", "rail0"), cable(rows, "gpu-002", "rail0")
    one["b_port"], two["b_port"] = two["b_port"], one["b_port"]
    (found,) = compared(rows).differences
    assert (found.kind, found.cables) == ("swapped", (one["cable"], two["cable"]))
    assert found.lines == (rows.index(one) + 2, rows.index(two) + 2)
    assert found.fix == "exchange the two plugs at su01-leaf0:swp2 and su01-leaf0:swp1"


def test_a_wrong_rail():
    rows = records()
    one, two = cable(rows, "gpu-003", "rail2"), cable(rows, "gpu-003", "rail3")
    one["b_device"], two["b_device"] = two["b_device"], one["b_device"]
    (found,) = compared(rows).differences
    assert (found.kind, found.cables) == ("wrong-rail", (one["cable"], two["cable"]))


def test_one_cable_on_a_wrong_rail_and_a_host_turned_by_one():
    rows = records()
    one = cable(rows, "gpu-001", "rail2")
    one["b_device"], one["b_port"] = "su01-leaf3", "swp40"
    turned = [cable(rows, "gpu-004", f"rail{rail}") for rail in range(8)]
    leaves = [(row["b_device"], row["b_port"]) for row in turned]
    for rail, row in enumerate(turned):
        row["b_device"], row["b_port"] = leaves[(rail + 1) % 8]
    first, second = compared(rows).differences
    assert (first.kind, first.fix) == ("wrong-rail", "move the plug from su01-leaf3:swp40 to su01-leaf2:swp1")
    assert second.kind == "wrong-rail"
    assert "the 8 rail cables of gpu-004" in second.what
    assert "are shifted by 1 rail(s)" in second.what


def test_one_plug_in_a_wrong_port_and_two_exchanged_hosts():
    rows = records()
    cable(rows, "gpu-001", "rail2")["b_port"] = "swp40"
    for rail in range(8):
        one, two = cable(rows, "gpu-005", f"rail{rail}"), cable(rows, "gpu-006", f"rail{rail}")
        one["b_port"], two["b_port"] = two["b_port"], one["b_port"]
    first, second = compared(rows).differences
    assert (first.kind, first.lines) == ("misplaced", (4,))
    assert (second.kind, len(second.cables), len(second.lines)) == ("swapped", 16, 16)
    assert second.what == "gpu-005 and gpu-006 are exchanged: all 8 rail cables of each are the other's"


def test_a_shifted_block_is_one_difference():
    rows = records()
    moved = [cable(rows, f"gpu-{number:03d}", "rail5") for number in range(4, 10)]
    for row in moved:
        row["b_port"] = f"swp{int(row['b_port'][3:]) + 1}"
    (found,) = compared(rows).differences
    assert found.kind == "shifted"
    assert found.what.endswith("are plugged 1 port too far on su01-leaf5")
    assert found.lines == tuple(rows.index(row) + 2 for row in moved)


def test_missing_extra_twice_and_unknown():
    rows = records()
    lost = rows.pop(80)
    rows.append({**rows[0], "cable": "X", "a_device": "su01-leaf0", "a_port": "swp90", "b_device": "su01-leaf1"})
    rows[-1]["b_port"] = "swp90"
    rows.append({**rows[0], "a_device": "gpu-0001"})
    rows.append(rows[3])
    found = compared(rows).differences
    assert [row.kind for row in found] == ["twice", "twice", "extra", "unknown", "missing"]
    assert [row.lines for row in found] == [(5, 91), (5, 91), (89,), (90,), ()]
    assert found[3].fix == "is it gpu-001?"
    assert found[4].cables == (lost["cable"],)


def test_another_length_says_in_which_way():
    rows = records()
    rows[0]["length_m"], rows[1]["length_m"], rows[2]["length_m"] = "3", "10", ""
    assert [row.what for row in compared(rows).differences] == [
        "cable C00001 is 3 m in the sheet, 7 m in the design: too short",
        "cable C00002 is 10 m in the sheet, 7 m in the design: longer",
    ]


MESSY = """\ufeffPoint to point;;;;;
rev 3;;;;;
Rack;A-NODE  Name;a-port;Z-Node Name;Z-Port;Länge
r01;GPU-001.lab.internal;Rail0;SU01-Leaf0;1/1;7,0 m
;;2;su01-leaf1;SWP1;
;;rail_2;Su01-leaf2;port 1;700 cm

"""


def test_a_messy_sheet_is_read():
    columns = {"a_device": "a-node name", "a_port": "A-Port", "b_device": "z-node name", "b_port": "z-port"}
    wanted = table.column_map({"columns": {**columns, "length_m": "länge"}})
    rows = table.read(table.decode(MESSY.encode()), wanted)
    assert [row.lines for row in rows] == [(4,), (5,), (6,)]
    assert {row.a_device for row in rows} == {"GPU-001.lab.internal"}
    found = compare.compare(built("lab"), rows, wanted)
    assert found.agreeing == 3
    assert {row.kind for row in found.differences} == {"missing"}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_every_usual_encoding(encoding):
    assert "Länge" in table.decode("Rack;Länge\n".encode(encoding))


@pytest.mark.parametrize(
    ("text", "wrong"),
    [("rack,port\nr01,1\n", "none of the first 50 lines has the headings"), ("", "none of the first 50 lines")],
)
def test_a_sheet_without_headings_is_refused(text, wrong):
    with pytest.raises(Unreadable, match=wrong):
        table.read(text)


def test_a_length_that_is_none_is_refused_with_its_line():
    rows = records()
    rows[4]["length_m"] = "long"
    with pytest.raises(Unreadable) as error:
        table.read(written(rows))
    assert error.value.problems == ((6, "'long' is no length in metres"),)


def test_a_map_is_checked_as_a_whole():
    with pytest.raises(Unreadable) as error:
        table.column_map({"columns": {"a_device": "A", "b_devize": "B", "a_port": 0}, "port": {}})
    said = {what for _, what in error.value.problems}
    assert "port is no key of a map" in said
    assert "columns.a_port: columns count from 1" in said
    assert "columns.b_device is missing" in said
    assert any(what.startswith("columns.b_devize is none of") for what in said)


def test_a_map_by_numbers_and_with_names_of_its_own():
    wanted = table.column_map(
        {
            "columns": {"a_device": 1, "a_port": 2, "b_device": 3, "b_port": 4},
            "devices": {"Node A": "gpu-001", "SW-1": "su01-leaf0"},
            "ports": {"slot 5": "rail0"},
        }
    )
    found = compare.compare(built("lab"), table.read("node a,SLOT 5,sw-1,swp1\n", wanted), wanted)
    assert found.agreeing == 1


def text_of(name, artefact):
    row = next(row for row in artefacts.of(built(name)) if row.name == artefact)
    return "".join(row.lines(built(name)))


def test_the_exported_topo_comes_back_as_the_design():
    text = text_of("lab-ib", "exports/fabric.topo")
    assert topology.is_topo(text)
    found = compare.compare(built("lab-ib"), topology.read(text))
    assert (found.differences, found.agreeing) == ((), len(built("lab-ib").links))


def test_two_exchanged_lines_of_a_topo_are_seen():
    lines = text_of("lab-ib", "exports/fabric.topo").splitlines()
    at = next(number for number, line in enumerate(lines) if "-> HCA_" in line)
    one, two = lines[at].split("-> "), lines[at + 1].split("-> ")
    lines[at], lines[at + 1] = f"{one[0]}-> {two[1]}", f"{two[0]}-> {one[1]}"
    (found,) = compare.compare(built("lab-ib"), topology.read("\n".join(lines))).differences
    assert (found.kind, found.lines) == ("swapped", (at + 1, at + 2))


# NVIDIA, UFM Cable Validation Tool documentation, "Topo File": the example as published.
DOCUMENTED = """MQM8700 sw-ufm-hdr01
   P2 -4x-50G-> HCA_mlx5_3 swx-ufm3-04 mlx5_0/P1
   P3 -4x-50G-> HCA_mlx5_3 swx-ufm3-04 mlx5_1/P1
   P40 -4x-50G-> MQM9700 sw-ufm-ndr05 P62
   P5 -4x-50G-> HCA_mlx5_3 swx-ufm3-05 mlx5_2/P1
MQM9700 sw-ufm-ndr05
   P61 -4x-50G-> MQM8700 sw-ufm-hdr01 P39
   P62 -4x-50G-> MQM8700 sw-ufm-hdr01 P40
"""


def test_the_documented_topo_is_read():
    rows = topology.read(DOCUMENTED)
    assert len(rows) == 5
    assert next(row for row in rows if row.a_port == "P62" or row.b_port == "P62").lines == (4, 8)
    assert (rows[0].a_device, rows[0].a_port, rows[0].b_port) == ("swx-ufm3-04", "mlx5_0/P1", "P2")


def test_a_broken_topo_is_refused_with_its_line():
    with pytest.raises(Unreadable) as error:
        topology.read(DOCUMENTED.replace("P3 -4x-50G->", "P3 4x"))
    assert error.value.problems[0][0] == 3


CELLS = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(
    ["gpu-001", "rail0", "su01-leaf0", "swp1", "1/1", '"', ""]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(CELLS, min_size=4, max_size=6), max_size=8), st.sampled_from(",;\t"))
def test_whatever_stands_in_a_sheet_it_is_compared_or_refused(cells, delimiter):
    head = delimiter.join(["a_device", "a_port", "b_device", "b_port", "length_m"])
    text = "\n".join([head, *(delimiter.join(row) for row in cells)])
    try:
        rows = topology.read(text) if topology.is_topo(text) else table.read(text)
    except Unreadable:
        return
    found = compare.compare(built("lab"), rows)
    assert found.rows == len(rows)
    last = len(io.StringIO(text, newline="").read().splitlines()) + 1
    assert all(1 <= line <= last for row in found.differences for line in row.lines)
