"""The lab itself: what is there after a start, what a machine does, what each fault does, and that nothing is left.

The tests run in their order on one lab.
"""

from __future__ import annotations

import csv
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from statistics import median

import pytest
import small_lab
from small_lab import carrier, wait_for

from supernode import spec
from supernode.boot import image
from supernode.errors import CouldNotRun
from supernode.lab import capacity, shared, starter
from supernode.lab.places import labs_root
from supernode.packaged import root

pytestmark = [pytest.mark.core, pytest.mark.timeout(900)]

ONE, TWO = "gpu-001", "gpu-002"
LEAF0, LEAF1 = "su01-leaf0", "su01-leaf1"


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    made = small_lab.make(tmp_path_factory.mktemp("coretest"), "coretest", 160)
    yield made
    small_lab.forget(made)


@pytest.fixture(scope="module")
def golden(lab):
    text = (root() / "inventories" / "lab" / "environment.yml").read_text()
    built = image.ensure(spec.read({"environment": text}).environment.software, progress=print).path
    mine = lab.places.images / "golden.raw"  # where a deploy step puts it, so that what is left of it can be told
    mine.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cp", "--sparse=always", str(built), str(mine)], check=True)
    return mine


def links(lab, device):
    return lab.ssh(device, "ip -br link")


def test_a_start_gives_empty_switches_and_machines_that_are_off(lab):
    assert not lab.start().unchanged
    status = lab.ask("status")
    assert status["phase"] == "ready"
    assert [(row["power"], row["disk"]) for row in status["servers"]] == [("Off", "empty")] * 2
    assert {row["state"] for row in status["switches"]} == {"on"}


def test_a_switch_is_as_from_the_factory(lab):
    routes = lab.ssh(LEAF0, "ip route").splitlines()
    assert all("dev eth0" in line for line in routes)
    assert not any(line.startswith("default") for line in routes)
    addresses = lab.ssh(LEAF0, "ip -4 -br address")
    assert "swp" not in addresses
    assert lab.ssh(LEAF0, "cat /proc/sys/net/ipv4/ip_forward").strip() == "0"
    assert "bgpd" not in lab.ssh(LEAF0, "ps -e -o comm=")
    assert lab.ssh(LEAF0, "sudo cat /etc/frr/daemons").count("=yes") >= 1  # vtysh alone
    assert lab.ssh(LEAF0, "sudo grep ^bgpd= /etc/frr/daemons").strip() == "bgpd=no"


def test_a_switch_shows_the_host_key_of_its_delivery_sheet(lab):
    rows = {row["slot"]: row for row in csv.DictReader((lab.folder / "delivery" / "switches.csv").open())}
    slot = lab.plan.slot(LEAF0)
    found = small_lab.run("ssh-keyscan", "-t", "ed25519", lab.address(LEAF0))
    assert rows[slot]["ssh_host_key"].split()[1] in found


def test_neighbours_hear_each_other_by_lldp(lab):
    def heard():
        return "spine01" in lab.ssh(LEAF0, "sudo lldpcli show neighbors -f keyvalue ports swp60")

    wait_for(heard, 90, "LLDP between leaf and spine")


def test_the_time_server_answers_with_the_machines_time(lab):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ask:
        ask.settimeout(5)
        ask.sendto(b"\x23" + bytes(47), (str(lab.plan.site.time_servers[0]), 123))
        answer = ask.recv(128)
    seconds = struct.unpack("!I", answer[40:44])[0] - 2208988800
    assert abs(seconds - time.time()) < 2
    assert answer[1] == 1


def test_a_second_start_does_nothing_and_quickly(lab):
    again = lab.start()
    assert again.unchanged
    assert again.seconds < 10


def test_an_empty_machine_finds_nothing_to_boot(lab):
    lab.ask("power", target=ONE, action="on")
    wait_for(lambda: lab.server(ONE)["progress"] == "SetupEntered", 20, "setup")
    console = lab.places.slot(lab.plan.slot(ONE)).console.read_text()
    assert "no bootable device" in console
    lab.ask("power", target=ONE, action="off")
    assert lab.server(ONE)["power"] == "Off"


