"""The exports, read back by the rules of their documents: every cable once, by the design's names.

`make owners` has the tools and libraries that own the formats read them (test_exports_owners.py).
"""

import csv
import functools
import io
import re
from collections import Counter

import pytest
import yaml

from supernode import design, packaged, spec
from supernode.design import artefacts
from supernode.design.exports import simai, slurm, units

INVENTORIES = packaged.root() / "inventories"
CASES = {"lab": INVENTORIES / "lab", "lab-ib": INVENTORIES / "lab-ib"} | {
    name: INVENTORIES / "examples" / name for name in ("superpod-h100-1su", "superpod-h100-1su-ib", "superpod-h100-4su")
}


@functools.cache
def built(case):
    return design.build(spec.read({"environment": (CASES[case] / "environment.yml").read_text()}))


@functools.cache
def exported(case):
    found = built(case)
    return {row.name.removeprefix("exports/"): "".join(row.lines(found)) for row in artefacts.of(found)}


def ends(case):
    return {frozenset(((link.a_device, link.a_port), (link.b_device, link.b_port))): link for link in built(case).links}


def rows(case, name):
    return list(csv.DictReader(io.StringIO(exported(case)[name])))


@pytest.mark.parametrize("case", CASES)
def test_what_a_design_has_goes_by_its_transport(case):
    subnet = built(case).environment.fabric.infiniband
    assert ("fabric.topo" in exported(case)) == ("fabric.net" in exported(case)) == subnet
    assert ("topology.dot" in exported(case)) == ("containerlab.clab.yml" in exported(case)) == (not subnet)
    assert all(row.what.endswith(".") for row in artefacts.ARTEFACTS)


@pytest.mark.parametrize("case", CASES)
def test_a_design_of_more_cables_than_a_tool_takes_has_no_exports(case, monkeypatch):
    monkeypatch.setattr(artefacts, "LARGEST", len(built(case).links) - 1)
    assert not {row.name for row in artefacts.of(built(case))} & {row.name for row in artefacts.EXPORTS}


@pytest.mark.parametrize("case", ["lab", "superpod-h100-1su"])
def test_topology_dot_has_each_cable_and_each_switch(case):
    text = exported(case)["topology.dot"]
    edges = re.findall(r'^"([^"]+)":"([^"]+)" -- "([^"]+)":"([^"]+)"$', text, re.M)
    assert {frozenset(((a, b), (c, d))) for a, b, c, d in edges} == set(ends(case))
    assert len(edges) == len(built(case).links)
    nodes = dict(re.findall(r'^"([^"]+)" \[label="[^"]+" role="(\w+)" os="cumulus"\]$', text, re.M))
    assert nodes == {switch.name: switch.tier for switch in built(case).switches}
    assert text.startswith("graph network {\n")
    assert text.endswith("}\n")


def test_topo_says_lane_speed_and_adapter():
    """H100 SuperPOD: NDR is four lanes of 100 Gbit/s; rail 1 of DGX H100 is mlx5_3."""
    lines = exported("superpod-h100-1su-ib")["fabric.topo"].splitlines()
    assert lines[0] == "MQM9700 su01-leaf0"
    assert "   P1 -4x-100G-> HCA_mlx5_8 gpu-001 mlx5_3/P1" in lines
    assert Counter(line.split("-> ")[1].split("_")[0] for line in lines if "-> HCA" in line) == {"HCA": 248}
    assert sum("-> MQM9700" in line for line in lines) == 2 * 256


def tree_of(text):
    found = dict(re.findall(r"^SwitchName=(\S+) (?:Nodes|Switches)=(\S+)$", text, re.M))
    assert len(found) == len(text.splitlines())
    return found


