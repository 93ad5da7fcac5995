"""The torus against the table of published and measured figures, and against its closed form."""

import pytest

from supernode import families

TORUS = families.family("torus")


def proved(*shape, sources=True):
    p = TORUS.Parameters(family="torus", shape=shape)
    graph = TORUS.graph(p)
    return families.prove(graph, TORUS.bisection(p, graph), TORUS.sources(p) if sources else None)


@pytest.mark.parametrize(
    ("shape", "ports", "links", "diameter", "mean", "cut"),
    [
        ((4, 4, 4), 6, 192, 6, 3.05, 32),
        ((8, 8), 4, 128, 8, 4.06, 16),
    ],
)
def test_figures_of_64_cards(shape, ports, links, diameter, mean, cut):
    found = proved(*shape)
    assert (found.ports_per_card, found.links, found.diameter) == (ports, links, diameter)
    assert round(found.mean_hops, 2) == mean
    assert found.bisection == cut


@pytest.mark.parametrize(("shape", "cut"), [((5, 5, 5), 50), ((3,), 2), ((4, 3), 6), ((6, 4), 8)])
def test_the_cut_is_twice_the_cards_over_the_longest_even_size(shape, cut):
    assert proved(*shape).bisection == cut


@pytest.mark.parametrize("shape", [(2,), (3,), (2, 3), (5, 4), (2, 2, 2), (4, 3, 2)])
def test_symmetry_says_what_all_pairs_say(shape):
    one, every = proved(*shape), proved(*shape, sources=False)
    assert (one.diameter, one.mean_hops) == (every.diameter, pytest.approx(every.mean_hops))
    assert one.diameter == sum(length // 2 for length in shape)


@pytest.mark.parametrize("shape", [(2, 2), (3, 3), (4, 2, 3)])
def test_no_port_is_used_twice_and_a_port_tells_its_dimension(shape):
    graph = TORUS.graph(TORUS.Parameters(family="torus", shape=shape))
    ends = [(int(row[end]), int(row[f"{end}_port"])) for row in graph.links for end in ("a", "b")]
    assert len(ends) == len(set(ends))
    for row in graph.links:
        assert row["a_port"] // 2 == row["b_port"] // 2 == row["group"]


def test_a_cut_cable_is_seen():
    graph = TORUS.graph(TORUS.Parameters(family="torus", shape=(3,)))
    lone = families.Graph(3, (), graph.links[1:2], graph.groups)
    with pytest.raises(ValueError, match="does not reach"):
        families.prove(lone, 0.0)


def test_behind_switches_each_card_is_a_switch():
    p = TORUS.Parameters(family="torus", shape=(4, 4))
    found = families.prove(families.behind_switches(TORUS.graph(p), 2), 0.0)
    assert (found.cards, found.switches, found.ports_per_card, found.links) == (32, (16,), 1, 32 + 32)
    assert found.diameter == 4 + 1  # switches passed


@pytest.mark.parametrize("shape", [(1,), (), (2,) * 7, (4, 0)])
def test_no_torus_has_such_a_shape(shape):
    with pytest.raises(ValueError, match="shape"):
        TORUS.Parameters(family="torus", shape=shape)


def test_candidates_have_the_size():
    assert [p.shape for p in TORUS.candidates(64)] == [(8, 8), (4, 4, 4)]
    assert all(TORUS.size(p) == 60 for p in TORUS.candidates(60))
    assert list(TORUS.candidates(7)) == []
