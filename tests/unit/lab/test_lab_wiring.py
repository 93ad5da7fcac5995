"""The commands that make the networks say what the cabling table says, and no more."""

import pytest

from supernode.lab import wiring
from supernode.lab.chassis import manufactured_mac
from supernode.units import MbitPerS


@pytest.mark.parametrize(("pci", "name"), [("0000:18:00.0", "enp24s0np0"), ("0000:dc:00.0", "enp220s0np0")])
def test_ports_are_named_as_a_kernel_names_them(pci, name):
    assert wiring.kernel_name(pci) == name


def test_what_is_no_pci_address_is_refused():
    with pytest.raises(ValueError, match="18:00"):
        wiring.kernel_name("18:00.0")


def test_each_cable_is_one_pair_between_the_two_ports_of_its_row(sample):
    command = wiring.cable_command("lab", sample, sample.cables[1])
    near, far = command.split(" type veth peer ")
    assert "name enp64s0np0 index 21 " in near
    assert "netns gpu-001" in near
    assert f"address {manufactured_mac('lab', 'r01u01', 'rail1')}" in near
    assert "name swp1 " in far
    assert "netns su01-leaf1" in far


def test_an_exchanged_row_makes_an_exchanged_cable(sample):
    one, other = sample.cables[0], sample.cables[1]
    assert "netns su01-leaf0" in wiring.cable_command("lab", sample, one).split("peer")[1]
    assert "netns su01-leaf1" in wiring.cable_command("lab", sample, other).split("peer")[1]


def test_ports_without_a_cable_are_there_without_a_carrier(sample):
    lines = [line for line in wiring.commands("lab", sample) if f"netns {wiring.UNPLUGGED}" in line and "peer" in line]
    assert len(lines) == 2 * 6  # eight NICs each, two of them cabled
    assert all("swp" not in line for line in lines)


def test_the_guard_comes_before_any_port(sample):
    lines = list(wiring.commands("lab", sample))
    guard = next(i for i, line in enumerate(lines) if line.startswith("route add unreachable 198.18.0.0/15"))
    assert guard < next(i for i, line in enumerate(lines) if line.startswith("link add"))


def test_rates_are_held_on_switches_alone(sample):
    commands = wiring.qdisc_commands(sample, sample.cables)
    assert set(commands) == {"su01-leaf0", "su01-leaf1", "spine01"}
    assert sum("rate 10000000bit" in line for lines in commands.values() for line in lines) == 4
    assert (
        sum("rate 50000000bit" in line for lines in commands.values() for line in lines) == 4
    )  # both ends of two uplinks


@pytest.mark.parametrize("mbit", [1, 10, 100, 1000, 5000])
def test_a_segment_fits_into_the_bucket(mbit):
    shaping = wiring.shaping(MbitPerS(mbit))
    words = shaping.qdisc.split()
    burst, limit = int(words[words.index("burst") + 1]), int(words[words.index("limit") + 1])
    segment = int(shaping.offload.split()[1]) if shaping.offload else 65536
    assert segment < burst < limit


def test_bridge_ports_have_names_that_a_kernel_takes(sample):
    assert all(len(wiring.bridge_port(row.slot)) <= 15 for row in (*sample.servers, *sample.switches))


@pytest.mark.parametrize("rate", [2.5, 10.0, 50.0])
def test_a_queue_is_drained_before_a_ping_gives_up(rate):
    words = wiring.shaping(MbitPerS(rate)).qdisc.split()
    assert int(words[words.index("limit") + 1]) * 8 / (rate * 1e6) < 4
