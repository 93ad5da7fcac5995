"""Our topology file holds what NCCL's parser asks for; each way in which such files go wrong in silence is named."""

import pytest

from supernode import catalog
from supernode.design.collectives import topology, topology_rules

DGX = topology.render(catalog.server("dgx-h100"), tree_only=False)
KINDS = [
    name for name in catalog.server_kinds() if (inside := catalog.server(name).topology) and inside.library == "nccl"
]


@pytest.mark.parametrize("tree_only", [True, False])
@pytest.mark.parametrize("name", KINDS)
def test_our_files_have_no_faults(name, tree_only):
    assert list(topology_rules.faults(topology.render(catalog.server(name), tree_only=tree_only))) == []


def test_every_accelerator_stands_beside_its_port():
    lines = DGX.split("\n")
    at = next(i for i, line in enumerate(lines) if "0000:c3:00.0" in line)
    assert 'dev="5" sm="90"' in lines[at + 1]
    assert "0000:c0:00.0" in lines[at + 5]
    assert 'name="mlx5_9" dev="5" speed="400000"' in lines[at + 7]


def test_the_tree_alone_names_no_speed_of_a_port():
    tree = topology.render(catalog.server("dgx-h100"), tree_only=True)
    assert "<net" not in tree
    assert "<gpu" not in tree
    assert tree.count("<pci") == DGX.count("<pci")


# What libnccl 2.32.3 takes in silence for something slower, and what it refuses; tests/nccl asks it.
SILENT = {
    "link_speed without PCIe": ("32.0 GT/s PCIe", "32.0 GT/s", "counts as Gen3"),
    "no speed of a port": (' speed="400000"', "", "<net> without speed"),
    "no direct access": ('port="1"', 'port="1" gdr="0"', "by way of the processor"),
    "one guid twice": ('port="1"', 'port="1" guid="0x1"', "taken for one device"),
    "one busid twice": ("0000:43:00.0", "0000:1b:00.0", "taken for one device"),
}
REFUSED = {
    "prolog": ("<!-- NVIDIA", '<?xml version="1.0"?>\n<!-- NVIDIA', "prolog"),
    "tabs": ("\n  <cpu", "\n\t<cpu", "tabs"),
    "newline between attributes": ('<system version="1">', '<system\nversion="1">', "not one tag"),
    "text": ("      </pci>", "      text</pci>", "not one tag"),
    "version": ('version="1"', 'version="2"', "version 2"),
    "unclosed": ("</system>\n", "", "never closed"),
    "no sm": (' sm="90"', "", "<gpu> without sm"),
    "no class": (' class="0x060400"', "", "<pci> without class"),
    "no width": (' link_width="16"', "", "<pci> without link_width"),
    "no busid": (' busid="0000:1b:00.0"', "", "<pci> without busid"),
    "no arch": (' arch="x86_64"', "", "<cpu> without arch"),
    "no vendor": (' vendor="GenuineIntel"', "", "<cpu> without vendor"),
    "no family": (' familyid="6"', "", "<cpu> without familyid"),
    "no numa": (' numaid="0"', "", "<cpu> without numaid"),
    "no count": (' count="18"', "", "<nvlink> without count"),
    "no tclass": (' tclass="0x068000"', "", "<nvlink> without tclass"),
}


def broken(old, new):
    assert old in DGX
    return DGX.replace(old, new)


@pytest.mark.parametrize(("old", "new", "said"), [*SILENT.values(), *REFUSED.values()], ids=[*SILENT, *REFUSED])
def test_a_broken_file_is_named(old, new, said):
    found = [what for _, what in topology_rules.faults(broken(old, new))]
    assert any(said in what for what in found), found


def test_the_line_is_named():
    found = list(topology_rules.faults(broken('mlx5_4" dev="2" speed="400000"', 'mlx5_4" dev="2" speed="0"')))
    at = next(i for i, line in enumerate(DGX.split("\n"), start=1) if "mlx5_4" in line)
    assert found == [(at, "speed 0 is none, so it counts as 10 Gbit/s")]


def test_an_element_in_a_strange_place_is_named():
    found = list(topology_rules.faults('<system version="1">\n  <gpu dev="0" sm="90"/>\n</system>\n'))
    assert found == [(2, "<gpu> has no place in <system>")]
