"""Families with switches and light paths against published counts, and against cabling written from definitions."""

import numpy as np
import pytest

from supernode import families
from supernode.families.known import bridged, ocs_cubes


def made(name, **kw):
    known = families.family(name)
    p = known.Parameters(family=name, **kw)
    return known, p, known.graph(p)


def proved(name, *, every=False, **kw):
    known, p, graph = made(name, **kw)
    return families.prove(graph, known.bisection(p, graph), None if every else known.sources(p))


def pairs(graph):
    return sorted((int(row["a"]), int(row["b"])) for row in graph.links)


CLOUDMATRIX = {"nodes": 48, "node_cards": 8, "l1": 7, "l2": 16, "card_links": 2, "l2_ports": 48}


def test_nvl72_has_a_link_from_each_card_to_each_of_18_chips():
    found = proved("switched", cards=72, switches=18)
    assert (found.switches, found.ports_per_card, found.links, found.diameter) == ((18,), 18, 1296, 1)
    assert found.bisection == 36 * 18
    assert set(made("switched", cards=72, switches=18)[2].degrees[72:]) == {72}


def test_hgx_h100_has_18_links_over_four_chips_unevenly():
    graph = made("switched", cards=8, switches=4, links=(5, 4, 4, 5))[2]
    assert list(graph.degrees) == [18] * 8 + [40, 32, 32, 40]
    assert proved("switched", cards=8, switches=4, links=(5, 4, 4, 5)).bisection == 4 * 18


def test_cloudmatrix384():
    # 48 nodes of 7 chips; 7 sub-planes of 16; 14 links a card; every chip 16 down and 16 up; second tier 48 ports.
    found = proved("two-tier", **CLOUDMATRIX)
    assert (found.cards, found.switches, found.ports_per_card) == (384, (336, 112), 14)
    assert (found.links, found.diameter, found.oversubscription) == (384 * 14 + 336 * 16, 3, (1.0,))
    graph = made("two-tier", **CLOUDMATRIX)[2]
    assert set(graph.degrees[384 : 384 + 336]) == {32}
    assert set(graph.degrees[384 + 336 :]) == {48}


