"""Any small parameters of any family: refused with a reason, or a graph whose proofs hold. Never anything else."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from supernode import families
from supernode.families.nearest import described, nearest

SMALL = st.integers(min_value=-1, max_value=7)
ANY = st.one_of(SMALL, st.none(), st.text(max_size=3), st.floats(allow_nan=True), st.lists(SMALL, max_size=4))


@st.composite
def said(draw, name):
    """A mapping as a spec may say it: the family's own keys, mostly small numbers or lists, sometimes anything."""
    fields = families.family(name).Parameters.model_fields
    kinds = {key: st.lists(SMALL, min_size=1, max_size=3) if key in ("shape", "cubes") else SMALL for key in fields}
    wild = draw(st.sampled_from([*fields, *["none"] * 10]))
    values = {key: draw(ANY if key == wild else kinds[key]) for key in fields if draw(st.integers(0, 9)) or key == wild}
    return {**values, "family": name}


@pytest.mark.parametrize("name", list(families.families()))
@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data())
def test_small_parameters_are_refused_or_proved(name, data):
    known, values = families.family(name), data.draw(said(name))
    try:
        p = known.Parameters(**values)
    except ValidationError:
        return
    graph = known.graph(p)
    one = families.prove(graph, known.bisection(p, graph), known.sources(p))
    every = families.prove(graph, one.bisection)
    assert (one.cards, one.diameter, round(one.mean_hops, 9)) == (
        known.size(p),
        every.diameter,
        round(every.mean_hops, 9),
    )
    ends = np.concatenate([np.stack([graph.links[end], graph.links[f"{end}_port"]], 1) for end in ("a", "b")])
    assert len(np.unique(ends, axis=0)) == 2 * one.links
    assert 0 < graph.crossing(np.arange(graph.vertices) == 0) <= one.links
    assert described(p).startswith(name)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(cards=st.integers(1, 200), hops=st.integers(0, 7), ports=st.integers(0, 20), switches=st.booleans())
def test_what_is_nearest_keeps_its_bounds(cards, hops, ports, switches):
    for found in nearest(cards, hops, ports, switches=switches):
        assert found.proofs.cards == cards
        assert found.proofs.diameter <= hops
        assert found.proofs.ports_per_card <= ports