def test_slurms_tree_has_every_host_once_and_one_root():
    found = tree_of(exported("superpod-h100-4su")["slurm/topology.conf"])
    below = {name for text in found.values() for name in text.split(",")}
    assert [name for name in found if name not in below] == ["spines"]
    assert found["spines"] == "su01,su02,su03,su04"
    assert sum(len(unit.hosts) for unit in units.units(built("superpod-h100-4su"))) == len(
        built("superpod-h100-4su").hosts
    )
    document = yaml.safe_load(exported("superpod-h100-4su")["slurm/topology.yaml"])
    (topology,) = document
    assert list(topology) == ["topology", "cluster_default", "tree"]
    switches = {row["switch"]: row.get("nodes") or row["children"] for row in topology["tree"]["switches"]}
    assert switches == found


def test_a_rack_of_trays_is_a_block_and_a_domain(monkeypatch):
    """Slurm's BlockSizes: the planning size, then powers of two of it (its topology guide)."""
    hosts = list(built("superpod-h100-1su-ib").hosts)
    domains = {f"nvl-r{number:02d}": tuple(hosts[4 * number : 4 * number + 4]) for number in range(4)}
    for module in (units, slurm):
        monkeypatch.setattr(module, "domains", lambda _design: domains)
    text = "".join(slurm.blocks(built("superpod-h100-1su-ib")))
    assert text.splitlines()[0] == "BlockName=nvl-r00 Nodes=gpu-[001-004]"
    assert text.splitlines()[-1] == "BlockSizes=4,8,16"
    document = yaml.safe_load("".join(slurm.document(built("superpod-h100-1su-ib"))))
    assert [(row["topology"], row["cluster_default"]) for row in document] == [("nvlink", True), ("fabric", False)]
    assert document[0]["block"]["block_sizes"] == [4, 8, 16]


def test_topograph_labels_every_host_nearest_first():
    found = list(yaml.safe_load_all(exported("superpod-h100-4su")["topograph/labels.yaml"]))
    labels = {node["metadata"]["name"]: node["metadata"]["labels"] for node in found}
    assert set(labels) == {host.name for host in built("superpod-h100-4su").hosts}
    assert labels["gpu-040"] == {"fabric.topograph.run/tier-0": "su02", "fabric.topograph.run/tier-1": "spines"}
    model = yaml.safe_load(exported("superpod-h100-4su")["topograph/model.yaml"])
    assert model["switches"]["spines"]["switches"] == ["su01", "su02", "su03", "su04"]
    assert sorted(name for block in model["blocks"] for name in block["nodes"]) == sorted(labels)


# NetBox 4, dcim/forms/bulk_import.py: what CableImportForm and DeviceImportForm ask for.
CABLE = {f"side_{side}_{column}" for side in "ab" for column in ("device", "type", "name")}
DEVICE = {"name", "role", "manufacturer", "device_type", "status", "site"}


@pytest.mark.parametrize("case", CASES)
def test_netbox_has_every_port_before_its_cable(case):
    cables, interfaces = rows(case, "netbox/cables.csv"), rows(case, "netbox/interfaces.csv")
    devices, racks = rows(case, "netbox/devices.csv"), rows(case, "netbox/racks.csv")
    assert set(cables[0]) >= CABLE
    assert set(devices[0]) >= DEVICE
    ports = Counter((row["device"], row["name"]) for row in interfaces)
    assert set(ports.values()) == {1}
    used = {
        frozenset(((row["side_a_device"], row["side_a_name"]), (row["side_b_device"], row["side_b_name"])))
        for row in cables
    }
    assert used == set(ends(case))
    assert {device for device, _ in ports} <= {row["name"] for row in devices}
    assert {row["rack"] for row in devices} <= {row["name"] for row in racks}


@pytest.mark.parametrize("case", CASES)
def test_infragraph_has_an_edge_of_each_cable_between_ports_that_its_devices_have(case):
    found = yaml.safe_load(exported(case)["infragraph.yaml"])
    parts = {row["name"]: {part["name"] for part in row["components"]} for row in found["devices"]}
    kinds = {row["name"]: row["device"] for row in found["instances"]}
    used = set()
    for edge in found["edges"]:
        both = [(edge[end]["instance"][:-3], edge[end]["component"][:-3]) for end in ("ep1", "ep2")]
        assert all(port in parts[kinds[device]] for device, port in both)
        used.add(frozenset(both))
    assert used == set(ends(case))


