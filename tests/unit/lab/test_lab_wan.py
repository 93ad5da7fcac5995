"""The lab's WAN from the exported site alone: what is made, and that nobody in between knows a site's networks."""

import json
from ipaddress import IPv4Interface, IPv4Network
from pathlib import Path

import pytest

from supernode import design, spec
from supernode.design import export
from supernode.lab import wan

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def document():
    text = (ROOT / "inventories" / "lab-hybrid" / "environment.yml").read_text()
    return json.loads("".join(export.site_json(design.build(spec.read({"environment": text})))))


@pytest.fixture(scope="module")
def found(document):
    return wan.read(document)


@pytest.fixture(scope="module")
def lines(found):
    bmcs, ports = (IPv4Interface("198.19.3.13/24"),), ("m-b01u01",)
    block, router = IPv4Network("198.19.0.0/19"), IPv4Interface("198.19.0.1/24")
    return wan.inside(found, wan.Surroundings(block, router, bmcs, ports))


def test_a_site_alone_has_no_wan(document):
    assert wan.read({key: value for key, value in document.items() if key != "wan"}) is None


def test_what_the_export_says_is_what_is_read(found):
    assert (found.mtu, found.tunnel_port, found.site.name) == (1400, 51820, "branch")
    assert (found.near.name, found.far.name) == ("gw-home", "gw-branch")
    assert (found.near.translated, found.far.translated) == (True, False)
    assert found.beyond(IPv4Interface("198.19.2.13/24"))
    assert not found.beyond(IPv4Interface("198.19.0.13/24"))


def test_the_link_between_the_providers_has_the_wans_mtu(found):
    core = next(line for line in wan.commands(found) if line.startswith("link add core"))
    assert core.count("mtu 1400") == 2


def test_no_provider_knows_the_other_sites_networks(lines):
    routes = [line.split()[2] for space in (wan.NEAR, wan.FAR) for line in lines[space] if line.startswith("route add")]
    assert "198.19.6.8/29" in routes
    assert not any(IPv4Network(route).subnet_of(IPv4Network("198.19.2.0/23")) for route in routes)
    # the far one has no way to this site at all: what answers there answers a translated address
    assert not [line for line in lines[wan.FAR] if line.startswith("route add")]


def test_the_other_sites_only_way_out_is_its_gateway(lines):
    site = lines["site-branch"]
    assert [line for line in site if line.startswith("route add")] == [
        "route add default via 198.19.3.1 dev mgmt onlink"
    ]
    assert "address add 198.19.3.13/32 dev lo" in site
    assert "link set m-b01u01 master mgmt" in site


def test_a_tunnel_that_is_down_is_the_providers_doing_and_nothing_else_stops(found):
    assert "drop" not in wan.firewall(found)
    blocked = wan.firewall(found, tunnel_blocked=True)
    assert "udp dport 51820 drop" in blocked
    assert "policy accept" in blocked
    assert "masquerade" in blocked