def test_a_written_disk_boots_to_a_login(lab, golden):
    for device in (ONE, TWO):
        lab.install(device, golden)
        lab.on(device)
    assert lab.ssh(ONE, "hostname").strip() == ONE
    assert lab.server(ONE)["progress"] == "OSRunning"


def test_a_machine_shows_its_labels_and_its_nics(lab):
    rows = {row["slot"]: row for row in csv.DictReader((lab.folder / "delivery" / "machines.csv").open())}
    mine = rows[lab.plan.slot(ONE)]
    assert lab.ssh(ONE, "sudo cat /sys/class/dmi/id/product_serial").strip() == mine["system_serial"]
    assert lab.ssh(ONE, "cat /sys/class/net/eno1/address").strip() == mine["management_mac"]
    assert lab.ssh(ONE, "ls /sys/bus/pci/devices/0000:18:00.0/net").split() == ["enp24s0np0"]
    classes = [text[:4] for text in lab.ssh(ONE, "cat /sys/bus/pci/devices/*/class").split()]
    assert {kind: classes.count(kind) for kind in classes} == {"0x02": 9, "0x03": 8}  # ports and accelerators


def test_the_bus_follows_a_rename(lab):
    lab.ssh(ONE, "sudo ip link set enp24s0np0 name rail0")
    lab.ssh(ONE, "sudo ip link property add dev rail0 altname enp24s0np0")  # as the rails role does; gone after a boot
    shown = "ls /sys/bus/pci/devices/0000:18:00.0/net"
    wait_for(lambda: lab.ssh(ONE, shown).split() == ["rail0"], 5, "the new name on the bus")


def test_a_reboot_keeps_files_and_finds_fresh_ports(lab):
    before = lab.ssh(ONE, "cat /proc/sys/kernel/random/boot_id; sudo touch /var/lib/kept")
    lab.ssh(ONE, "sudo systemctl reboot", check=False)

    def again():
        return lab.ssh(ONE, "cat /proc/sys/kernel/random/boot_id", check=False, timeout=20) not in ("", before)

    wait_for(again, 60, "another boot id")
    assert "kept" in lab.ssh(ONE, "ls /var/lib")
    assert "enp24s0np0" in lab.ssh(ONE, "ls /sys/class/net")
    assert "rail0" not in lab.ssh(ONE, "ls /sys/class/net")


def wire(lab):
    """Give both hosts and leaf 0 addresses on rail 0: the least that a flow needs."""
    lab.ssh(
        LEAF0,
        "sudo sh -c 'ip link set swp1 mtu 9000; ip link set swp2 mtu 9000;"
        " ip address replace 198.18.168.0/31 dev swp1; ip address replace 198.18.168.2/31 dev swp2;"
        " echo 1 >/proc/sys/net/ipv4/ip_forward'",
    )
    for device, own, gateway in ((ONE, "198.18.168.1/31", "198.18.168.0"), (TWO, "198.18.168.3/31", "198.18.168.2")):
        lab.ssh(
            device,
            f"sudo sh -c 'ip link set enp24s0np0 mtu 9000 up; ip address replace {own} dev enp24s0np0;"
            f" ip route replace 198.18.168.0/24 via {gateway}'",
        )


SINK = """
import socket, time
s = socket.create_server(("198.18.168.3", 5001)); c, _ = s.accept(); n = 0; w = []; t = time.monotonic() + 1
while len(w) < %d:
    b = c.recv(65536)
    n += len(b)
    if time.monotonic() >= t: w.append(n * 8 / 1e6); n = 0; t += 1
    if not b: break
print(*w)
"""
SOURCE = """
import socket, time
c = socket.create_connection(("198.18.168.3", 5001), 5); t = time.monotonic() + %d
try:
    while time.monotonic() < t: c.sendall(bytes(65536))
except OSError: pass
"""