@pytest.mark.parametrize("case", ["lab", "superpod-h100-1su"])
def test_containerlab_links_nodes_and_binds_files_that_are_written(case):
    found = yaml.safe_load(exported(case)["containerlab.clab.yml"])
    nodes = found["topology"]["nodes"]
    links = {frozenset(tuple(end.split(":")) for end in row["endpoints"]) for row in found["topology"]["links"]}
    assert links == set(ends(case))
    assert {device for link in links for device, _ in link} == set(nodes)
    assert all(len(port) <= 15 for link in links for _, port in link)  # Linux: IFNAMSIZ
    switch = built(case).switches[0].name
    written = {f"../files/{switch}{file.path}" for file in built(case).switch_files(switch)}
    assert {bind.split(":")[0] for bind in nodes[switch]["binds"]} <= written


def test_simai_counts_what_it_lists_and_rails_begin_at_their_accelerator():
    """One scalable unit of H100: 248 accelerators, 31 times NVSwitch, 12 switches; 504 cables and 248 NVLinks."""
    header, boxes, *links = exported("superpod-h100-1su-ib")["simai/topology.txt"].splitlines()
    assert header == "291 8 31 12 752 H100"
    assert [int(number) for number in boxes.split()] == list(range(248, 291))
    assert len(links) == 752
    numbers = {
        row["node"]: row for row in csv.DictReader(io.StringIO("".join(simai.nodes(built("superpod-h100-1su-ib")))))
    }
    a, b, rate, _, _ = links[248 + 11].split()  # rail 3 of the second host
    assert (numbers[a]["device"], numbers[a]["part"], numbers[b]["device"]) == ("gpu-002", "gpu3", "su01-leaf3")
    assert rate == "400Gbps"


@pytest.mark.parametrize("case", CASES)
def test_the_walk_has_both_ends_of_each_cable_and_never_comes_back_to_a_rack(case):
    found = rows(case, "walk.csv")
    assert [int(row["step"]) for row in found] == list(range(1, 2 * len(built(case).links) + 1))
    assert set(Counter(row["cable"] for row in found).values()) == {2}
    here = {(row["cable"], row["device"], row["port"], row["far_device"], row["far_port"]) for row in found}
    assert here == {(cable, far, far_port, device, port) for cable, device, port, far, far_port in here}
    racks = [row["rack"] for row in found]
    assert len([rack for rack, before in zip(racks, ["", *racks], strict=False) if rack != before]) == len(set(racks))
    heights = {}
    for row in found:
        assert int(row["unit"]) <= heights.get(row["rack"], 99)
        heights[row["rack"]] = int(row["unit"])


def test_the_way_comes_back_along_the_second_row():
    document = yaml.safe_load((CASES["superpod-h100-1su"] / "environment.yml").read_text())
    for number, rack in enumerate(document["racks"][:8]):
        rack["row"] = 1 + number // 4
    found = design.build(spec.read({"environment": yaml.safe_dump(document)}))
    from supernode.design.exports import walking

    racks = list(dict.fromkeys(plug.rack for plug in walking.plugs(found)))
    assert [rack for rack in racks if rack.startswith("r")] == ["r01", "r02", "r03", "r04", "r08", "r07", "r06", "r05"]


def test_each_label_says_its_own_end_first():
    text = exported("lab")["labels.html"]
    labels = re.findall(
        r'<div class="label"><b>(\w+)</b> ([\d.]+) m<br>(\S+) (\S+) <b>(\S+)</b><br>to (\S+) (\S+) (\S+)</div>', text
    )
    assert len(labels) == text.count('class="label"') == 2 * len(built("lab").links)
    walk = [
        (
            row["cable"],
            row["length_m"],
            *(row[name] for name in ("place", "device", "port", "far_place", "far_device", "far_port")),
        )
        for row in rows("lab", "walk.csv")
    ]
    assert labels == walk
