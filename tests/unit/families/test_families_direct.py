"""Direct families against the table of published and measured figures, and against cabling written from definitions."""

import itertools

import numpy as np
import pytest

from supernode import families


def made(name, **kw):
    known = families.family(name)
    p = known.Parameters(family=name, **kw)
    return known, p, known.graph(p)


def proved(name, *, every=False, **kw):
    known, p, graph = made(name, **kw)
    return families.prove(graph, known.bisection(p, graph), None if every else known.sources(p))


def cabling(graph):
    """A graph's links as sorted pairs of cards, with their group's name."""
    return sorted((*sorted((int(row["a"]), int(row["b"]))), graph.groups[row["group"]].name) for row in graph.links)


@pytest.mark.parametrize(
    ("name", "kw", "ports", "links", "diameter", "mean", "cut"),
    [
        ("torus-chords", {"shape": (4, 4, 4)}, 7, 224, 3, 2.44, 64),
        ("hyperx", {"shape": (4, 4, 4)}, 9, 288, 3, 2.29, 64),
        ("hyperx", {"shape": (8, 8)}, 14, 448, 2, 1.78, 128),
        ("full-mesh", {"cards": 64}, 63, 2016, 1, 1.0, 1024),
        # The table's mean, 2.54, is of another choice of the card that has a global link; ports 7-8.
        ("dragonfly", {"a": 8, "h": 1, "g": 8}, 8, 252, 3, 2.56, 16),
    ],
)
def test_figures_of_64_cards(name, kw, ports, links, diameter, mean, cut):
    found = proved(name, **kw)
    assert (found.cards, found.ports_per_card, found.links, found.diameter) == (64, ports, links, diameter)
    assert (round(found.mean_hops, 2), found.bisection) == (mean, cut)


def test_the_two_readings_of_a_hierarchy_of_32_by_8():
    full = proved("hyperx", shape=(32, 8))
    assert (full.cards, full.ports_per_card, full.links, full.diameter) == (256, 38, 4864, 2)
    sparse = proved("dragonfly", a=8, h=4, g=32)
    assert (sparse.cards, sparse.ports_per_card, sparse.links, sparse.diameter) == (256, 11, 1392, 3)
    assert set(made("dragonfly", a=8, h=4, g=32)[2].degrees) == {10, 11}


@pytest.mark.parametrize(
    ("name", "shape", "ports", "diameter"),
    [
        ("torus", (8, 8, 8), 6, 12),
        ("torus-chords", (8, 8, 8), 7, 6),
        ("torus", (16, 16, 16), 6, 24),
        ("hyperx", (8, 8, 8), 21, 3),
        ("hyperx", (8, 8, 4, 4), 20, 4),
    ],
)
def test_larger_ones(name, shape, ports, diameter):
    found = proved(name, shape=shape)
    assert (found.cards, found.ports_per_card, found.diameter) == (np.prod(shape), ports, diameter)


@pytest.mark.parametrize(
    ("name", "kw"),
    [
        ("torus-chords", {"shape": (2, 2)}),
        ("torus-chords", {"shape": (4,)}),
        ("torus-chords", {"shape": (6, 4)}),
        ("torus-chords", {"shape": (4, 2, 4)}),
        ("hyperx", {"shape": (3, 4)}),
        ("hyperx", {"shape": (2, 2, 3, 2)}),
        ("full-mesh", {"cards": 5}),
        ("dragonfly", {"a": 4, "h": 2, "g": 9}),
        ("dragonfly", {"a": 4, "h": 2, "g": 6}),
        ("dragonfly", {"a": 3, "h": 4, "g": 5, "pair_links": 3}),
        ("dragonfly", {"a": 1, "h": 3, "g": 4}),
    ],
)
def test_symmetry_says_what_all_pairs_say(name, kw):
    one, every = proved(name, **kw), proved(name, every=True, **kw)
    assert (one.diameter, one.mean_hops) == (every.diameter, pytest.approx(every.mean_hops))


@pytest.mark.parametrize(("a", "h", "g"), [(2, 1, 3), (4, 2, 9), (8, 4, 32), (5, 3, 7)])
def test_a_dragonfly_joins_each_pair_of_groups_once_and_loads_cards_evenly(a, h, g):
    graph = made("dragonfly", a=a, h=h, g=g)[2]
    across = graph.links[graph.links["group"] == 1]
    pairs = sorted(tuple(sorted((int(row["a"]) // a, int(row["b"]) // a))) for row in across)
    assert pairs == list(itertools.combinations(range(g), 2))
    ends = np.bincount(np.concatenate([across["a"], across["b"]]), minlength=a * g)
    assert ends.max() - ends.min() <= 1
    assert ends.max() <= h


def test_chords_of_four_by_two_by_hand():
    # Cards number the first dimension fastest: (x, y) is x + 4 y; the antipode of (x, y) is (x+2, y+1).
    torus = [(0, 1), (1, 2), (2, 3), (0, 3), (4, 5), (5, 6), (6, 7), (4, 7)]
    expected = [(*pair, "x") for pair in torus] + [(at, at + 4, "y") for at in range(4)]
    expected += [(0, 6, "chord"), (1, 7, "chord"), (2, 4, "chord"), (3, 5, "chord")]
    assert cabling(made("torus-chords", shape=(4, 2))[2]) == sorted(expected)


def test_hyperx_of_three_by_two_by_hand():
    # Ahn et al.: cards that differ in one coordinate only are linked.
    expected = [(0, 1, "x"), (0, 2, "x"), (1, 2, "x"), (3, 4, "x"), (3, 5, "x"), (4, 5, "x")]
    expected += [(0, 3, "y"), (1, 4, "y"), (2, 5, "y")]
    assert cabling(made("hyperx", shape=(3, 2))[2]) == sorted(expected)


def test_full_mesh_of_four_by_hand():
    expected = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    assert cabling(made("full-mesh", cards=4)[2]) == [(*pair, "mesh") for pair in expected]


def test_dragonfly_of_three_pairs_by_hand():
    # Groups {0,1} {2,3} {4,5}; the first card of each leads to the next group, the second to the one before it.
    expected = [(0, 1, "local"), (2, 3, "local"), (4, 5, "local")]
    expected += [(0, 3, "global"), (2, 5, "global"), (1, 4, "global")]
    assert cabling(made("dragonfly", a=2, h=1, g=3)[2]) == sorted(expected)


@pytest.mark.parametrize(
    ("name", "kw", "reason"),
    [
        ("torus-chords", {"shape": (4, 5)}, "odd size 5"),
        ("torus-chords", {"shape": (2,)}, "linked already"),
        ("torus", {"shape": (65536, 65536)}, "at most"),
        ("hyperx", {"shape": (4096, 4096)}, "at most"),
        ("hyperx", {"shape": (1, 4)}, "shape"),
        ("full-mesh", {"cards": 1}, "cards"),
        ("dragonfly", {"a": 8, "h": 3, "g": 32}, "32 groups need 31 global links a group; a=8 cards with h=3 have 24"),
        ("dragonfly", {"a": 8, "h": 4, "g": 32, "pair_links": 2}, "need 62"),
    ],
)
def test_what_contradicts_itself_is_refused_with_the_reason(name, kw, reason):
    with pytest.raises(ValueError, match=reason):
        families.family(name).Parameters(family=name, **kw)