def flow_mbit_s(lab, seconds=6):
    """The median of one-second windows of one TCP flow; the first two are left out."""
    with subprocess.Popen(
        ["ssh", "-q", "-i", str(lab.key), "-o", f"UserKnownHostsFile={lab.folder}/known_hosts",
         f"{small_lab.USER}@{lab.address(TWO)}", f"python3 -c '{SINK % seconds}'"],
        stdout=subprocess.PIPE, text=True,
    ) as sink:  # fmt: skip
        time.sleep(1)
        lab.ssh(ONE, f"python3 -c '{SOURCE % (seconds + 2)}'", timeout=60)
        windows = [float(word) for word in sink.communicate(timeout=60)[0].split()]
    return median(windows[2:])


def test_a_rail_runs_at_its_cables_rate(lab):
    wire(lab)
    assert flow_mbit_s(lab) == pytest.approx(10, rel=0.08)


def test_a_slow_link_runs_at_its_share_until_it_is_cleared(lab):
    lab.fault("slow-link", f"{TWO}:rail0", factor=0.3)
    assert flow_mbit_s(lab) == pytest.approx(3, rel=0.15)
    assert lab.fault("slow-link", f"{TWO}:rail0", do="clear") == []
    assert "rate 10Mbit" in lab.ssh(LEAF0, "/usr/sbin/tc qdisc show dev swp2")


def test_exchanged_cables_end_at_each_others_ports(lab):
    lab.ssh(ONE, "sudo ip link set enp64s0np0 up")
    lab.fault("swap-cable", f"{ONE}:rail0", f"{ONE}:rail1")
    lab.ssh(LEAF0, "sudo ip link set swp1 down")
    seen = links(lab, ONE)
    assert carrier(seen, "enp24s0np0")
    assert not carrier(seen, "enp64s0np0")
    lab.ssh(LEAF0, "sudo ip link set swp1 up")
    kept = lab.ssh(LEAF0, "ip -br address show swp1; cat /sys/class/net/swp1/mtu; /usr/sbin/tc qdisc show dev swp1")
    assert "198.18.168.0/31" in kept
    assert "9000" in kept
    assert "rate 10Mbit" in kept


def test_putting_them_back_mends_it(lab):
    lab.fault("swap-cable", f"{ONE}:rail1", f"{ONE}:rail0", do="clear")
    lab.ssh(LEAF0, "sudo ip link set swp1 down")
    seen = links(lab, ONE)
    assert not carrier(seen, "enp24s0np0")
    assert carrier(seen, "enp64s0np0")
    lab.ssh(LEAF0, "sudo ip link set swp1 up")


def test_a_missing_cable_takes_the_carrier_from_both_ends(lab):
    lab.fault("missing-cable", f"{ONE}:rail0")
    lab.ssh(LEAF0, "sudo ip link set swp1 up")
    assert not carrier(links(lab, ONE), "enp24s0np0")
    assert not carrier(links(lab, LEAF0), "swp1")
    lab.fault("missing-cable", f"{ONE}:rail0", do="clear")
    assert carrier(links(lab, ONE), "enp24s0np0")
    assert "198.18.168.0/31" in lab.ssh(LEAF0, "ip -br address show swp1")


def test_a_cable_that_is_not_there_is_refused(lab):
    with pytest.raises(CouldNotRun, match="no cable of this lab"):
        lab.fault("missing-cable", "C99999")
    assert lab.ask("status")["faults"] == []


def test_a_hung_host_takes_connections_but_does_not_greet(lab):
    lab.fault("host-hung", TWO)
    with socket.create_connection((lab.address(TWO), 22), 5) as connection:
        connection.settimeout(3)
        with pytest.raises(TimeoutError):
            connection.recv(10)
    assert lab.server(TWO)["power"] == "On"
    lab.fault("host-hung", TWO, do="clear")
    lab.wait_login(TWO, 30)


def test_a_driver_message_shows_in_that_host_alone(lab):
    lab.fault("kernel-message", ONE, text="NVRM: Xid (PCI:0000:19:00): 79, GPU has fallen off the bus.")
    wait_for(lambda: "Xid" in lab.ssh(ONE, "sudo journalctl -k -o cat"), 10, "the message")
    assert "Xid" not in lab.ssh(TWO, "sudo journalctl -k -o cat")


