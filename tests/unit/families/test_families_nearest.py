"""What is offered instead of a shape that cannot keep its bound."""

import time

import pytest

from supernode.families.nearest import described, least_ports, nearest


def test_64_cards_within_three_hops():
    found = {str(each) for each in nearest(64, 3)}
    assert {
        "torus-chords 4x4x4 (7 ports, 224 cables)",
        "hyperx 4x4x4 (9 ports, 288 cables)",
        "hyperx 8x8 (14 ports, 448 cables)",
        "full-mesh cards=64 (63 ports, 2016 cables)",
    } <= found
    assert not any(each.family == "torus" for each in nearest(64, 3))


def test_the_order_is_ports_then_links():
    key = [(each.proofs.ports_per_card, each.proofs.links) for each in nearest(64, 6)]
    assert key == sorted(key)
    assert "torus 4x4x4 (6 ports, 192 cables)" in map(str, nearest(64, 6))


@pytest.mark.parametrize(("hops", "ports"), [(3, 7), (2, 14), (1, 63)])
def test_all_that_is_offered_keeps_the_bounds(hops, ports):
    found = nearest(64, hops, ports)
    assert found
    assert all(each.proofs.diameter <= hops and each.proofs.ports_per_card <= ports for each in found)
    assert nearest(64, hops, 4) == []


def test_families_with_switches_only_when_asked():
    assert all(not each.proofs.switches for each in nearest(64, 8))


# N <= 1 + d * sum((d-1)^i): with 4 ports 53 cards lie within 3 hops, with 5 ports 106.
@pytest.mark.parametrize(
    ("cards", "hops", "ports"),
    [(53, 3, 4), (54, 3, 5), (64, 3, 5), (106, 3, 5), (10, 2, 3), (11, 2, 4), (64, 1, 63), (1, 3, 0), (2, 9, 1)],
)
def test_moore_bound(cards, hops, ports):
    assert least_ports(cards, hops) == ports


def test_a_prime_number_of_cards_has_a_full_mesh_and_a_rest_nothing():
    assert [each.family for each in nearest(13, 1)] == ["full-mesh"]
    assert nearest(13, 0) == []


def test_it_is_fast_enough_for_an_error_message():
    nearest(64, 3)
    started = time.process_time()
    nearest(64, 3)
    assert time.process_time() - started < 0.3


def test_words():
    assert [described(each.parameters) for each in nearest(64, 1)] == ["full-mesh cards=64"]
