"""A tunnel as designed: who may send what to whom, how large, and what each gateway is told."""

from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest

from supernode import design, spec
from supernode.design import expectations, export
from supernode.plan import comparing, resources

HYBRID = (Path(__file__).parents[3] / "inventories" / "lab-hybrid" / "environment.yml").read_text()


class Prepared:
    image, ca = "0" * 64, "secrets/serve-ca.pem"
    isos = dict.fromkeys(("gpu-001", "gpu-002", "edge-001"), "1" * 64)


def built(text=HYBRID):
    return design.build(spec.read({"environment": text}))


@pytest.fixture(scope="module")
def hybrid():
    return built()


def content(found, gateway, path):
    return next(file.content for file in found.gateway_files(gateway) if file.path == path)


def test_the_mtu_is_what_the_path_leaves(hybrid):
    assert hybrid.vpn.mtu == 1400 - 20 - 8 - 32
    assert "MTU = 1340\n" in content(hybrid, "gw-home", "/etc/wireguard/wg0.conf")
    assert built(HYBRID.replace("wan_mtu: 1400", "wan_mtu: 1400\n  mtu: 1300")).vpn.mtu == 1300


def test_the_end_behind_translation_calls_and_the_other_waits(hybrid):
    near, far = (content(hybrid, name, "/etc/wireguard/wg0.conf") for name in ("gw-home", "gw-branch"))
    assert "Endpoint = 198.19.6.10:51820" in near
    assert "PersistentKeepalive = 25" in near
    assert "Endpoint" not in far
    assert "PersistentKeepalive" not in far
    assert "PublicKey = @gw-branch@" in near
    assert "PrivateKey" not in near + far


def test_what_may_pass_is_named_on_both_ends(hybrid):
    near, far = hybrid.gateways
    assert (near.own, near.beyond) == (far.beyond, far.own)
    assert IPv4Network("198.19.2.0/23") in near.beyond
    assert any(IPv4Address("198.19.31.253") in prefix for prefix in near.own)
    assert not any(prefix.overlaps(IPv4Network("198.19.1.0/24")) for prefix in near.own)  # controllers stay at home


def test_private_data_has_a_rule_on_both_gateways(hybrid):
    for name in ("gw-home", "gw-branch"):
        rules = content(hybrid, name, "/etc/nftables.conf")
        assert "ip saddr 198.19.0.11/32 counter name private-scans drop" in rules
        assert "policy drop" in rules
    open_data = built(HYBRID.replace("private: true", "private: false"))
    assert "198.19.0.11/32" not in content(open_data, "gw-home", "/etc/nftables.conf")


def test_machines_of_the_other_site_stand_in_its_networks(hybrid):
    edge = hybrid.host("edge-001")
    assert edge.management.ip in IPv4Network("198.19.2.0/24")
    assert edge.bmc in IPv4Network("198.19.3.0/24")
    assert hybrid.networks_of(edge).management.gateway == IPv4Address("198.19.2.1")
    assert hybrid.host("gpu-001").bmc in IPv4Network("198.19.1.0/24")


def test_they_wait_for_the_tunnel_and_nobody_else_does(hybrid):
    share = resources.stack(hybrid, "lab-hybrid", Prepared(), "file:key")
    assert share.behind == {"branch": ("edge-001",)}
    gateways = share.links["branch"]["gateways"]
    assert [(row["name"], row["address"], row["initiates"]) for row in gateways] == [
        ("gw-home", "198.19.0.5", True),
        ("gw-branch", "198.19.6.10", False),
    ]


def test_the_plan_shows_both_gateways_and_every_file_of_theirs(hybrid):
    plan = comparing.compare(hybrid, None, None)
    assert {step.device: step.kind for step in plan.steps if step.device.startswith("gw-")} == {
        "gw-home": "create",
        "gw-branch": "create",
    }
    assert ("gw-branch", "/etc/nftables.conf") in {(diff.device, diff.path) for diff in plan.file_diffs}


def test_what_is_expected_survives_its_document(hybrid):
    found = expectations.build(hybrid)
    assert found.gateways["gw-branch"].behind == ("edge-001",)
    assert found.gateways["gw-home"].behind == ()
    assert expectations.Expectations.from_json(found.to_json()) == found


def test_a_site_without_another_exports_nothing_of_it():
    slim = (Path(__file__).parents[2] / "lab" / "slim" / "environment.yml").read_text()
    text = "".join(export.site_json(built(slim)))
    assert "gateways" not in text
    assert "wan" not in text