def test_a_dead_bmc_says_nothing_and_the_others_do(lab):
    addresses = [str(server.bmc.ip) for server in lab.plan.servers]
    lab.fault("bmc-dead", ONE)
    with pytest.raises(TimeoutError):
        socket.create_connection((addresses[0], 443), 2).close()
    socket.create_connection((addresses[1], 443), 5).close()
    lab.fault("bmc-dead", ONE, do="clear")
    wait_for(lambda: socket.create_connection((addresses[0], 443), 5), 10, "the BMC").close()


def test_a_power_cut_takes_the_carrier_and_the_system_comes_back(lab):
    lab.ask("power", target=ONE, action="off")
    assert lab.server(ONE)["power"] == "Off"
    assert not carrier(links(lab, LEAF0), "swp1")
    lab.on(ONE)
    assert "kept" in lab.ssh(ONE, "ls /var/lib")


def test_a_shutdown_from_inside_ends_in_power_off(lab):
    lab.ssh(ONE, "sudo systemctl poweroff", check=False)
    wait_for(lambda: lab.server(ONE)["power"] == "Off", 30, "power off")


def test_two_labs_live_beside_each_other_but_not_in_one_block(lab, tmp_path):
    beside, same = small_lab.make(tmp_path / "a", "coretest2", 192), small_lab.make(tmp_path / "b", "coretest3", 160)
    try:
        assert not beside.start().unchanged
        assert beside.ssh("spine01", "hostname").strip() == "spine01"
        with pytest.raises(CouldNotRun, match="are those of the lab coretest"):
            same.start()
        assert same.leftovers() == []
        assert lab.ask("status")["phase"] == "ready"
        beside.stop()
        assert beside.leftovers() == []
        assert lab.ssh("spine01", "hostname").strip() == "spine01"
    finally:
        for other in (beside, same):
            small_lab.forget(other)


def test_a_fault_from_before_the_start_stands_after_it(lab):
    lab.stop()
    from supernode.lab import faults, inject

    inject.inject(lab.name, faults.checked("missing-cable", [f"{LEAF0}:swp60"], {}))
    lab.start()
    assert not carrier(links(lab, LEAF0), "swp60")
    assert [row["name"] for row in lab.ask("status")["faults"]] == ["missing-cable"]


def test_stop_leaves_nothing(lab):
    assert lab.leftovers() != []
    assert lab.stop()
    assert lab.leftovers() == []
    assert not lab.places.faults.exists()
    assert not lab.stop()


@pytest.mark.parametrize("after_s", [0.3, 1.0, 2.0])
def test_a_killed_start_is_cleaned_up_by_stop(lab, after_s):
    code = f"import sys; sys.path[:0] = {sys.path!r}; import small_lab, pathlib; " + (
        f"small_lab.SmallLab({lab.name!r}, pathlib.Path({str(lab.folder)!r}), "
        f"pathlib.Path({str(lab.key)!r}), {lab.third}).start()"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL)
    group = starter.cgroups.top() / lab.places.cgroup
    wait_for(lambda: group.is_dir() or process.poll() is not None, 60, "the cgroup")
    time.sleep(after_s)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(10)
    lab.stop()
    assert lab.leftovers() == []


def test_a_crashed_lab_heals_by_the_next_start(lab):
    lab.start()
    group = starter.cgroups.top() / lab.places.cgroup
    starter.cgroups.kill(group)
    wait_for(lambda: not starter.cgroups.populated(group), 10, "the end of all processes")
    assert not lab.start().unchanged
    assert lab.ssh("spine01", "hostname").strip() == "spine01"


def test_more_than_the_machine_carries_is_refused_before_anything_is_touched(tmp_path):
    limit = capacity.measured(labs_root() / "capacity.json")
    greedy = small_lab.make(tmp_path, "coretest4", 192, rate=round(limit))
    with pytest.raises(CouldNotRun, match="at once need"):
        greedy.start()
    assert greedy.leftovers() == []
    small_lab.forget(greedy)


def test_the_last_stop_puts_the_machine_back(lab):
    lab.stop()
    if shared.running_labs():
        pytest.skip(f"other labs run on this machine: {', '.join(shared.running_labs())}")
    assert not (labs_root() / "machine.json").exists()
