"""Rented pools: names, addresses and places by the same arithmetic, and nothing of them on the site's fabric."""

from ipaddress import IPv4Address, ip_network

import pytest

from supernode import catalog, design, packaged, spec
from supernode.design import allocating, expectations, export, hostvars, seed
from supernode.errors import Refusal
from supernode.spec import cloud_rules

TEXT = (packaged.root() / "inventories" / "examples" / "aws-p5" / "environment.yml").read_text()


def built(edit=lambda text: text, saved=None):
    texts = {"environment": edit(TEXT)}
    if saved is not None:
        texts["allocation"] = spec.allocation_text(saved)
    return design.build(spec.read(texts))


def test_the_kind_has_the_fields_of_metal_and_a_card_for_each_nic():
    kind = catalog.server("p5.48xlarge")
    assert (kind.gpus, len(kind.nics), kind.nics[0].rate) == (8, 32, catalog.server("dgx-h100").nics[0].rate / 4)
    assert [card.card for card in kind.cloud.cards] == [nic.rail for nic in kind.nics]
    assert [card.type for card in kind.cloud.cards] == ["efa"] + ["efa-only"] * 31
    assert kind.cloud.cards[0].device == 0
    assert not kind.on_fabric
    assert catalog.server("dgx-h100").cloud is None


def test_hosts_stand_in_the_zone_with_addresses_of_the_subnet():
    found = built()
    first = found.host("burst-001")
    assert (first.slot, first.rack, first.cloud, first.su) == ("burst-001", "us-east-1b", "aws", 0)
    assert str(first.management) == "10.96.0.11/24"
    assert first.bmc == IPv4Address(0)
    assert found.slots["burst-002"] == "burst-002"
    assert found.host("gpu-001").management.ip == IPv4Address("10.10.0.11")


def test_no_cable_controller_or_golden_image_is_theirs():
    found = built()
    assert list(found.links_of("burst-001")) == []
    assert "burst" not in "".join(export.bmc_csv(found)) + "".join(export.cabling_csv(found))
    wanted = expectations.build(found, image="1" * 64)
    assert (wanted.hosts["burst-001"].image, wanted.hosts["gpu-001"].image) == ("", "1" * 64)


def test_the_same_roles_configure_them_but_rails():
    found = built()
    here, there = hostvars.build(found, "gpu-001"), hostvars.build(found, "burst-001")
    assert {key for key in here if key not in there} == {"rails_files"}
    assert set(there) <= set(here)


def test_growth_moves_nothing_and_the_subnets_ends_stay_the_providers():
    before = built()
    larger = spec.read({"environment": TEXT.replace("count: 2", "count: 230")}).environment
    after = built(lambda text: text.replace("count: 2", "count: 230"), allocating.extend(larger, before.allocation))
    for host in before.hosts:
        assert after.host(host.name) == host
    addresses = {host.management.ip for host in after.hosts if host.cloud}
    network = ip_network("10.96.0.0/24")
    assert len(addresses) == 230
    assert not addresses & {network[n] for n in (0, 1, 2, 3, 255)}
    with pytest.raises(Refusal, match="the last is the provider's"):
        built(lambda text: text.replace("count: 2", "count: 245"))


def test_a_network_is_of_one_stack():
    with pytest.raises(Refusal, match="do not fit into stack aws-p5"):
        built(lambda text: text.replace("count: 2", "count: 20") + "\nstacks: {limit: 18}\n")


def test_a_pool_that_comes_to_the_site_gets_numbers_of_the_site():
    cloudy = built().allocation
    text = TEXT.replace(
        "    kind: p5.48xlarge\n    count: 2\n    cloud: aws\n", "    kind: lab-head\n    count: 2\n    racks: [r02]\n"
    )
    text = text.replace("  - {name: f01", "  - {name: r02, units: 48}\n  - {name: f01")
    text = text[: text.index("# Hosts of the cloud")] + text[text.index("fabric:") :]
    environment = spec.read({"environment": text}).environment
    moved = allocating.extend(environment, cloudy)
    assert [b.address for b in moved.hosts if b.pool == "burst"] != [
        b.address for b in cloudy.hosts if b.pool == "burst"
    ]
    assert "burst" in moved.racks
    assert allocating.extend(built().environment, moved).racks.keys() == cloudy.racks.keys()


def test_user_data_is_the_seed_and_names_nothing_secret():
    found = built()
    text = seed.user_data(found, found.host("burst-001"), "PEM", "ssh-ed25519 AAAA supernode")
    assert text.startswith("#cloud-config\n")
    for part in (
        '"hostname": "burst-001"',
        '"fqdn": "burst-001.cluster.example"',
        "ssh-ed25519 AAAA",
        "ssh_deletekeys",
    ):
        assert part in text
    for path in (
        "/etc/supernode/ca.pem",
        "/etc/apt/sources.list.d/supernode.list",
        "/etc/apt/sources.list.d/debian.sources",
    ):
        assert f'"path": "{path}"' in text
    assert "token" not in text


def test_the_clouds_range_is_nobody_elses_behind_a_tunnel_either():
    hybrid = (packaged.root() / "inventories" / "lab-hybrid" / "environment.yml").read_text()
    vpn, env = spec.read({"environment": hybrid}).environment.vpn, built().environment
    assert list(cloud_rules.consistency(env.model_copy(update={"vpn": vpn}))) == []
    there = vpn.remote.networks.management.cidr.supernet(new_prefix=16)
    clash = env.cloud.model_copy(update={"cidr": there, "subnet": None})
    found = [problem.what for problem in cloud_rules.consistency(env.model_copy(update={"vpn": vpn, "cloud": clash}))]
    assert any(f"overlaps {vpn.remote.name}'s network management" in what for what in found)
