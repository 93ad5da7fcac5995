"""The rule of Clos fabrics against the published tables: the rows are here, the code has none of them.

Switches are compared with the published ones of the same tier. Cables are compared as each table counts them, which
each test says.
"""

from collections import Counter

import numpy as np
import pytest

from supernode.design.columns import CORE, LEAF, SPINE

from .clos_sites import site


def counts(found):
    """(leaves, spines, cores) and (host-leaf, leaf-spine, spine-core) links."""
    tiers = np.bincount(found.columns.switches["tier"], minlength=3)
    links = np.bincount(found.columns.links["tier"], minlength=3)
    return tuple(map(int, tiers)), tuple(map(int, links))


def gpus(found):
    return sum(8 for host in found.hosts if host.state == "active")


def sound(found):
    """No port used twice, no cable number twice, and every switch has all its uplinks."""
    links = found.columns.links
    assert len(np.unique(links["cable"])) == len(links)
    for tier in (LEAF, SPINE, CORE):
        rows = links[links["tier"] == tier]
        lower = np.stack([rows["a"], rows["a_port"], rows["plane"] if tier == LEAF else rows["plane"] * 0])
        assert len(np.unique(lower, axis=1).T) == len(rows)
    upper = np.stack([links["b"], links["b_port"], links["tier"] * 0])
    assert len(np.unique(upper[:, links["tier"] == LEAF], axis=1).T) == int(np.sum(links["tier"] == LEAF))
    above = links["tier"] > LEAF
    assert len(np.unique(upper[:, above], axis=1).T) == int(np.sum(above))
    for tier in (LEAF, SPINE):
        mine = np.bincount(links["a"][links["tier"] == tier + 1], minlength=len(found.columns.switches))
        mine = mine[found.columns.switches["tier"] == tier]
        assert not len(mine) or mine.min() == mine.max()


# DGX SuperPOD H100 reference architecture, network fabrics, table 4: SU -> nodes, GPUs, leaves, spines, cables of
# compute and UFM, leaf-spine cables. One node slot of the first unit is given up for UFM, whose cables are
# the four that the fifth column has above one for each GPU.
H100 = {
    1: (31, 248, 8, 4, 252, 256),
    2: (63, 504, 16, 8, 508, 512),
    3: (95, 760, 24, 16, 764, 768),
    4: (127, 1016, 32, 16, 1020, 1024),
}
UFM_CABLES = 4


@pytest.mark.parametrize(("units", "row"), H100.items())
def test_superpod_h100(units, row):
    nodes, cards, leaves, spines, compute_and_ufm, leaf_spine = row
    found = site(hosts=32 * units - 1, kind="dgx-h100", leaf="qm9700", spine="qm9700", rail=400, uplink=400, unit=32)
    assert (len(found.hosts), gpus(found)) == (nodes, cards)
    assert counts(found) == ((leaves, spines, 0), (compute_and_ufm - UFM_CABLES, leaf_spine, 0))
    assert found.oversubscription() <= 1
    sound(found)


# DGX SuperPOD B200 reference architecture, larger counts: SU -> nodes, GPUs, leaves, spines, cores, node-leaf,
# leaf-spine, spine-core cables; a cable is a link of 400 Gbit/s.
B200 = {
    2: (64, 512, 16, 8, 0, 512, 512, 0),
    4: (128, 1024, 32, 16, 0, 1024, 1024, 0),
    8: (256, 2048, 64, 32, 0, 2048, 2048, 0),
    16: (512, 4096, 128, 128, 64, 4096, 4096, 4096),
    32: (1024, 8192, 256, 256, 128, 8192, 8192, 8192),
    64: (2048, 16384, 512, 512, 256, 16384, 16384, 16384),
}


@pytest.mark.parametrize(("units", "row"), B200.items())
def test_superpod_b200(units, row):
    found = site(hosts=32 * units, kind="dgx-b200", leaf="qm9700", spine="qm9700", rail=400, uplink=400, unit=32)
    assert (len(found.hosts), gpus(found)) == row[:2]
    assert counts(found) == (row[2:5], row[5:])
    assert found.oversubscription() == 1
    sound(found)


# DGX SuperPOD B300 reference architecture, twin-planar Spectrum-X: SU -> nodes, GPUs, leaves, spines of both planes,
# node-leaf and leaf-spine cables. A cable is one of 800 Gbit/s: two links of 400, at the host one of each plane.
B300 = {
    1: (64, 512, 16, 8, 512, 512),
    2: (128, 1024, 32, 16, 1024, 1024),
    4: (256, 2048, 64, 32, 2048, 2048),
    8: (512, 4096, 128, 64, 4096, 4096),
    16: (1024, 8192, 256, 128, 8192, 8192),
}


@pytest.mark.parametrize(("units", "row"), B300.items())
def test_superpod_b300(units, row):
    found = site(
        hosts=64 * units,
        kind="dgx-b300",
        leaf="sn5600",
        spine="sn5600",
        rail=400,
        uplink=400,
        unit=64,
        planes=2,
        transport="roce-v2",
    )
    nodes, cards, leaves, spines, node_leaf, leaf_spine = row
    assert (len(found.hosts), gpus(found)) == (nodes, cards)
    assert counts(found) == ((leaves, spines, 0), (2 * node_leaf, 2 * leaf_spine, 0))
    assert found.oversubscription() == 1
    sound(found)


def test_hpn_7_pod():
    """HPN 7.0 (SIGCOMM 2024): 15 segments of 1,024 GPUs, two planes; 60 uplinks of 400G over 128 ports of 200G."""
    found = site(
        hosts=15 * 128,
        kind="hpn7-node",
        leaf="hpn7-switch",
        spine="hpn7-switch",
        rail=200,
        uplink=400,
        unit=128,
        planes=2,
        oversubscription=1.067,
        transport="roce-v2",
    )
    assert gpus(found) == 15_360
    assert counts(found) == ((240, 120, 0), (15_360 * 2, 14_400, 0))
    assert found.oversubscription() == pytest.approx(1.067, abs=0.001)
    planes = Counter(switch.plane for switch in found.switches)
    assert planes == {1: 180, 2: 180}
    sound(found)
