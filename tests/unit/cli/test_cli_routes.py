"""`supernode routes`, and the plan it shows: BGP of a tree, and what breaks it."""

import json

import pytest
from typer.testing import CliRunner

from supernode.cli.main import app
from supernode.design import routing

TIERS = {"l0": 1, "l1": 1, "s0": 2, "s1": 2}
TREE = [(leaf, spine, f"{leaf}-{spine}") for leaf in ("l0", "l1") for spine in ("s0", "s1")]


def said(*arguments):
    done = CliRunner().invoke(app, ["routes", *arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_infiniband_is_routed_as_a_tree_from_its_spines():
    found = json.loads(said("inventories/examples/superpod-h100-1su-ib", "--json"))
    assert (found["manager"]["engines"], found["manager"]["lanes"]) == (["ftree", "updn"], 1)
    assert len(found["manager"]["roots"]) == 4
    assert (found["bgp"], found["circle"]) == ([], [])


def test_the_bgp_plan_of_a_superpod_of_four_units():
    found = json.loads(said("inventories/examples/superpod-h100-4su", "--json"))
    leaf, spine = found["bgp"]
    assert (leaf["switches"], spine["switches"]) == (32, 16)
    assert leaf["up"] == [32, 32]
    assert spine["down"] == [2, 2]
    assert spine["asns"][0] == spine["asns"][1] < leaf["asns"][0]
    assert leaf["asns"][1] - leaf["asns"][0] == 31
    assert (leaf["learnt"], spine["learnt"]) == (2 * 31 + 16, 64)
    assert found["circle"] == []


@pytest.mark.parametrize("name", ["lab", "lab-ib"])
def test_the_screen_says_that_there_is_no_circle(name):
    assert "no circle" in said(f"inventories/{name}")


def test_ways_up_then_down_have_no_circle_and_valleys_have_one():
    assert routing.circle(TREE, TIERS) == ()
    found = routing.circle(TREE, TIERS, valleys=True)
    assert len(found) >= 4
    assert set(found) <= {cable for _, _, cable in TREE}


def test_switches_of_one_tier_in_a_ring_are_found():
    ring = [("a", "b", "ab"), ("b", "c", "bc"), ("c", "a", "ca")]
    assert set(routing.circle(ring, dict.fromkeys("abc", 1))) == {"ab", "bc", "ca"}
