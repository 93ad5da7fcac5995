"""An InfiniBand fabric in the design: what it has instead of addresses, who manages it, and its netlist."""

import re
from collections import Counter

import pytest

from supernode import design, packaged, spec
from supernode.catalog import infiniband as links
from supernode.design import artefacts, hostvars, infiniband, roles
from supernode.errors import Refusal
from supernode.units import MbitPerS

INVENTORIES = packaged.root() / "inventories"
LAB = (INVENTORIES / "lab-ib" / "environment.yml").read_text()
SUPERPOD = INVENTORIES / "examples" / "superpod-h100-1su-ib" / "environment.yml"


def built(text=LAB, **more):
    return design.build(spec.read({"environment": text, **more}))


@pytest.fixture(scope="module")
def lab():
    return built()


def test_nothing_of_it_has_an_address_or_a_configuration(lab):
    assert {(link.a_address, link.b_address, link.mtu) for link in lab.links} == {(None, None, 4096)}
    assert {(switch.asn, switch.loopback) for switch in lab.switches} == {(None, None)}
    assert [lab.switch_files(switch.name) for switch in lab.switches] == [()] * len(lab.switches)
    assert lab.configured_switches == ()


def test_the_first_active_hosts_manage_it(lab):
    assert [host.name for host in infiniband.managers(lab)] == ["gpu-001", "gpu-002"]
    priorities = {}
    for host in lab.hosts:
        files = {file.path: file.content for file in lab.files(host.name)}
        if "/etc/opensm/opensm.conf" in files:
            priorities[host.name] = int(re.search(r"^sm_priority (\d+)$", files["/etc/opensm/opensm.conf"], re.M)[1])
    assert priorities == {"gpu-001": 14, "gpu-002": 13}


def test_who_is_quarantined_manages_nothing(lab):
    machines = 'schema: 1\nslots:\n  r01u01: {state: quarantined, reason: "dead"}\n'
    found = built(machines=machines)
    assert [host.name for host in infiniband.managers(found)] == ["gpu-002", "gpu-003"]


def test_its_hosts_have_other_roles_than_those_of_a_routed_fabric(lab):
    concerned = {host.name: [role.name for role in roles.of(lab, host)] for host in lab.hosts}
    assert "rails" not in concerned["gpu-003"]
    assert "infiniband" in concerned["gpu-003"]
    assert "subnet_manager" not in concerned["gpu-003"]
    assert "subnet_manager" in concerned["gpu-001"]
    assert {"rdma-core", "infiniband-diags", "opensm"} <= set(lab.software().packages)
    manager, other = hostvars.build(lab, "gpu-001"), hostvars.build(lab, "gpu-003")
    assert {"rdma-core", "infiniband-diags"} <= set(other["base_system_packages"])
    assert set(manager["base_system_packages"]) - set(other["base_system_packages"]) == {"opensm"}


def test_the_package_s_own_manager_is_masked_before_it_comes(lab):
    """systemd takes an empty unit file for a mask; the role is among those whose files are there first."""
    files = {file.path: file for file in lab.files("gpu-001")}
    mask = files["/etc/systemd/system/opensm.service"]
    assert (mask.content, mask.role) == ("", "subnet_manager")
    assert "subnet_manager" in hostvars.build(lab, "gpu-001")["base_system_ahead"]
    assert mask.path not in {file.path for file in lab.files("gpu-003")}


def blocks(text):
    """node -> {port: (far node, far port, speed)}, read from a netlist by hand."""
    found = {}
    for block in text.strip().split("\n\n"):
        head, *rows = block.splitlines()
        sort, ports, name = re.fullmatch(r'(Switch|Ca)\t(\d+) "(.*)"', head).groups()
        read = (re.fullmatch(r'\[(\d+)\]\t"(.*)"\[(\d+)\]\t# "(.*)" lid 0 (\w+)', row).groups() for row in rows)
        found[name] = {int(port): (far, int(there), speed) for port, far, there, _, speed in read}
        assert max(found[name]) <= int(ports), (sort, name)
    return found


def test_the_netlist_has_every_cable_from_both_ends(lab):
    found = blocks("".join(infiniband.netlist(lab)))
    assert len(found) == len(lab.switches) + 16
    assert found["gpu-003 ibsim2"] == {1: ("su01-leaf2", 3, "4xHDR")}
    assert sum(map(len, found.values())) == 2 * len(lab.links)
    for node, ports in found.items():
        for port, (far, there, speed) in ports.items():
            assert found[far][there] == (node, port, speed)


def test_a_superpod_has_what_the_reference_counts():
    """NVIDIA DGX SuperPOD H100, one scalable unit: 31 systems, 8 leaves, 4 spines, 256 leaf-spine cables."""
    found = built(SUPERPOD.read_text())
    tiers = Counter(switch.tier for switch in found.switches)
    kinds = Counter(link.kind for link in found.links)
    assert (len(found.hosts), tiers["leaf"], tiers["spine"], kinds["uplink"], kinds["rail"]) == (31, 8, 4, 256, 248)
    netlist = blocks("".join(infiniband.netlist(found)))
    assert netlist["gpu-001 mlx5_3"] == {1: ("su01-leaf1", 1, "4xNDR")}


def test_only_an_infiniband_fabric_has_a_netlist(lab):
    assert "fabric.net" in {row.name for row in artefacts.of(lab)}
    ethernet = built((INVENTORIES / "lab" / "environment.yml").read_text())
    assert "fabric.net" not in {row.name for row in artefacts.of(ethernet)}


@pytest.mark.parametrize(("rate", "name"), [(100_000, "EDR"), (200_000, "HDR"), (400_000, "NDR")])
def test_a_rate_of_four_lanes_has_a_name(rate, name):
    assert links.speed(MbitPerS(rate)) == name


def test_more_managers_than_hosts_are_refused():
    with pytest.raises(Refusal, match="subnet_managers is 5"):
        built(LAB.replace("subnet_managers: 2", "subnet_managers: 5"))
