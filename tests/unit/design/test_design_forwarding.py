"""Forwarding tables by hand: what is proved of good ones, and what is named in bad ones."""

import numpy as np
import pytest

from supernode.design import forwarding, routing

RING = ["{{ SW Ports:03 x NodeGUID:{0:016x} x {{s{0}}} LID:000{1} PN:0{2} }} "
        "{{ SW Ports:03 x NodeGUID:{3:016x} x {{s{3}}} LID:000{4} PN:0{5} }} PHY=4x"]  # fmt: skip
END = ("{{ CA Ports:01 x NodeGUID:{0:016x} x {{e{1}}} LID:000{2} PN:01 }} "
       "{{ SW Ports:03 x NodeGUID:{1:016x} x {{s{1}}} LID:000{3} PN:01 }} PHY=4x")  # fmt: skip


def ring(ways):
    """Return the tables of three switches in a ring, port 2 up and 3 down, an end at port 1 of each.

    `ways[switch][target]` is the port there.
    """
    subnet = [END.format(100 + at, at, at + 1, at + 4) for at in range(3)]
    for at in range(3):
        up, down = (at + 1) % 3, (at - 1) % 3
        subnet += [RING[0].format(at, at + 4, 2, up, up + 4, 3), RING[0].format(at, at + 4, 3, down, down + 4, 2)]
    dump = []
    for at, row in enumerate(ways):
        dump.append(f"Unicast lids [0-8] of switch Lid {at + 4} guid 0x{at:016x} ('s{at}'):")
        dump += [f"0x000{target + 1} 00{port} # end" for target, port in enumerate(row) if port]
    return forwarding.read(subnet, dump)


def test_the_short_way_around_a_ring_of_three_has_no_circle():
    found = forwarding.prove(ring([[1, 2, 3], [3, 1, 2], [2, 3, 1]]))
    assert (found.unreached, found.loop, found.most_switches, found.mean_switches) == ((), (), 2, 2.0)
    assert found.spread == (1, 1)


def test_all_one_way_around_is_a_circle_and_it_is_named():
    found = forwarding.prove(ring([[1, 2, 2], [2, 1, 2], [2, 2, 1]]))
    assert set(found.loop) == {("s0", 2, 0), ("s1", 2, 0), ("s2", 2, 0)}
    assert found.unreached == ()
    assert found.spread == (2, 2)


def test_a_way_that_is_missing_is_named():
    assert forwarding.prove(ring([[1, 2, 0], [3, 1, 2], [2, 3, 1]])).unreached == (("e0", "e2"),)


def test_a_packet_that_goes_to_and_fro_never_arrives():
    found = forwarding.prove(ring([[1, 2, 2], [3, 1, 3], [2, 3, 1]]))
    assert set(found.unreached) == {("e0", "e2"), ("e1", "e2")}
    assert found.loop


@pytest.mark.parametrize(
    ("edges", "length"), [([(1, 2), (2, 3)], 0), ([(1, 2), (2, 1)], 2), ([(0, 1), (1, 2), (2, 3), (3, 1), (3, 4)], 3)]
)
def test_circle(edges, length):
    before, after = np.array(edges).T
    found = forwarding.circle(before, after)
    assert len(found) == length
    assert all(pair in edges for pair in zip(found, (*found[1:], *found[:1]), strict=True))


def test_a_subnet_without_a_link_is_refused():
    with pytest.raises(ValueError, match="no link"):
        forwarding.read([], [])


def test_torus_2qos_conf_names_both_neighbours_only_where_four_are_in_a_circle():
    assert list(routing.torus_2qos((4, 3), range(12))) == [
        "torus 4t 3t 1\n",
        "xp_link 0x0000000000000000 0x0000000000000001\n",
        "xm_link 0x0000000000000000 0x0000000000000003\n",
        "yp_link 0x0000000000000000 0x0000000000000004\n",
    ]


@pytest.mark.parametrize(("shape", "guids"), [((4,), range(4)), ((2, 2, 2, 2), range(16)), ((4, 3), range(11))])
def test_torus_2qos_conf_refuses(shape, guids):
    with pytest.raises(ValueError, match=r"torus-2QoS routes|GUIDs for"):
        list(routing.torus_2qos(shape, guids))
