"""What NCCL is told: the file is read back as NCCL reads it, and each line follows from the design."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supernode import catalog, design, packaged, spec
from supernode.design import collectives
from supernode.design.collectives import conf
from supernode.design.collectives.settings import Setting, Tuning

INVENTORIES = packaged.root() / "inventories"
LAB = (INVENTORIES / "lab" / "environment.yml").read_text()
SUPERPOD = (INVENTORIES / "examples" / "superpod-h100-1su" / "environment.yml").read_text()
SECTION = 'version: "2.27"'


def tuned(text, host="gpu-001"):
    built = design.build(spec.read({"environment": text}))
    return collectives.tuning(built, built.host(host))


def left(tuning):
    return {row.name: row.reason for row in tuning.left}


NAMES = st.sampled_from(sorted(catalog.library("nccl").variables))
VALUES = st.text(st.characters(codec="ascii", exclude_characters="\n\r\0"), min_size=1, max_size=40).map(str.strip)


@given(st.dictionaries(NAMES, VALUES.filter(bool), max_size=12), st.text(max_size=300))
def test_what_is_written_is_what_is_read(values, reason):
    rows = tuple(Setting(name, value, "system", reason, "a test") for name, value in values.items())
    text = conf.render(Tuning("nccl", "2.27", rows, ()))
    assert conf.parse(text) == values


# Each line with what the library of version 2.32.3 made of it (tests/nccl asks it again).
READ = [
    ("NCCL_IB_SL = 5", {"NCCL_IB_SL ": " 5"}),
    ("NCCL_SOCKET_IFNAME=eth0 # inline", {"NCCL_SOCKET_IFNAME": "eth0 # inline"}),
    ('NCCL_A="abc"', {"NCCL_A": '"abc"'}),
    ("export NCCL_B=1", {"export NCCL_B": "1"}),
    (" NCCL_C=1", {" NCCL_C": "1"}),
    ("NCCL_IB_HCA==mlx5_0,mlx5_1", {"NCCL_IB_HCA": "=mlx5_0,mlx5_1"}),
    ("NCCL_D=1\nNCCL_D=2", {"NCCL_D": "1"}),
    ("# NCCL_E=1", {}),
    ("NCCL_F=1\r", {"NCCL_F": "1"}),
    ("NCCL_G=", {"NCCL_G": ""}),
    ("NCCL_H", {}),
    ("NCCL_I=1  ", {"NCCL_I": "1  "}),
    ("NCCL_J=a=b", {"NCCL_J": "a=b"}),
]


@pytest.mark.parametrize(("text", "seen"), READ)
def test_a_file_is_read_without_mercy(text, seen):
    assert conf.parse(text) == seen


def test_what_counts_before_is_not_written_over():
    assert conf.parse("NCCL_A=2\nNCCL_B=2", {"NCCL_A": "1"}) == {"NCCL_A": "1", "NCCL_B": "2"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("NCCL_IB_SL = 5", "blanks included"),
        ("NCCL_A=eth0 # inline", "the remark behind it"),
        ('NCCL_A="abc"', "its quotes"),
        ("export NCCL_B=1", "'export NCCL_B'"),
        (" NCCL_C=1", "' NCCL_C'"),
        ("NCCL_D=1\nNCCL_D=2", "in line 1, and the first counts"),
        ("  # remark", "first column"),
        ("NCCL_H", "no ="),
        ("NCCL_I=1  ", "'1  '"),
        (f"NCCL_J={'x' * 1024}", "longer"),
    ],
)
def test_what_does_not_say_what_it_seems_to_say_is_named(text, said):
    found = list(conf.faults(text))
    assert len(found) == 1
    assert said in found[0][1]
    assert found[0][0] == len(text.split("\n"))


def test_our_own_files_have_no_faults():
    for text in (LAB, SUPERPOD):
        written = conf.render(tuned(text))
        assert list(conf.faults(written)) == []
        assert conf.parse(written) == tuned(text).values()


def test_ports_are_named_whole_and_storage_is_none_of_them():
    value = tuned(SUPERPOD).values()["NCCL_IB_HCA"]
    assert value == "=mlx5_0,mlx5_3,mlx5_4,mlx5_5,mlx5_6,mlx5_9,mlx5_10,mlx5_11"


def test_jobs_meet_over_a_port_whose_name_is_known():
    assert tuned(LAB).values()["NCCL_SOCKET_IFNAME"] == "=eno1"
    assert tuned(SUPERPOD).values()["NCCL_SOCKET_IFNAME"] == "=rail0"


def test_the_index_of_an_address_is_left_to_nccl_and_its_network_is_said():
    assert tuned(SUPERPOD).values()["NCCL_IB_ADDR_RANGE"] == "10.64.0.0/16"
    assert "NCCL_IB_GID_INDEX" in left(tuned(SUPERPOD))
    old = tuned(SUPERPOD.replace(SECTION, 'version: "2.18"'))
    assert "NCCL_IB_ADDR_RANGE" not in old.values()
    assert "2.21" in left(old)["NCCL_IB_ADDR_RANGE"]


def test_a_class_is_written_only_where_one_is_declared():
    assert "NCCL_IB_TC" in left(tuned(LAB))
    assert tuned(LAB.replace(SECTION, f"{SECTION}\n  dscp: 26")).values()["NCCL_IB_TC"] == "104"


def test_rails_that_meet_over_narrow_spines_are_not_crossed():
    assert "NCCL_CROSS_NIC" in left(tuned(LAB))
    narrow = LAB.replace("oversubscription: 1.0", "oversubscription: 2.0")
    assert tuned(narrow).values()["NCCL_CROSS_NIC"] == "0"


def test_rails_that_never_meet_are_not_crossed():
    alone = LAB.replace("family: rail-optimised", "family: rail-only")
    assert tuned(alone).values()["NCCL_CROSS_NIC"] == "0"


def test_large_fabrics_wait_longer(monkeypatch):
    assert "NCCL_IB_TIMEOUT" in left(tuned(LAB))
    monkeypatch.setattr(collectives.nccl, "MANY_HOSTS", 8)
    assert tuned(LAB).values()["NCCL_IB_TIMEOUT"] == "22"


def test_the_machine_is_read_unless_a_file_is_asked_for():
    assert "NCCL_TOPO_FILE" in left(tuned(LAB))
    asked = tuned(LAB.replace(SECTION, f"{SECTION}\n  topology_file: true"))
    assert asked.values()["NCCL_TOPO_FILE"] == "/etc/supernode/nccl-topology.xml"


def test_what_the_environment_says_goes_first_and_says_so():
    text = LAB.replace(SECTION, f"{SECTION}\n  settings: {{NCCL_SOCKET_IFNAME: =eno2, NCCL_DEBUG: WARN}}")
    rows = {row.name: row for row in tuned(text).settings}
    assert rows["NCCL_SOCKET_IFNAME"].value == "=eno2"
    assert rows["NCCL_DEBUG"].source == "environment.yml: collectives.settings.NCCL_DEBUG"


def test_every_line_has_a_reason_a_source_and_an_owner():
    for text in (LAB, SUPERPOD):
        assert all(row.reason and row.source and row.owner == "ours" for row in tuned(text).settings)
        assert all(row.kind == "system" for row in tuned(text).settings)


def test_what_a_plugin_owns_is_not_written_and_may_not_be_set(monkeypatch):
    import dataclasses

    kind = catalog.server("lab-gpu8")
    owned = dataclasses.replace(kind.topology, owners={"NCCL_IB_HCA": "plugin-owned"})
    real = catalog.server
    monkeypatch.setattr(
        catalog,
        "server",
        lambda name: dataclasses.replace(real(name), topology=owned) if name == kind.name else real(name),
    )
    found = tuned(LAB)
    assert "NCCL_IB_HCA" not in found.values()
    assert [row.owner for row in found.left if row.name == "NCCL_IB_HCA"] == ["plugin-owned"]
    with pytest.raises(spec.reading.Refusal, match="set by the plugin of these machines"):
        tuned(LAB.replace(SECTION, f"{SECTION}\n  settings: {{NCCL_IB_HCA: =mlx5_0}}"))


def test_hosts_without_accelerators_get_nothing():
    built = design.build(spec.read({"environment": LAB}))
    head = next(host for host in built.hosts if host.pool == "head")
    assert not collectives.applies(built, head)
    assert collectives.files(built, head) == []


def test_an_environment_that_does_not_ask_gets_nothing():
    slim = "\n".join(
        line
        for line in LAB.split("\n")
        if "collectives" not in line and "library: nccl" not in line and SECTION not in line
    )
    built = design.build(spec.read({"environment": slim}))
    assert not any(collectives.applies(built, host) for host in built.hosts)
