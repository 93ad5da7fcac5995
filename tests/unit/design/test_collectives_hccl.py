"""Ascend: the rank table, the ports' addresses and the environment follow from the design."""

import copy
import json

import pytest

from supernode import catalog, design, packaged, spec
from supernode.design import collectives, roles
from supernode.design.collectives import hccl, rank_rules

TEXT = (packaged.root() / "inventories" / "examples" / "ascend-a2-2x" / "environment.yml").read_text()


@pytest.fixture(scope="module")
def built():
    return design.build(spec.read({"environment": TEXT}))


def files(built, host):
    return {file.path: file.content for file in collectives.files(built, built.host(host))}


def test_every_host_has_the_same_rank_table_and_it_is_right(built):
    first, second = (files(built, host)[hccl.RANK_TABLE] for host in ("npu-001", "npu-002"))
    assert first == second
    table = json.loads(first)
    assert list(rank_rules.faults(table)) == []
    assert table["server_count"] == "2"
    assert [server["server_id"] for server in table["server_list"]] == ["10.10.0.11", "10.10.0.12"]
    assert [d["rank_id"] for s in table["server_list"] for d in s["device"]] == [str(n) for n in range(16)]


def test_a_processor_has_the_address_of_the_rail_at_its_own_place_on_the_bus(built):
    """Processors are numbered otherwise than rails: number 0 is at c1, which is rail 6."""
    kind = catalog.server("atlas-800t-a2")
    rails = {link.rail: str(link.a_address.ip) for link in built.links_of("npu-001")}
    table = hccl.rank_table(built, built.host("npu-001"))
    found = [device["device_ip"] for device in table["server_list"][0]["device"]]
    assert found == [rails[next(n.rail for n in kind.nics if n.pci == pci)] for pci in kind.gpu_pci]
    assert found[0] == rails[6]


def test_the_driver_s_addresses_are_the_rank_table_s(built):
    lines = dict(line.split("=") for line in files(built, "npu-002")[hccl.ADDRESSES].split())
    table = hccl.rank_table(built, built.host("npu-002"))
    assert [lines[f"address_{n}"] for n in range(8)] == [d["device_ip"] for d in table["server_list"][1]["device"]]
    assert lines["netmask_0"] == "255.255.255.254"
    assert lines["gateway_0"] == lines["netdetect_0"]


def test_the_environment_names_the_host_s_own_address_and_the_class(built):
    text = files(built, "npu-002")[hccl.ENVIRONMENT]
    assert "export HCCL_IF_IP=10.10.0.12\n" in text
    assert "export HCCL_RDMA_TC=132\n" in text


def test_the_kernel_names_none_of_these_ports(built):
    assert "rails" not in [role.name for role in roles.of(built, built.host("npu-001"))]


def changed(built, path, value):
    table = copy.deepcopy(hccl.rank_table(built, built.host("npu-001")))
    *above, last = path
    place = table
    for step in above:
        place = place[step]
    place[last] = value
    return list(rank_rules.faults(table))


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("server_count",), "3", "server_count is 3"),
        (("server_count",), 2, "is no text"),
        (("version",), "1.2", "version is 1.0"),
        (("status",), "initializing", "status completed"),
        (("server_list", 1, "server_id"), "10.10.0.11", "is there twice"),
        (("server_list", 1, "server_id"), "x" * 65, "1 to 64"),
        (("server_list", 0, "device", 3, "rank_id"), "11", "rank_id 11 where 3 follows"),
        (("server_list", 0, "device", 3, "device_id"), "9", "without a gap"),
        (("server_list", 0, "device", 3, "device_ip"), "", "is no address"),
        (("server_list", 0, "device", 3, "device_ip"), "10.64.0.999", "is no address"),
    ],
)
def test_a_wrong_rank_table_is_named(built, path, value, said):
    assert any(said in what for what in changed(built, path, value))


def test_an_address_given_twice_is_named(built):
    taken = hccl.rank_table(built, built.host("npu-001"))["server_list"][1]["device"][0]["device_ip"]
    assert changed(built, ("server_list", 0, "device", 0, "device_ip"), taken) == [f"device_ip {taken} is there twice"]
