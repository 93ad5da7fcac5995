"""Two sites: the other one is installed, configured and verified through the tunnel, which private data does not cross.

The tests of this file run in their order on one lab; each leaves it as the next needs it.
"""

from __future__ import annotations

import json

import lab_site
import pytest

pytestmark = pytest.mark.lab

NAME = "labhybrid"
GATEWAYS = ("gw-home", "gw-branch")
HOLDS_DATA, OTHER = "198.19.0.11", "198.19.0.12"  # gpu-001 holds what is private, gpu-002 does not


@pytest.fixture(scope="module")
def site():
    made = lab_site.make(NAME, 0, like="lab-hybrid")
    try:
        yield made
    finally:
        lab_site.forget(made)


def on(site, device, *words, expect=0):
    return site.supernode("ssh", NAME, device, *words, expect=expect, timeout=60)


def verified(site, expect=0):
    return site.json("verify", NAME, expect=expect, timeout=300)["findings"]


def causes(findings):
    return {row["cause"] for row in findings if row["verdict"] == "fail"}


def test_both_sites_come_up_clean(site):
    site.supernode("lab", "start", NAME, timeout=600)
    site.supernode("allocate", NAME)
    site.supernode("assign", NAME, "--sheet", str(site.folder / "delivery"))
    site.supernode("bringup", NAME, "--yes", timeout=900)
    found = lab_site.last_run(site)["findings"]
    assert causes(found) == set()
    assert {row["place"]: row["verdict"] for row in found if row["check"] == "tunnel"} == dict.fromkeys(
        GATEWAYS, "pass"
    )
    assert [row["verdict"] for row in found if row["place"] == "edge-001" and row["check"] == "image"] == ["pass"]


def test_the_gateway_ran_what_its_kernel_has(site):
    probe = "sudo ip link add probe type wireguard 2>/dev/null"
    kernel = "sudo ip link delete probe && ! pgrep -x wireguard-go"
    on(site, "gw-branch", f"if {probe}; then {kernel}; else pgrep -x wireguard-go; fi")


def test_private_keys_stay_on_the_gateways(site):
    for gateway in GATEWAYS:
        key = on(site, gateway, "sudo", "cat", "/etc/wireguard/wg0.key").strip()
        assert len(key) == 44
        found = site.call("grep", "-rlF", "--exclude-dir=tests", key, "runs", ".supernode", "inventories").stdout
        assert found == ""


def test_private_data_is_blocked_on_the_wire(site):
    def counted():
        rules = json.loads(
            on(site, "gw-branch", "sudo", "nft", "-j", "list", "counter", "inet", "supernode", "private-scans")
        )
        return next(row["counter"]["packets"] for row in rules["nftables"] if "counter" in row)

    ping = ("ping", "-n", "-c", "2", "-i", "0.2", "-W", "1")
    on(site, "edge-001", *ping, OTHER)
    before = counted()
    on(site, "edge-001", *ping, HOLDS_DATA, expect=1)
    assert counted() == before + 2
    on(site, "gpu-001", *ping, OTHER)  # on its own site it answers and asks
    on(site, "gpu-001", *ping, "198.19.2.13", expect=1)


def test_a_tunnel_that_is_down_is_named_as_the_one_cause(site):
    site.supernode("lab", "fault", NAME, "tunnel-down")
    found = verified(site, expect=1)
    assert len(causes(found)) == 1
    assert "the tunnel between gw-branch and gw-home carries nothing" in causes(found).pop()
    lost = [row for row in found if row["place"] == "edge-001"]
    assert {row["verdict"] for row in lost} == {"unknown"}
    site.supernode("lab", "fault", NAME, "tunnel-down", "--clear")


def test_a_path_that_carries_less_than_declared_is_named(site):
    site.supernode("lab", "fault", NAME, "wan-mtu", "--set", "mtu=1300")
    found = verified(site, expect=1)
    assert len(causes(found)) == 1  # so the tunnel of the test before carries again
    cause = causes(found).pop()
    assert "the WAN between gw-branch and gw-home carries less than designed" in cause
    assert "loses packets of 1400 bytes" in cause
