"""The figures of both layers, held against a graph that is walked and against published counts."""

from pathlib import Path

import numpy as np
import pytest

from supernode import design, families, spec
from supernode.design import layers, summary
from supernode.families import Graph, Group

EXAMPLES = Path(__file__).parents[3] / "inventories" / "examples"


def built(name, *changes):
    text = (EXAMPLES / name / "environment.yml").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return design.build(spec.read({"environment": text}))


def walked(found):
    """The fabric as a graph: its end ports as cards; of one plane, for planes never meet."""
    links, switches = found.columns.links, found.columns.switches
    mine = links[links["plane"] == 1]
    down, up = mine[~mine["uplink"]], mine[mine["uplink"]]
    rows = np.concatenate(
        [
            families.linked(np.arange(len(down)), 0, len(down) + down["b"].astype(np.int64), 0, 0),
            families.linked(len(down) + up["a"].astype(np.int64), 0, len(down) + up["b"].astype(np.int64), 0, 0),
        ]
    )
    return Graph(len(down), (len(switches),), rows, (Group("all"),))


@pytest.mark.parametrize("name", ["superpod-h100-1su", "superpod-h100-2su", "superpod-b300-1su"])
def test_hops_are_those_of_the_walked_fabric(name):
    found = built(name)
    measured = [walked(found).hops(port) for port in range(0, len(walked(found).links) // 4, 37)]
    figures = layers.scale_out(found)
    assert figures["diameter"] == max(int(hops[hops != families.graph.FAR].max()) for hops in measured)


def test_mean_hops_of_all_pairs():
    for name in ("superpod-h100-1su", "rack64-hyperx"):
        graph = walked(built(name))
        assert layers.scale_out(built(name))["mean_hops"] == round(families.prove(graph, 0.0).mean_hops, 4)


def test_three_tiers_have_five_switches_between_pods():
    found = built("superpod-b200-16su")
    graph, figures = walked(found), layers.scale_out(found)
    one = families.prove(graph, 0.0, [0])  # all ports are alike: every unit is full
    assert (figures["diameter"], figures["mean_hops"]) == (one.diameter, round(one.mean_hops, 4)) == (5, 4.4852)


def test_rails_that_never_meet_are_not_counted():
    found = built("rack64-hyperx", ("family: rail-optimised", "family: rail-only"))
    assert layers.scale_out(found)["diameter"] == 1  # the eight ports of a rail share their leaf


def test_bisection_falls_with_the_uplinks():
    full, half = built("rack64-hyperx"), built("rack64-hyperx", ("  unit: 8", "  unit: 8\n  oversubscription: 2.0"))
    figures = [layers.scale_out(found) for found in (full, half)]
    assert [row["oversubscription"] for row in figures] == [1.0, 2.0]
    assert figures[1]["bisection_gbps"] == figures[0]["bisection_gbps"] / 2 == 64 * 400 / 2 / 2


@pytest.mark.parametrize(
    ("name", "domains", "links", "cables"),
    [
        ("cloudmatrix384", 1, 48 * 8 * 14 + 48 * 7 * 16, 48 * 7 * 16),  # the chips of a node are inside it
        ("nvl72-su", 8, 72 * 18, 8 * 72 * 18),  # the rack's switch trays are not
        ("supernode256-dragonfly", 1, 1392, 32 * 31 // 2),  # one between any two nodes
        ("supernode256-hyperx", 1, 4864, 8 * 32 * 31 // 2),  # a full mesh of nodes on each rail
    ],
)
def test_what_leaves_a_host_is_a_cable(name, domains, links, cables):
    found = built(name).scale_up
    assert (found.domains, found.proofs.links, found.cables) == (domains, links, cables)


def test_a_domain_inside_a_host_has_no_cable():
    shape = ("{family: hyperx, shape: [4, 4, 4]}", "{family: full-mesh, cards: 8}")
    found = built("rack64-hyperx", shape, ("max_hops: 3", "max_hops: 1"))
    assert (found.scale_up.domains, found.scale_up.cables) == (8, 0)


def test_a_switch_of_half_a_host_is_part_of_it():
    found = built("cloudmatrix384").scale_up
    assert set(found.holder[384 : 384 + 336].tolist()) == set(range(48))
    assert set(found.holder[384 + 336 :].tolist()) == {-1}


def test_the_summary_counts_what_works_and_what_is_cabled():
    found = summary.build(built("superpod-h100-4su"))
    assert (found["gpus"], found["hosts"]) == (1016, 127)  # the spare is none of them
    assert found["switches"] == {"leaf": 32, "spine": 16}
    assert found["links"] == {"host_leaf": 1024, "leaf_spine": 1024}
    assert found["management_links"] == 2 * 128 + 48
    assert "scale_up" not in found


def test_a_rented_host_has_no_management_cable():
    found = summary.build(built("aws-p5"))
    design_ = built("aws-p5")
    rented = sum(bool(host.cloud) for host in design_.hosts)
    assert rented
    assert found["management_links"] == 2 * (len(design_.hosts) - rented) + len(design_.switches)
