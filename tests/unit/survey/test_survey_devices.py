"""What hosts and switches print, and what a survey makes of it. Composed in the forms that the lab's hosts print."""

import pytest

from supernode.bringup.survey import devices, sources
from supernode.clients import looking
from supernode.errors import WrongInput
from supernode.verify.facts.raw import Raw

HISTORY = """
Start-Date: 2026-11-30  22:14:31
Commandline: /usr/bin/apt-get -y install chrony=4.3-2
Requested-By: supernode (1000)
Install: libbsd0:amd64 (0.11.7-2, automatic), chrony:amd64 (4.3-2+deb12u1), lldpd:amd64 (1.0.16-1)
End-Date: 2026-11-30  22:14:36

Start-Date: 2026-11-30  22:20:01
Install: strace:amd64 (6.1-0.1)
End-Date: 2026-11-30  22:20:02
"""
ADDRESSES = """[
 {"ifname": "lo", "mtu": 65536, "flags": ["UP", "LOWER_UP"], "addr_info": []},
 {"ifname": "eno1", "mtu": 1500, "flags": ["UP", "LOWER_UP"], "operstate": "UP", "address": "02:00:00:00:00:01",
  "addr_info": [{"local": "10.0.0.11", "prefixlen": 23, "scope": "global"}]},
 {"ifname": "rail0", "mtu": 9000, "flags": ["UP", "LOWER_UP"], "operstate": "UP", "addr_info": []}]"""
ROUTES = """[{"dst": "default", "gateway": "10.0.0.1", "dev": "eno1", "flags": []},
 {"dst": "10.8.0.0/21", "nexthops": [{"gateway": "10.8.0.0", "dev": "rail0", "flags": []}], "flags": []}]"""
NICS = """/sys/bus/pci/devices/0000:18:00.0/net:
rail0

/sys/bus/pci/devices/0000:40:00.0/net:
rail1
"""


def host(**changes):
    raw = {
        "hostname": Raw(0, "gpu-001\n"),
        "fqdn": Raw(0, "gpu-001.cluster.example\n"),
        "addresses": Raw(0, ADDRESSES),
        "devices": Raw(0, "/sys/class/net/eno1/device\n"),
        "speeds": Raw(0, "/sys/class/net/eno1/speed:1000\n/sys/class/net/rail0/speed:10000\n"),
        "routes": Raw(0, ROUTES),
        "lldp": Raw(0, '{"lldp": []}'),
        "uuid": Raw(0, "0F2B0001-1111-4222-8333-444455556666\n"),
        "chrony": Raw(0, "# Rendered\nserver 10.0.0.2 iburst\nserver 10.0.0.3 iburst\ndriftfile /var/x\n"),
        "mirror": Raw(0, "deb [trusted=yes] https://10.0.0.5:8443/mirror ./\n"),
        "release": Raw(0, 'NAME="Debian GNU/Linux"\nVERSION_CODENAME=bookworm\n'),
        "manual": Raw(0, "chrony\nlldpd\nlinux-image-cloud-amd64\nlinux-image-6.1.0-28-cloud-amd64\n"),
        "history": Raw(0, HISTORY),
        "histories": Raw(0, "eipp.log.xz\nhistory.log\nterm.log\n"),
        "image": Raw(0, "ab12\n"),
        "nics": Raw(
            2, "/sys/bus/pci/devices/0000:18:00.0/net:\nrail0\n\n/sys/bus/pci/devices/0000:40:00.0/net:\nrail1\n"
        ),
    }
    return devices.host("10.0.0.11", "ssh-ed25519 AAAA", {**raw, **changes})


def test_a_host_is_read():
    found = host()
    assert (found.hostname, found.fqdn, found.uuid) == (
        "gpu-001", "gpu-001.cluster.example", "0f2b0001-1111-4222-8333-444455556666",
    )  # fmt: skip
    assert found.management_port().mac == "02:00:00:00:00:01"
    assert found.time_servers == ("10.0.0.2", "10.0.0.3")
    assert (found.mirror, found.suite, found.image) == ("10.0.0.5:8443", "bookworm", "ab12")
    assert found.nics == {"0000:18:00.0": "rail0", "0000:40:00.0": "rail1"}
    assert [(hop.destination, hop.gateway, hop.port) for hop in found.hops] == [
        ("default", "10.0.0.1", "eno1"), ("10.8.0.0/21", "10.8.0.0", "rail0"),
    ]  # fmt: skip


