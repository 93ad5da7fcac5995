"""The engine of each family against what opensm and ibdmchk said of it, measured with one host a switch."""

import pytest

from supernode import families

# Engines that closed credit loops on a shape; minhop did on every direct one.
LOOPS = {
    ("torus", (5, 5, 5)): {"minhop", "dor"},
    ("torus-chords", (4, 4, 4)): {"minhop"},
    ("torus-chords", (8, 8, 8)): {"minhop", "dor"},
    ("hyperx", (4, 4, 4)): {"minhop"},
}
ENGINES = {"minhop", "updn", "dnup", "file", "ftree", "lash", "dor", "torus-2QoS", "nue", "dfsssp", "sssp"}


@pytest.mark.parametrize(("name", "shape"), list(LOOPS))
def test_no_engine_is_chosen_that_closed_a_circle(name, shape):
    known = families.family(name)
    assert known.routing(known.Parameters(family=name, shape=shape)).engine not in LOOPS[name, shape]


@pytest.mark.parametrize(
    ("name", "kw", "engine", "lanes"),
    [
        ("torus", {"shape": (4, 4, 4)}, "torus-2QoS", 2),
        ("torus-chords", {"shape": (4, 4, 4)}, "lash", 2),
        ("torus-chords", {"shape": (8, 8, 4)}, "lash", 6),
        ("bridged", {"groups": 16, "shape": (8, 4), "planes": 4}, "dfsssp", 6),
        ("hyperx", {"shape": (4, 4, 4)}, "dor", 1),
        ("hyperx", {"shape": (32, 8)}, "dor", 1),
        ("dragonfly", {"a": 8, "h": 4, "g": 32}, "dfsssp", 5),
        ("fat-tree", {"radix": 64}, "ftree", 1),
    ],
)
def test_the_measured_engine_has_the_lanes_that_it_needed(name, kw, engine, lanes):
    known = families.family(name)
    chosen = known.routing(known.Parameters(family=name, **kw))
    assert chosen.engine == engine
    assert chosen.lanes >= lanes


@pytest.mark.parametrize("name", list(families.families()))
def test_every_family_has_an_engine_of_opensm_and_says_why(name):
    known = families.family(name)
    for p in (p for cards in (8, 64, 256) for p in known.candidates(cards)):
        chosen = known.routing(p)
        assert chosen.engine in ENGINES - {"minhop"}
        assert 1 <= chosen.lanes <= 8
        assert chosen.why
