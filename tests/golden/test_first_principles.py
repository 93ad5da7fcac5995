"""The lab's cabling and routing computed a second time, from the words of the family alone, without the design's code.

Rail r of every host ends on leaf r of its unit; host port n of a leaf is its n-th port; a leaf has one cable to each
spine for each lane; the leaf has the even address of a /31, the host the odd one above it.
"""

import csv
import io
import ipaddress

import pytest

from supernode import design, spec
from supernode.design import expectations, export

from .test_golden import CASES, built

HOSTS, RAILS, SPINES, LEAF_HOST_PORTS = 9, 8, 2, 64


@pytest.fixture(scope="module")
def lab():
    return built("lab")


def expected_cabling():
    """cable -> both ends, by counting on one's fingers."""
    cables, number = {}, 1
    for host in range(1, HOSTS + 1):
        for rail in range(RAILS):
            cables[f"C{number:05d}"] = (
                "rail",
                f"gpu-{host:03d}",
                f"rail{rail}",
                f"su01-leaf{rail}",
                f"swp{host}",
                "10",
            )
            number += 1
    for spine in range(1, SPINES + 1):
        for rail in range(RAILS):
            uplink = (f"su01-leaf{rail}", f"swp{LEAF_HOST_PORTS + spine}", f"spine{spine:02d}", f"swp{rail + 1}")
            cables[f"C{number:05d}"] = ("uplink", *uplink, "50")
            number += 1
    return cables


def cabling(found):
    rows = csv.DictReader(io.StringIO("".join(export.cabling_csv(found))))
    keys = ("kind", "a_device", "a_port", "b_device", "b_port", "rate_mbit_s")
    return {row["cable"]: tuple(row[key] for key in keys) for row in rows}


def test_cabling_is_what_the_family_says(lab):
    assert cabling(lab) == expected_cabling()


def test_exchanged_rails_contradict_the_family(monkeypatch):
    """The mutation again, seen without any kept file."""
    import numpy as np

    from supernode.design import columns

    right = columns._rail_links

    def wrong(env, allocation, hosts, switches):
        table = right(env, allocation, hosts, switches)
        two, three = np.flatnonzero(table["a_port"] == 2), np.flatnonzero(table["a_port"] == 3)
        table["b"][two], table["b"][three] = table["b"][three].copy(), table["b"][two].copy()
        return table

    monkeypatch.setattr(columns, "_rail_links", wrong)
    different = {cable for cable, ends in cabling(built("lab")).items() if ends != expected_cabling()[cable]}
    assert len(different) == 2 * HOSTS


def test_addresses_are_what_the_family_says(lab):
    base = int(ipaddress.ip_address("198.18.8.0"))
    for host in range(1, HOSTS + 1):
        for link in lab.links_of(f"gpu-{host:03d}"):
            even = base + 128 * link.rail + 2 * (host - 1)
            assert (int(link.b_address.ip), int(link.a_address.ip)) == (even, even + 1)
            assert link.a_address.network.prefixlen == 31


def test_every_leaf_reaches_every_other_by_all_spines(lab):
    wanted = expectations.build(lab).switches
    for rail in range(RAILS):
        fib = wanted[f"su01-leaf{rail}"].fib
        others = {f"198.18.{8 + r // 2}.{128 * (r % 2)}/25" for r in range(RAILS) if r != rail}
        assert {prefix: width for prefix, width in fib.items() if prefix.endswith("/25")} == dict.fromkeys(
            others, SPINES
        )
    assert set(wanted["spine01"].fib.values()) == {1}


def test_management_and_bmc_addresses_of_a_host_end_alike(lab):
    for host in lab.hosts:
        assert int(host.management.ip) - int(ipaddress.ip_address("198.18.0.0")) == int(host.bmc) - int(
            ipaddress.ip_address("198.18.2.0")
        )


# DGX SuperPOD H100 reference architecture, table 4: scalable units -> leaves, spines, leaf-spine cables.
TABLE_4 = {1: (8, 4, 256), 2: (16, 8, 512), 3: (24, 16, 768), 4: (32, 16, 1024)}


@pytest.mark.parametrize(("units", "counts"), TABLE_4.items())
def test_counts_of_the_reference_architecture(units, counts):
    leaves, spines, cables = counts
    text = (CASES["superpod-h100-4su"] / "environment.yml").read_text()
    text = text.replace("count: 127", f"count: {32 * units - 1}").replace("spines: 16", f"spines: {spines}")
    found = design.build(spec.read({"environment": text}))
    tiers = [switch.tier for switch in found.switches]
    assert (tiers.count("leaf"), tiers.count("spine")) == (leaves, spines)
    assert sum(link.kind == "uplink" for link in found.links) == cables
    assert found.oversubscription() == 1.0
