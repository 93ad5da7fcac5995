"""Cabling of larger fabrics computed a second time, from the words of the published references, without our code.

A reference says which device is cabled to which, and how often; it says no port and no cable number.
"""

from collections import Counter
from functools import cache

import numpy as np
import pytest

from .test_golden import built

known = cache(built)


def cabling(found, tier):
    """(lower device, upper device) -> cables, for one tier."""
    links = found.columns.links[found.columns.links["tier"] == tier]
    lower = found.switch_names if tier else found.host_names
    pairs = zip(links["a"].tolist(), links["b"].tolist(), strict=True)
    return Counter((lower[a], found.switch_names[b]) for a, b in pairs)


def pod_of(unit):
    return f"pod{unit:02d}-" if unit > 1 else ""


class TestSuperPodB200:
    """Sixteen scalable units: 32 systems a unit, eight rails, four units a pod.

    "Rail-aligned": GPU r of every system of a unit ends on leaf r of that unit. A pod has 32 leaves and 32 spines with
    one cable between any two; spine k of each of the four pods goes to the two cores of group k, 16 cables to each.
    """

    @pytest.fixture
    def found(self):
        return known("superpod-b200-16su")

    def test_systems(self, found):
        wanted = Counter(
            (f"gpu-{system + 1:03d}", f"su{system // 32 + 1:02d}-leaf{rail}")
            for system in range(512)
            for rail in range(8)
        )
        assert cabling(found, 0) == wanted

    def test_pods(self, found):
        wanted = Counter(
            (f"su{unit:02d}-leaf{rail}", f"{pod_of((unit + 3) // 4)}spine{spine:02d}")
            for unit in range(1, 17)
            for rail in range(8)
            for spine in range(1, 33)
        )
        assert cabling(found, 1) == wanted

    def test_cores(self, found):
        wanted = {
            (f"{pod_of(pod)}spine{spine:02d}", f"core{spine + 32 * second:03d}"): 16
            for pod in range(1, 5)
            for spine in range(1, 33)
            for second in (0, 1)
        }
        assert cabling(found, 2) == wanted


class TestHpn7:
    """A segment has 128 hosts and 16 ToRs: the two ports of NIC r end on ToR r of either plane.

    A ToR has one cable to each of the 60 aggregation switches of its plane, and planes do not meet.
    """

    @pytest.fixture
    def found(self):
        return known("hpn7-pod")

    def test_dual_tor(self, found):
        wanted = Counter(
            (f"gpu-{host + 1:03d}", f"{plane}su{host // 128 + 1:02d}-leaf{rail}")
            for host in range(1920)
            for rail in range(8)
            for plane in ("", "p2-")
        )
        assert cabling(found, 0) == wanted

    def test_aggregation(self, found):
        wanted = Counter(
            (f"{plane}su{segment:02d}-leaf{rail}", f"{plane}spine{number:02d}")
            for plane in ("", "p2-")
            for segment in range(1, 16)
            for rail in range(8)
            for number in range(1, 61)
        )
        assert cabling(found, 1) == wanted


class TestSuperPodB300:
    """One unit of 64 systems in two planes: eight leaves and four spines in each, sixteen links between any two."""

    @pytest.fixture
    def found(self):
        return known("superpod-b300-1su")

    def test_both_planes(self, found):
        for plane in ("", "p2-"):
            leaves = {f"{plane}su01-leaf{rail}" for rail in range(8)}
            hosts = {pair: n for pair, n in cabling(found, 0).items() if pair[1] in leaves}
            assert hosts == {(f"gpu-{n:03d}", f"{plane}su01-leaf{r}"): 1 for n in range(1, 65) for r in range(8)}
            spines = {pair: n for pair, n in cabling(found, 1).items() if pair[0] in leaves}
            assert spines == {(leaf, f"{plane}spine{n:02d}"): 16 for leaf in leaves for n in range(1, 5)}

    def test_ports_of_a_system_have_addresses_of_their_own(self, found):
        links = found.links_of("gpu-001")
        assert [link.a_port for link in links[:9]] == [*(f"rail{n}" for n in range(8)), "rail0p2"]
        networks = {link.a_address.network for link in links}
        assert len(networks) == 16
        files = {file.path: file.content for file in found.files("gpu-001")}
        tables = [text.split("Table=")[1].split()[0] for path, text in files.items() if "50-rail" in path]
        assert len(set(tables)) == len(tables) == 16


def test_exchanged_pods_are_seen(monkeypatch):
    """The mutation: someone takes the spines of the next pod."""
    from supernode.design import columns

    right = columns._spine_index

    def wrong(env, switches, planes, pods):
        first, each = right(env, switches, planes, pods)
        return np.roll(first, 1), each

    monkeypatch.setattr(columns, "_spine_index", wrong)
    found = built("superpod-b200-16su")
    assert cabling(found, 1)["su05-leaf0", "pod02-spine01"] != 1