def test_only_hardware_says_how_fast_it_is():
    """The driver of a virtual port invents 10 Gbit/s."""
    assert host().rates() == {"eno1": 1000}


def test_packages_that_came_along_or_went_again_were_not_asked_for():
    assert host().packages == ("chrony", "lldpd")


@pytest.mark.parametrize(
    "changes",
    [
        {"history": Raw(1, "", "cat: /var/log/apt/history.log: No such file")},
        {"histories": Raw(0, "history.log\nhistory.log.1.gz\n")},
        {"manual": Raw(127, "")},
    ],
    ids=["none", "rotated", "no tool"],
)
def test_a_history_that_is_not_whole_is_not_seen(changes):
    assert host(**changes).packages is None


def test_the_kernel_that_was_asked_for_is_not_the_one_it_brought():
    assert host().kernels == ("linux-image-cloud-amd64",)


@pytest.mark.parametrize(
    ("own", "behind", "found"),
    [
        ("nameserver 10.0.0.2\n", "", ("10.0.0.2",)),
        ("nameserver 127.0.0.53\n", "nameserver 10.0.0.2\nnameserver 10.0.0.3\n", ("10.0.0.2", "10.0.0.3")),
        ("", "", ()),
    ],
)
def test_name_servers_are_those_behind_a_stub(own, behind, found):
    assert host(resolvers=Raw(0, own), resolved=Raw(0, behind)).name_servers == found


def test_what_a_host_does_not_tell_is_not_seen_and_said():
    found = devices.host("10.0.0.11", "", {"addresses": Raw(124, "", "no answer"), "lldp": Raw(1, "", "no daemon")})
    assert (found.ports, found.neighbours, found.packages) == (None, None, None)
    assert found.unseen["neighbours"] == "no daemon"


def test_a_switch_is_read_from_its_running_configuration():
    text = (
        "frr version 8.4.4\nhostname su01-leaf0\n!\nrouter bgp 4200000001\n bgp router-id 10.2.0.1\n"
        " address-family ipv4 unicast\n  network 10.2.0.1/32\n  network 10.8.0.0/25\n exit-address-family\nexit\n!\n"
        "ip prefix-list FABRIC-IN seq 5 permit 10.8.0.0/21 ge 25 le 25\n"
        "ip prefix-list FABRIC-IN seq 10 permit 10.2.0.0/24 ge 32 le 32\n"
    )
    found = devices.switch("10.0.0.20", "", {"frr": Raw(0, text)})
    assert (found.asn, found.loopback) == (4200000001, "10.2.0.1")
    assert found.announced == ("10.2.0.1/32", "10.8.0.0/25")
    assert found.ranges == (("10.8.0.0/21", 25, 25), ("10.2.0.0/24", 32, 32))


def test_everything_that_is_asked_only_looks():
    asked = {
        **devices.host_commands(),
        **devices.SWITCH,
        **devices.NEIGHBOURS,
        **devices.speed_commands(("rail0", "eno1")),
    }
    assert [name for name, words in asked.items() if not looking.admitted(words)] == []


def test_a_list_of_controllers_is_read_with_their_fingerprints():
    pin = "A" * 64
    text = f"# row 1\n10.0.0.1\n\n10.0.0.2:8443 {pin}  # by hand\n"
    assert sources.listed("bmcs", text) == [("10.0.0.1", ""), ("10.0.0.2:8443", pin.lower())]


@pytest.mark.parametrize(
    ("text", "where"), [("10.0.0.1\nnot an address\n", "bmcs:2"), ("10.0.0.1 abc\n", "bmcs:1"), ("#\n", "bmcs")]
)
def test_a_line_that_is_no_controller_is_named(text, where):
    with pytest.raises(WrongInput) as caught:
        sources.listed("bmcs", text)
    assert caught.value.where == where
