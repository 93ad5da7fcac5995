"""An InfiniBand fabric, end to end: the real opensm on two hosts over ibsim, a swapped cable and one at half width.

The tests of this file run in their order on one lab; each leaves it as the next needs it.
"""

from __future__ import annotations

import csv

import lab_site
import pytest

pytestmark = pytest.mark.lab

NAME = "labib"
ONE, OTHER, HALF, PULLED = "C00014", "C00015", "C00011", "C00017"


@pytest.fixture(scope="module")
def site():
    made = lab_site.make(NAME, 32, like="lab-ib")
    try:
        yield made
    finally:
        lab_site.forget(made)


def failing(rows):
    return [row for row in rows if row["verdict"] == "fail"]


def cables(site):
    site.supernode("design", NAME, "--out", str(site.root / "design"))
    rows = csv.DictReader((site.root / "design" / "cabling.csv").read_text().splitlines())
    return {row["cable"]: row for row in rows}


def on_host(site, host, command):
    return site.supernode("ssh", NAME, host, command)


def test_swapped_and_half_width_cable_are_named(site):
    site.supernode("lab", "start", NAME, timeout=600)
    site.supernode("allocate", NAME)
    site.supernode("assign", NAME, "--sheet", str(site.folder / "delivery"))
    rows = cables(site)
    assert {rows[cable]["a_device"] for cable in (ONE, OTHER)} == {"gpu-004"}
    site.supernode("lab", "fault", NAME, "swap-cable", ONE, OTHER)
    site.supernode("lab", "fault", NAME, "half-width", HALF)

    site.supernode("bringup", NAME, "--yes", expect=1)

    found = failing(lab_site.last_run(site)["findings"])
    swap = next(row for row in found if set(row["cables"]) == {ONE, OTHER})
    for cable in (ONE, OTHER):
        assert f"{rows[cable]['b_device']}:{rows[cable]['b_port']}" in swap["cause"]
    narrow = next(row for row in found if row["cables"] == [HALF])
    assert (narrow["check"], "2 of 4 lanes run" in narrow["cause"]) == ("ib-links", True)
    assert len({row["cause"] for row in found}) == 2, [row["cause"] for row in found]


def test_the_manager_of_the_subnet_is_the_real_one_with_the_designed_files(site):
    assert "SMINFO_MASTER" in on_host(site, "gpu-003", "sudo sminfo")
    assert "OpenSM 3.3.23" in on_host(site, "gpu-001", "sudo opensm --version")
    assert "SUBNET UP" in on_host(site, "gpu-001", "sudo cat /var/log/opensm.log")
    assert on_host(site, "gpu-002", "systemctl is-active supernode-opensm").strip() == "active"


def test_a_pulled_cable_is_named_too_and_the_rest_is_mended(site):
    site.supernode("lab", "fault", NAME, "swap-cable", ONE, OTHER, "--clear")
    site.supernode("lab", "fault", NAME, "half-width", HALF, "--clear")
    site.supernode("lab", "fault", NAME, "missing-cable", PULLED)
    found = failing(site.json("verify", NAME, expect=1)["findings"])
    assert {tuple(row["cables"]) for row in found} == {(PULLED,)}, [row["cause"] for row in found]
    assert all("missing, unplugged or broken" in row["cause"] for row in found)


def test_a_second_run_ends_clean_and_changes_nothing(site):
    site.supernode("lab", "fault", NAME, "missing-cable", PULLED, "--clear")
    site.supernode("bringup", NAME, "--yes")
    run = lab_site.last_run(site)
    assert run["exit_code"] == 0
    assert [row for row in run["findings"] if row["verdict"] in ("fail", "unknown")] == []
    changed = [
        row for row in run["events"] if row["stage"] == "configure" and row["state"] == "changed" and row["host"]
    ]
    assert changed == []
