"""The pictures of a scale-up domain: every card and link of a small one, blocks that add up of a large one."""

from collections import Counter

import numpy as np
import pytest

from supernode.design.pictures import blocks, domain, drawing
from supernode.design.pictures.places import HEIGHT, Hint, places
from supernode.families import Graph, Group, family, linked

from . import pictures


def torus(*shape):
    module = family("torus")
    parameters = module.Parameters(family="torus", shape=shape)
    return module.graph(parameters), Hint.of(parameters)


def mesh(cards):
    a, b = np.triu_indices(cards, 1)
    return Graph(cards, (), linked(a, 0, b, 0, 0), (Group("mesh"),)), Hint()


def grouped(count, size):
    """Groups meshed inside, joined in a ring by their first cards."""
    first = np.arange(count) * size
    a, b = np.triu_indices(size, 1)
    inside = linked((first[:, None] + a).ravel(), 0, (first[:, None] + b).ravel(), 0, 0)
    ring = linked(first, 0, np.roll(first, -1), 0, 1)
    return Graph(count * size, (), np.concatenate([inside, ring]), (Group("local"), Group("global"))), Hint(group=size)


def switched(cards, switches):
    a = np.repeat(np.arange(cards), switches)
    down = linked(a, 0, cards + np.tile(np.arange(switches), cards), 0, 0)
    return Graph(cards, (switches,), down, (Group("card-switch"),)), Hint()


SMALL = {
    "torus 4x4x4": torus(4, 4, 4),
    "torus 8x8": torus(8, 8),
    "torus of five dimensions": torus(2, 2, 2, 2, 4),
    "ring": torus(12),
    "mesh": mesh(16),
    "groups": grouped(8, 8),
    "switched": switched(64, 8),
    "two cards": mesh(2),
}
LARGE = {
    "torus": torus(16, 16, 16),
    "mesh": mesh(97),
    "groups": grouped(36, 8),
    "switched": switched(256, 18),
    "ring of a prime": torus(4099),
}


@pytest.mark.parametrize("name", SMALL)
def test_a_small_domain_has_each_card_switch_and_link_once(name):
    graph, hint = SMALL[name]
    root = pictures.tree(domain.lines(graph, hint, name))
    drawn = Counter(element.get("class") for element in root.iter(f"{pictures.SVG}g"))
    assert (drawn["card"], drawn["switch"]) == (graph.cards, sum(graph.tiers))
    said = Counter(path.find(f"{pictures.SVG}title").text for path in pictures.paths(root, "link"))
    assert sum(said.values()) == len(graph.links)
    one = graph.links[0]
    assert any(words.startswith(f"card {one['a']} - ") for words in said)


@pytest.mark.parametrize("name", SMALL)
def test_no_two_cards_lie_on_each_other_and_all_are_on_the_canvas(name):
    graph, hint = SMALL[name]
    found = places(graph, hint)
    assert len(found) == graph.vertices
    assert all(8 < x < drawing.WIDTH - 8 and 8 < y < HEIGHT - 8 for x, y in found)
    apart = min(
        ((ax - bx) ** 2 + (ay - by) ** 2) ** 0.5 for i, (ax, ay) in enumerate(found) for bx, by in found[i + 1 :]
    )
    assert apart > 16


@pytest.mark.parametrize(
    ("graph", "hint"), [*SMALL.values(), *LARGE.values()], ids=[*SMALL, *(f"large {n}" for n in LARGE)]
)
def test_all_texts_lie_on_the_canvas_and_none_on_another(graph, hint):
    root = pictures.tree(domain.lines(graph, hint, "a domain"))
    assert pictures.outside(root) == []
    assert pictures.overlapping(root) == []


@pytest.mark.parametrize("name", LARGE)
def test_the_blocks_of_a_large_domain_add_up(name):
    graph, hint = LARGE[name]
    size = blocks.block_size(graph, hint)
    block, found = blocks.bundles(graph, size)
    assert sum(found.values()) == len(graph.links)
    assert 2 <= block[: graph.cards].max() + 1 <= blocks.MOST_BLOCKS
    assert np.bincount(block[: graph.cards])[:-1].tolist() == [size] * int(block[graph.cards - 1])
    assert pictures.paths(pictures.tree(domain.lines(graph, hint, name)), "bundle")


def test_layers_of_a_torus_are_its_blocks():
    graph, hint = torus(16, 16, 8)
    assert blocks.block_size(graph, hint) == 256
    said = Counter(pictures.words(pictures.tree(domain.lines(graph, hint, "torus"))))
    assert said["512 links inside"] == 8
    assert said["256"] == 8


def test_a_wrong_link_is_drawn_once_and_unlike_all_others():
    graph, hint = torus(4, 4, 4)
    a, b = (int(graph.links[7][end]) for end in ("a", "b"))
    root = pictures.tree(domain.lines(graph, hint, "torus", {7: "missing"}))
    (wrong,) = pictures.paths(root, "link wrong")
    assert wrong.get("stroke") == drawing.WRONG
    assert len(pictures.paths(root, "link")) == len(graph.links) - 1
    assert f"card {a} - card {b} missing" in pictures.words(root)


def test_a_wrong_link_of_a_large_domain_marks_its_bundle_or_its_block():
    graph, hint = torus(16, 16, 8)
    across = int(np.flatnonzero(graph.links["group"] == 2)[0])
    assert len(pictures.paths(pictures.tree(domain.lines(graph, hint, "t", {across: "missing"})), "bundle wrong")) == 1
    inside = "".join(domain.lines(graph, hint, "t", {0: "missing"}))
    assert f'fill="none" stroke="{drawing.WRONG}"' in inside
    assert f'fill="none" stroke="{drawing.WRONG}"' not in "".join(domain.lines(graph, hint, "t"))


def test_the_same_domain_gives_the_same_bytes():
    assert list(domain.lines(*torus(4, 4, 4), "t")) == list(domain.lines(*torus(4, 4, 4), "t"))


def test_the_second_line_says_the_ports():
    assert domain.counts(torus(4, 4, 4)[0]) == "64 cards, 192 links, 6 ports a card"
    assert domain.counts(grouped(8, 8)[0]) == "64 cards, 232 links, 7 to 9 ports a card"
