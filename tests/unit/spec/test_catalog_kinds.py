"""The catalogue: every kind reads, names its source, and its arithmetic holds."""

import pytest

from supernode import catalog
from supernode.units import format_rate, parse_rate


@pytest.mark.parametrize("name", catalog.server_kinds())
def test_server_kinds(name):
    kind = catalog.server(name)
    assert kind.source
    assert len(kind.nics) in (0, kind.gpus * (4 if kind.cloud else 1))
    assert bool(kind.gpu) == bool(kind.gpus)
    assert [nic.rail for nic in kind.nics] == list(range(len(kind.nics)))
    assert [nic.pci for nic in kind.nics] == sorted(nic.pci for nic in kind.nics)
    assert all(attribute.admits(attribute.default) for attribute in kind.bios.values())
    assert kind.nic_splits[0] == 1
    assert len(kind.nics) % kind.cage_ports == 0
    assert kind.liquid_share is None or 0 <= kind.liquid_share <= 1


@pytest.mark.parametrize("name", catalog.switch_kinds())
def test_switch_kinds(name):
    kind = catalog.switch(name)
    assert kind.source
    assert kind.splits[0] == 1
    assert kind.port_name(0, 0, 1) == (
        "p1" if kind.link == "infiniband" else "swp1s0" if kind.cage_ports > 1 else "swp1"
    )
    assert (kind.os == "none") == (kind.link == "infiniband")
    assert kind.capacity in (None, kind.ports * kind.rate)
    names = [
        kind.port_name(n, lane, split) for split in kind.splits[-1:] for n in range(kind.ports) for lane in range(split)
    ]
    assert len(set(names)) == len(names)
    assert kind.ports % kind.cage_ports == 0
    assert kind.liquid_share is None or 0 <= kind.liquid_share <= 1


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
        4,
    ]
    assert kind.port_name(16, 1, 2) == "swp17s1"
    with pytest.raises(ValueError, match=r"carries 800 Gbit/s, not 1\.6 Tbit/s"):
        kind.split_for(parse_rate("1.6 Tbit/s"))


# Columns of the makers' tables: sockets, cages, what all ports carry, and the ports when divided as far as possible.
PUBLISHED = {
    "qm9700": (64, 32, "25.6 Tbit/s", 64),
    "qm9790": (64, 32, "25.6 Tbit/s", 64),
    "q3400-ra": (144, 72, "115.2 Tbit/s", 144),
    "q3450-ld": (144, 144, "115.2 Tbit/s", 144),
    "sn5400": (64, 64, "25.6 Tbit/s", 256),
    "sn5600": (64, 64, "51.2 Tbit/s", 256),
    "sn5610": (64, 64, "51.2 Tbit/s", 256),
    "sn6600": (128, 64, "102.4 Tbit/s", 512),
    "sn6810-ld": (128, 128, "102.4 Tbit/s", 512),
    "hpn7-switch": (128, 128, "51.2 Tbit/s", 256),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_switches_have_the_ports_that_their_makers_publish(name):
    kind = catalog.switch(name)
    seen = (kind.ports, kind.ports // kind.cage_ports, format_rate(kind.capacity), kind.ports * max(kind.splits))
    assert seen == PUBLISHED[name]


@pytest.mark.parametrize(
    ("name", "rails", "per_gpu", "height_u", "power_w"),
    [
        ("dgx-a100", 8, "200 Gbit/s", 6, 6500),
        ("dgx-h200", 8, "400 Gbit/s", 8, 10200),
        ("dgx-b200", 8, "400 Gbit/s", 10, 14300),
        ("dgx-b300", 8, "800 Gbit/s", 10, 14500),
        ("gb200-tray", 4, "400 Gbit/s", 1, 5400),
        ("gb300-tray", 4, "800 Gbit/s", 1, 6600),
        ("cloudmatrix-node", 8, "400 Gbit/s", 10, None),
        ("rack64-node", 8, "400 Gbit/s", 4, None),
    ],
)
def test_servers_have_the_ports_that_their_makers_publish(name, rails, per_gpu, height_u, power_w):
    kind = catalog.server(name)
    assert (len(kind.nics), format_rate(kind.nics[0].rate), kind.height_u, kind.power_w) == (
        rails,
        per_gpu,
        height_u,
        power_w,
    )


def test_two_rails_share_a_cage_as_the_guide_has_it():
    labels = [nic.label for nic in catalog.server("dgx-h100").nics]
    assert labels[0] == "OSFP4P2"
    assert labels[3] == "OSFP4P1"
    assert len({label[:5] for label in labels}) == 4


def test_a_cage_of_two_ports_counts_its_lanes_through():
    kind = catalog.switch("sn6600")
    assert [kind.port_name(n, 0, 1) for n in (0, 1, 2)] == ["swp1s0", "swp1s1", "swp2s0"]
    assert kind.port_name(1, 3, 4) == "swp1s7"


def test_the_lab_has_the_ports_of_a_whole_unit():
    assert catalog.switch("lab-leaf").ports >= 64 + 8


@pytest.mark.parametrize(
    ("value", "admitted"),
    [("Enabled", True), ("enabled", False), (True, False)],
    ids=["right", "other case", "YAML's On"],
)
def test_a_bios_value_is_held_against_its_registry(value, admitted):
    assert catalog.server("lab-gpu8").bios["SriovEnable"].admits(value) is admitted