def test_a_chip_of_cloudmatrix384_has_one_uplink_to_each_switch_of_its_sub_plane():
    graph = made("two-tier", **CLOUDMATRIX)[2]
    up = graph.links[graph.links["group"] == 1]
    chip, switch = up["a"] - 384, up["b"] - 384 - 336
    assert np.array_equal(chip % 7, switch // 16)
    assert len(np.unique(np.stack([chip, switch]), axis=1).T) == len(up) == 336 * 16


def test_two_tier_of_two_nodes_by_hand():
    # Cards 0-3, chips 4-7 (two a node), switches 8 and 9 (one a sub-plane).
    expected = [(0, 4), (0, 5), (1, 4), (1, 5), (2, 6), (2, 7), (3, 6), (3, 7), (4, 8), (5, 9), (6, 8), (7, 9)]
    assert pairs(made("two-tier", nodes=2, node_cards=2, l1=2, l2=1)[2]) == expected


def test_switched_by_hand():
    assert pairs(made("switched", cards=2, switches=2, links=(2, 1))[2]) == [
        (0, 2),
        (0, 2),
        (0, 3),
        (1, 2),
        (1, 2),
        (1, 3),
    ]


def test_a_closed_cube_has_192_links_48_of_them_through_an_ocs():
    _, p, graph = made("ocs-cubes", cubes=(1, 1, 1))
    optical = graph.links["group"] % 2 == 1
    assert (len(graph.links), int(optical.sum())) == (192, 48)
    assert len(ocs_cubes.runs(p, graph)) == 96  # 6 faces of 16


def test_tpu_v4_has_48_ocses_of_128_ports_and_6144_optical_runs():
    _, p, graph = made("ocs-cubes", cubes=(4, 4, 4))
    runs = ocs_cubes.runs(p, graph)
    assert (graph.cards, ocs_cubes.ocses(p), len(runs)) == (4096, 48, 6144)
    assert list(np.bincount(runs["ocs"])) == [128] * 48
    assert len(np.unique(runs[["ocs", "ocs_port"]])) == len(np.unique(runs[["card", "card_port"]])) == 6144


def test_both_ends_of_a_link_are_on_one_ocs_and_opposite_faces():
    _, p, graph = made("ocs-cubes", cubes=(2, 1, 3))
    runs = ocs_cubes.runs(p, graph).reshape(-1, 2)
    assert np.array_equal(runs["ocs"][:, 0], runs["ocs"][:, 1])
    assert np.all(runs["ocs_port"] % 2 == [0, 1])


def test_cubes_make_the_torus_of_their_size():
    joined = proved("ocs-cubes", cubes=(2, 2, 1))
    torus = families.family("torus")
    p = torus.Parameters(family="torus", shape=(8, 8, 4))
    plain = families.prove(torus.graph(p), 0.0, (0,))
    assert (joined.diameter, joined.mean_hops, joined.links) == (plain.diameter, plain.mean_hops, plain.links)


def test_links_between_two_cubes_of_27_by_hand():
    # 6x3x3, cards x + 6y + 18z: in x a cube ends at x = 2 and x = 5; y and z wrap inside their cube's own faces.
    graph = made("ocs-cubes", cubes=(2, 1, 1), edge=3)[2]
    names = [group.name for group in graph.groups]
    joined = graph.links[graph.links["group"] == names.index("x-ocs")]
    expected = [(2 + row, 3 + row) for row in range(0, 54, 6)] + [(5 + row, row) for row in range(0, 54, 6)]
    assert sorted((int(row["a"]), int(row["b"])) for row in joined) == sorted(expected)


def test_512_cards_direct_and_bridged():
    _, p, graph = made("bridged", groups=16, shape=(8, 4), planes=8, up=4)
    found = proved("bridged", groups=16, shape=(8, 4), planes=8, up=4)
    assert (found.cards, found.switches, found.ports_per_card) == (512, (8,), 7 + 3 + 4)
    assert (found.diameter, found.links) == (3, 16 * (32 * 10 // 2) + 512 * 4)
    assert bridged.between_groups(p) == 128
    leaving = np.arange(graph.vertices) < 32
    across = graph.links[graph.links["group"] == 2]
    assert bridged.between_groups(p) == int(np.sum(leaving[across["a"]] != leaving[across["b"]]))
    assert found.bisection == 8 * 128
    assert set(graph.degrees[512:]) == {256}


def test_bridged_by_hand():
    # Two groups of four in full mesh, two planes: bridge 8 takes cards 0 and 2 of each group, bridge 9 cards 1 and 3.
    mesh = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    expected = mesh + [(4 + a, 4 + b) for a, b in mesh]
    expected += [(0, 8), (2, 8), (4, 8), (6, 8), (1, 9), (3, 9), (5, 9), (7, 9)]
    assert pairs(made("bridged", groups=2, shape=(4,), planes=2)[2]) == sorted(expected)


def test_fat_tree_of_four_ports_by_hand():
    # Al-Fares et al., figure 3: k = 4; ends 0-15, edge 16-23, aggregation 24-31, core 32-35.
    expected = [(end, 16 + end // 2) for end in range(16)]
    for pod in range(0, 8, 2):
        expected += [(16 + pod, 24 + pod), (16 + pod, 25 + pod), (17 + pod, 24 + pod), (17 + pod, 25 + pod)]
        expected += [(24 + pod, 32), (24 + pod, 33), (25 + pod, 34), (25 + pod, 35)]
    assert pairs(made("fat-tree", radix=4, tiers=3)[2]) == sorted(expected)


@pytest.mark.parametrize(
    ("radix", "tiers", "ends", "switches"),
    [(64, 2, 2048, (64, 32)), (144, 2, 10368, (144, 72)), (64, 3, 65536, (2048, 2048, 1024))],
)
def test_fat_trees_have_the_size_of_the_formula(radix, tiers, ends, switches):
    found = proved("fat-tree", radix=radix, tiers=tiers)
    assert (found.cards, found.switches, found.diameter) == (ends, switches, 2 * tiers - 1)
    assert set(made("fat-tree", radix=radix, tiers=tiers)[2].degrees[ends:]) == {radix}
    assert found.oversubscription == (1.0,) * (tiers - 1)


def test_leaf_spine_by_hand():
    # Ends 0-3 on leaves 4 and 5; spine 6, two links each.
    expected = [(0, 4), (1, 4), (2, 5), (3, 5), (4, 6), (4, 6), (5, 6), (5, 6)]
    assert pairs(made("leaf-spine", leaves=2, leaf_ends=2, spines=1, pair_links=2)[2]) == expected


def test_the_oversubscription_of_hpn7_is_measured():
    # 128 x 200G down, 60 x 400G up.
    kw = {"leaves": 16, "leaf_ends": 128, "spines": 60, "up_rate": 2.0, "oversubscription": 1.067}
    found = proved("leaf-spine", **kw)
    assert found.oversubscription == (pytest.approx(128 * 200 / (60 * 400)),)
    assert found.bisection == 8 * 60 * 2


@pytest.mark.parametrize(
    ("name", "kw"),
    [
        ("switched", {"cards": 5, "switches": 2, "links": (1, 3)}),
        ("two-tier", {"nodes": 3, "node_cards": 2, "l1": 2, "l2": 3, "card_links": 2}),
        ("ocs-cubes", {"cubes": (2, 1, 1), "edge": 3}),
        ("bridged", {"groups": 3, "shape": (2, 3), "planes": 3, "plane_bridges": 2, "up": 2}),
        ("bridged", {"groups": 2, "shape": (4,), "planes": 4}),
        ("fat-tree", {"radix": 4, "tiers": 3}),
        ("fat-tree", {"radix": 6}),
        ("leaf-spine", {"leaves": 3, "leaf_ends": 4, "spines": 2, "oversubscription": 2.0}),
    ],
)
def test_symmetry_says_what_all_pairs_say(name, kw):
    one, every = proved(name, **kw), proved(name, every=True, **kw)
    assert (one.diameter, one.mean_hops) == (every.diameter, pytest.approx(every.mean_hops))


@pytest.mark.parametrize(
    ("name", "kw", "reason"),
    [
        ("switched", {"cards": 8, "switches": 4, "links": (5, 4, 5)}, "names 3 numbers for 4 switches"),
        ("switched", {"cards": 73, "switches": 18, "switch_ports": 72}, "needs 73 ports for 73 cards; it has 72"),
        ("two-tier", {**CLOUDMATRIX, "nodes": 49}, "needs 49 ports for 49 nodes; it has 48"),
        ("ocs-cubes", {"cubes": (5, 4, 4)}, "needs 160 ports, two for each of 80 cubes; it has 128"),
        ("bridged", {"groups": 16, "shape": (32,), "planes": 5}, "not divided evenly by 5 planes"),
        ("bridged", {"groups": 2, "shape": (4,), "planes": 2, "plane_bridges": 2}, "1 links up are not divided"),
        ("bridged", {"groups": 16, "shape": (32,), "planes": 8, "bridge_ports": 63}, "needs 64 ports; it has 63"),
        ("switched", {"cards": 2, "switches": 1024, "links": 256}, "262,144 ports"),
        ("leaf-spine", {"leaves": 4096, "leaf_ends": 64, "spines": 1, "pair_links": 64}, "262,144 ports"),
        ("fat-tree", {"radix": 5}, "radix 5 is odd"),
        ("fat-tree", {"radix": 512, "tiers": 3}, "at most"),
        ("leaf-spine", {"leaves": 8, "leaf_ends": 32, "spines": 8}, "stated as 1, but 32 ends over 8 uplinks"),
    ],
)
def test_what_contradicts_itself_is_refused_with_the_reason(name, kw, reason):
    with pytest.raises(ValueError, match=reason):
        families.family(name).Parameters(family=name, **kw)
