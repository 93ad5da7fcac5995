"""The pictures of a fabric and of its racks: whole, in place, legible, and the wrong cable plain to see."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from supernode import design, spec
from supernode.design.pictures import drawing, fabric, racks, summary

from . import pictures
from .sites import large

INVENTORIES = Path(__file__).resolve().parents[3] / "inventories"
CASES = ("lab", "lab-ib", "lab-hybrid", "examples/superpod-h100-1su", "examples/superpod-h100-4su")


def built(case):
    texts = {path.stem: path.read_text() for path in sorted((INVENTORIES / case).glob("*.yml"))}
    return design.build(spec.read({k: texts[k] for k in ("environment", "allocation", "machines") if k in texts}))


def grown(count, **wishes):
    return design.build(spec.read({"environment": large(count=count, **wishes)}))


@pytest.fixture(scope="module")
def lab():
    return built("lab")


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("picture", [fabric, racks])
def test_all_texts_lie_on_the_canvas_and_none_on_another(case, picture):
    root = pictures.tree(picture.lines(built(case)))
    assert pictures.canvas(root)[0] == drawing.WIDTH
    assert pictures.outside(root) == []
    assert pictures.overlapping(root) == []
    assert min(float(element.get("font-size")) for element in root.iter(f"{pictures.SVG}text")) >= 9


@pytest.mark.parametrize("count", [1, 12, 40, 63])
def test_sizes_between_the_examples_are_legible_too(count):
    found = grown(count)
    for picture in (fabric, racks):
        root = pictures.tree(picture.lines(found))
        assert pictures.outside(root) == []
        assert pictures.overlapping(root) == []


def test_what_tells_of_a_text_outside_and_of_two_on_each_other_can_tell():
    body = [drawing.text(1190, 20, "too far right"), drawing.text(5, 50, "one"), drawing.text(8, 52, "two")]
    root = pictures.tree(drawing.document(100, "bad", body))
    assert [row[0] for row in pictures.outside(root)] == ["too far right"]
    assert pictures.overlapping(root) == [("one", "two")]


@pytest.mark.parametrize("picture", [fabric, racks])
def test_every_device_is_drawn_once(lab, picture):
    said = Counter(pictures.words(pictures.tree(picture.lines(lab))))
    names = [host.name for host in lab.hosts] + [switch.name for switch in lab.switches]
    assert {name: said[name] for name in names} == dict.fromkeys(names, 1)


def test_every_cable_is_drawn_once_from_its_one_end_to_its_other(lab):
    drawn = [
        path.find(f"{pictures.SVG}title").text for path in pictures.paths(pictures.tree(fabric.lines(lab)), "cable")
    ]
    assert len(drawn) == len(lab.links) == 88
    ends = {f"{link.cable} {link.a_device}:{link.a_port} - {link.b_device}:{link.b_port}" for link in lab.links}
    assert {said.partition(",")[0] for said in drawn} == ends


def test_a_cable_touches_both_its_cards(lab):
    boxes, _ = fabric._placed(fabric._ordered(lab), list(lab.switches))
    ends = drawing.anchors(boxes, lab.links, {host.name for host in lab.hosts})
    for link in lab.links:
        for device, (x, y) in zip((link.a_device, link.b_device), drawing.ends(link, ends), strict=True):
            box = boxes[device]
            assert box.x <= x <= box.x + box.width
            assert y in (box.y, box.bottom)


def test_a_wrong_cable_is_drawn_once_and_unlike_all_others(lab):
    cable = lab.links[5].cable
    root = pictures.tree(fabric.lines(lab, {cable: "swapped"}))
    (wrong,) = pictures.paths(root, "cable wrong")
    others = pictures.paths(root, "cable")
    assert len(others) == len(lab.links) - 1
    assert not any(cable in path.find(f"{pictures.SVG}title").text for path in others)
    assert wrong.get("stroke") == drawing.WRONG
    assert float(wrong.get("stroke-width")) > 3 * max(float(path.get("stroke-width")) for path in others)
    assert wrong.get("stroke-dasharray") not in {path.get("stroke-dasharray") for path in others}
    assert f"{cable} swapped" in pictures.words(root)
    assert "wrong" in pictures.words(root)
    assert "wrong" not in pictures.words(pictures.tree(fabric.lines(lab)))


def test_a_large_fabric_says_its_wrong_cable_and_marks_its_bundle():
    found = built("examples/superpod-h100-4su")
    link = next(link for link in found.links if link.a_device == "gpu-040" and link.rail == 3)
    root = pictures.tree(fabric.lines(found, {link.cable: "missing"}))
    assert len(pictures.paths(root, "bundle wrong")) == 1
    assert f"{link.cable} missing: gpu-040:rail3 - {link.b_device}:{link.b_port}" in pictures.words(root)


def test_a_large_fabric_is_drawn_in_units_that_add_up():
    found = built("examples/superpod-h100-4su")
    said = Counter(pictures.words(pictures.tree(fabric.lines(found))))
    assert said["256 cables"] == 8
    assert said["32 hosts"] == 4
    assert said["16 spines"] == 1
    rows = summary.blocks(found)
    assert sum(row.count * row.down for row in rows) + sum(row.count * row.up for row in rows) == len(found.links)
    assert sum(row.count * row.hosts for row in rows) == len(found.hosts)


def test_units_that_are_alike_are_one_column():
    alike = summary.Block(1, 100, 32, 8, 256, 256)
    last = summary.Block(101, 101, 7, 8, 56, 256)
    shown = summary.drawn_blocks([alike, last])
    assert [(block.first, block.last) for block in shown] == [(1, 1), (2, 100), (101, 101)]
    assert [block.first for block in summary.drawn_blocks([summary.Block(1, 4, 32, 8, 256, 256)])] == [1, 2, 3, 4]


def test_racks_that_are_alike_are_drawn_once_with_their_count():
    root = pictures.tree(racks.lines(built("examples/superpod-h100-4su")))
    heads = [said for said in pictures.words(root) if said.startswith("rack ")]
    assert sum(int(said.rpartition("x ")[2]) if " x " in said else 1 for said in heads) == 36
    assert any(" x " in said for said in heads)


def test_a_rack_over_its_power_says_so():
    text = (INVENTORIES / "lab/environment.yml").read_text()
    watts = built("lab").environment.racks[0].model_copy(update={"power_w": 1000})
    environment = spec.read({"environment": text}).environment
    stand = racks.Stand(watts, (0,), 1)
    found = built("lab")
    assert environment.racks[0].power_w is None
    assert "OVER" in "".join(racks._rack(found, stand, 0, 0, 700))
    assert "OVER" not in "".join(racks.lines(found))


@pytest.mark.parametrize("picture", [fabric, racks])
def test_the_same_design_gives_the_same_bytes(picture):
    assert list(picture.lines(built("lab"))) == list(picture.lines(built("lab")))


def test_what_a_name_may_hold_does_not_break_the_picture():
    said = '<b a="1">&amp;'
    root = pictures.tree(
        drawing.document(80, said, [drawing.text(1, 20, said), drawing.stroke("M0 0", "red", 1, said=said)])
    )
    assert pictures.words(root) == [said]
    assert {element.text for element in root.iter(f"{pictures.SVG}title")} == {said}


def test_a_large_design_is_drawn_quickly():
    found = built("examples/superpod-h100-4su")
    for picture in (fabric, racks):
        list(picture.lines(found))


# Viénot, Brettel and Mollon 1999: what a reader without red or without green cones sees, in linear light.
_BLIND = {
    "none": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.11238, 0.88762, 0), (0.11238, 0.88762, 0), (0.00401, -0.00401, 1)),
    "deuteranopia": ((0.29275, 0.70725, 0), (0.29275, 0.70725, 0), (-0.02234, 0.02234, 1)),
}


def _lab(colour, matrix):
    light = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    light = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in light]
    r, g, b = (min(max(sum(m * v for m, v in zip(row, light, strict=True)), 0), 1) for row in matrix)
    x, y, z = (
        0.4124 * r + 0.3576 * g + 0.1805 * b,
        0.2126 * r + 0.7152 * g + 0.0722 * b,
        0.0193 * r + 0.1192 * g + 0.9505 * b,
    )
    f = [v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in (x / 0.9505, y, z / 1.089)]
    return 116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])


def _apart(one, other, eyes):
    return sum((a - b) ** 2 for a, b in zip(_lab(one, _BLIND[eyes]), _lab(other, _BLIND[eyes]), strict=True)) ** 0.5


@pytest.mark.parametrize("eyes", _BLIND)
def test_any_two_rails_are_told_apart_by_all_eyes(eyes):
    pairs = [(a, b) for i, a in enumerate(drawing.RAILS) for b in drawing.RAILS[i + 1 :]]
    assert len(pairs) == 28
    assert min(_apart(a, b, eyes) for a, b in pairs) > 20


def test_what_measures_colours_knows_a_pair_that_is_alike_without_green_cones():
    assert _apart("#d00000", "#6a6a00", "none") > 70
    assert _apart("#d00000", "#6a6a00", "deuteranopia") < 10


def test_neighbouring_rails_differ_by_their_dash_too():
    assert all(drawing.rail_dash(rail) != drawing.rail_dash(rail + 1) for rail in range(8))


def repeated(found, times):
    """A design of many copies of another one, each with its own racks, as columns alone: nothing is allocated."""
    columns, environment = found.columns, found.environment
    hosts, switches, links = (np.tile(table, times) for table in (columns.hosts, columns.switches, columns.links))
    copy = {
        len(table): np.repeat(np.arange(times), len(table))
        for table in (columns.hosts, columns.switches, columns.links)
    }
    n_hosts, n_switches, n_links, n_racks = (
        len(columns.hosts),
        len(columns.switches),
        len(columns.links),
        len(columns.racks),
    )
    hosts["su"] += (copy[n_hosts] * columns.hosts["su"].max()).astype("u4")
    for table in (hosts, switches):
        table["rack"] += (copy[len(table) // times] * n_racks).astype("u4")
    links["a"] += (copy[n_links] * np.where(links["uplink"], n_switches, n_hosts)).astype("u4")
    links["b"] += (copy[n_links] * n_switches).astype("u4")
    switches["su"] += np.where(switches["su"] > 0, copy[n_switches] * columns.hosts["su"].max(), 0).astype("u4")
    racks_ = tuple(
        rack.model_copy(update={"name": f"{rack.name}c{at}"}) for at in range(times) for rack in environment.racks
    )
    whole = environment.model_copy(update={"racks": racks_})
    names = tuple(rack.name for rack in racks_)
    return replace(
        found, environment=whole, columns=replace(columns, hosts=hosts, switches=switches, links=links, racks=names)
    )


def test_a_million_gpus_are_drawn_in_summary():
    found = repeated(built("examples/superpod-h100-4su"), 1000)
    assert len(found.columns.hosts) == 128_000
    drawn = {picture: pictures.tree(picture.lines(found)) for picture in (fabric, racks)}
    said = pictures.words(drawn[fabric])
    assert "128,000 hosts" in said[1]
    assert sum(int(words[2:].replace(",", "")) for words in said if words.startswith("x ")) == 3999
    for root in drawn.values():
        assert (pictures.outside(root), pictures.overlapping(root)) == ([], [])
