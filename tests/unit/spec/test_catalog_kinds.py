"""The catalogue: every kind reads, names its source, and its arithmetic holds."""

import pytest

from supernode import catalog
from supernode.units import parse_rate


@pytest.mark.parametrize("name", catalog.server_kinds())
def test_server_kinds(name):
    kind = catalog.server(name)
    assert kind.source
    assert len(kind.nics) == kind.gpus * (4 if kind.cloud else 1)
    assert bool(kind.gpu) == bool(kind.gpus)
    assert [nic.rail for nic in kind.nics] == list(range(len(kind.nics)))
    assert [nic.pci for nic in kind.nics] == sorted(nic.pci for nic in kind.nics)
    assert all(attribute.admits(attribute.default) for attribute in kind.bios.values())


@pytest.mark.parametrize("name", catalog.switch_kinds())
def test_switch_kinds(name):
    kind = catalog.switch(name)
    assert kind.source
    assert kind.splits[0] == 1
    assert kind.port_name(0, 0, 1) == ("swp1" if kind.link == "ethernet" else "p1")
    assert (kind.os == "none") == (kind.link == "infiniband")


@pytest.mark.parametrize("name", catalog.cdu_kinds())
def test_cooling_unit_kinds(name):
    kind = catalog.cdu(name)
    assert kind.source
    assert (kind.protocol == "modbus") == bool(kind.registers) == bool(kind.sequence) == bool(kind.max_block)
    points = [signal.point for signal in kind.signals]
    assert len(set(points)) == len(points)
    assert {"secondary_flow", "secondary_supply_temperature"} <= set(points)
    assert all(signal.low < signal.high for signal in kind.signals)
    taken = [r.address + n for r in kind.registers for n in range(r.size)]
    assert len(set(taken)) == len(taken)
    bits = [bit for d in kind.detectors for bit in (d.wet, d.broken)]
    assert len(set(bits)) == len(bits)


@pytest.mark.parametrize("find", [catalog.server, catalog.switch, catalog.cdu])
def test_an_unknown_kind_lists_the_known(find):
    with pytest.raises(KeyError, match="known: "):
        find("nonesuch")


def test_a_server_is_no_switch():
    with pytest.raises(KeyError, match="no switch kind 'dgx-h100'"):
        catalog.switch("dgx-h100")


def test_sockets_are_split_as_far_as_the_rate_allows():
    kind = catalog.switch("sn5600")
    assert [kind.split_for(parse_rate(rate)) for rate in ("800 Gbit/s", "400 Gbit/s", "200 Gbit/s", "100 Gbit/s")] == [
        1,
        2,
        4,
        8,
    ]
    assert kind.port_name(16, 1, 2) == "swp17s1"
    with pytest.raises(ValueError, match=r"carries 800 Gbit/s, not 1\.6 Tbit/s"):
        kind.split_for(parse_rate("1.6 Tbit/s"))


def test_the_lab_has_the_ports_of_a_whole_unit():
    assert catalog.switch("lab-leaf").ports >= 64 + 8


@pytest.mark.parametrize(
    ("value", "admitted"),
    [("Enabled", True), ("enabled", False), (True, False)],
    ids=["right", "other case", "YAML's On"],
)
def test_a_bios_value_is_held_against_its_registry(value, admitted):
    assert catalog.server("lab-gpu8").bios["SriovEnable"].admits(value) is admitted
