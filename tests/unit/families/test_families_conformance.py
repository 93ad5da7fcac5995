"""What every family is held to, and a broken one, which it must not let pass."""

from types import SimpleNamespace

import numpy as np
import pytest

from supernode import families
from supernode.families.known import torus

COUNTS = (8, 12, 32, 64, 128)
FUNCTIONS = ("size", "graph", "sources", "bisection", "routing", "candidates")


def faults(known):
    """What a family's module does wrong, over its own candidates."""
    missing = [name for name in ("NAME", "SUMMARY", "Parameters", *FUNCTIONS) if not hasattr(known, name)]
    if missing:
        return [f"has no {', '.join(missing)}"]
    return [fault for cards in COUNTS for p in known.candidates(cards) for fault in _of_one(known, p, cards)]


def _of_one(known, p, cards):
    graph = known.graph(p)
    if known.size(p) != cards or graph.cards != cards:
        yield f"{p}: {graph.cards} cards, not {cards}"
    yield from (f"{p}: {fault}" for fault in _ports(graph))
    proofs = families.prove(graph, known.bisection(p, graph), known.sources(p))
    every = families.prove(graph, proofs.bisection)
    if (proofs.diameter, round(proofs.mean_hops, 9)) != (every.diameter, round(every.mean_hops, 9)):
        yield f"{p}: symmetry says {proofs.diameter} hops, all pairs {every.diameter}"
    if proofs.bisection <= 0 or proofs.bisection > proofs.links:
        yield f"{p}: bisection {proofs.bisection}"


def _ports(graph):
    ends = [np.stack([graph.links[end], graph.links[f"{end}_port"]], axis=1) for end in ("a", "b")]
    if len(np.unique(np.concatenate(ends), axis=0)) != 2 * len(graph.links):
        yield "a port is used twice"
    if np.any(graph.links["a"] == graph.links["b"]):
        yield "a vertex is linked to itself"
    if max(int(end[:, 0].max()) for end in ends) >= graph.vertices:
        yield "a link ends on no vertex"
    if len({group.name for group in graph.groups}) != len(graph.groups):
        yield "two groups have one name"


@pytest.mark.parametrize("name", list(families.families()))
def test_a_family_keeps_the_contract(name):
    known = families.family(name)
    assert name == known.NAME
    assert "\n" not in known.SUMMARY
    assert faults(known) == []
    assert any(True for cards in COUNTS for _ in known.candidates(cards))


@pytest.mark.parametrize("name", list(families.families()))
def test_parameters_of_a_family_refuse_what_they_do_not_know(name):
    known = families.family(name)
    p = next(p for cards in COUNTS for p in known.candidates(cards))
    with pytest.raises(ValueError, match="extra"):
        known.Parameters(**p.model_dump(), colour="red")
    with pytest.raises(ValueError, match="family"):
        known.Parameters(**{**p.model_dump(), "family": "other"})


def broken(**change):
    whole = {name: getattr(torus, name) for name in ("NAME", "SUMMARY", "Parameters", *FUNCTIONS)}
    return SimpleNamespace(**{**whole, **change})


def one_port(p):
    graph = torus.graph(p)
    links = graph.links.copy()
    links["a_port"] = 0
    return families.Graph(graph.cards, (), links, graph.groups)


def no_wrap(p):
    graph = torus.graph(p)
    return families.Graph(graph.cards, (), graph.links[graph.links["a"] < graph.links["b"]], graph.groups)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"graph": one_port}, "port is used twice"),
        ({"graph": no_wrap}, "symmetry says"),
        ({"candidates": lambda cards: [torus.Parameters(family="torus", shape=(cards + 1,))]}, "cards, not"),
        ({"bisection": lambda p, graph: 0.0}, "bisection 0"),
    ],
)
def test_a_broken_family_is_seen(change, fault):
    assert faults(broken()) == []
    assert any(fault in said for said in faults(broken(**change)))


def test_a_family_without_its_functions_is_seen():
    assert faults(SimpleNamespace(NAME="x", SUMMARY="")) == [f"has no {', '.join(('Parameters', *FUNCTIONS))}"]


def test_an_unknown_family_is_told_with_those_that_exist():
    with pytest.raises(KeyError, match=r"no family 'tours'; known: .*torus"):
        families.family("tours")
