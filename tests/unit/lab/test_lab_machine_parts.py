"""Disks, boards, kernel logs, keys: the parts of simulated machines that need neither root nor a network."""

import csv
import os
import socket
import stat
import struct

import pytest

from supernode import catalog
from supernode.errors import CouldNotRun
from supernode.lab import cgroups, clock, factory, netspace, switches, wiring
from supernode.lab.boards import BoardFolder
from supernode.lab.chassis import Identity
from supernode.lab.disks import Disk, root_partition
from supernode.lab.kernellog import KernelLog

HYBRID = """tmpfs /sys/fs/cgroup tmpfs rw 0 0
cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0
"""
UNIFIED = "sysfs /sys sysfs rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n"


@pytest.mark.parametrize(("mounts", "where"), [(HYBRID, "/sys/fs/cgroup/unified"), (UNIFIED, "/sys/fs/cgroup")])
def test_cgroup_v2_is_found_where_it_is(mounts, where):
    assert str(cgroups.mount_point(mounts)) == where


def test_a_machine_without_cgroup_v2_has_none():
    assert cgroups.mount_point("cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n") is None


def partitions(*rows):
    return {"partitiontable": {"label": "gpt", "sectorsize": 512, "partitions": list(rows)}}


ESP = {"start": 2048, "size": 65536, "type": "C12A7328-F81F-11D2-BA4B-00A0C93EC93B"}
ROOT = {"start": 75776, "size": 900000, "type": "4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709"}
SWAP = {"start": 2000000, "size": 9000000, "type": "0657FD6D-A4AB-43C4-84E5-0933C84B4F4F"}


def test_the_root_partition_is_chosen_by_its_type():
    found = root_partition(partitions(ESP, ROOT, SWAP))
    assert (found.offset, found.size) == (75776 * 512, 900000 * 512)


def test_an_image_without_partitions_is_refused():
    with pytest.raises(ValueError, match="no partition"):
        root_partition(partitions())


def test_an_empty_disk_holds_no_system_and_erasing_empties(tmp_path):
    disk = Disk(tmp_path / "disk")
    assert not disk.written()
    disk.write(tmp_path / "image.raw", tmp_path, tmp_path / "root", {})
    assert disk.written()
    assert disk.source() == tmp_path / "image.raw"
    disk.erase()
    assert not disk.written()


@pytest.fixture
def board(sample, tmp_path):
    server = sample.servers[0]
    made = BoardFolder(tmp_path / "board", wiring.server_ports("lab", server))
    made.make(server, Identity.manufactured("lab", server.slot))
    return made


def names(board, pci):
    return sorted(path.name for path in (board.folder / "pci" / pci / "net").iterdir())


def test_a_nic_is_listed_under_the_name_it_has(board):
    assert names(board, "0000:18:00.0") == ["enp24s0np0"]
    board.renamed(20, "rail0")
    assert names(board, "0000:18:00.0") == ["rail0"]
    assert names(board, "0000:40:00.0") == ["enp64s0np0"]
    board.renamed(20, "enp24s0np0")
    assert names(board, "0000:18:00.0") == ["enp24s0np0"]


def test_links_of_others_change_nothing(board):
    board.renamed(77, "docker0")
    assert names(board, "0000:18:00.0") == ["enp24s0np0"]


def test_labels_are_those_of_the_delivery(board):
    labels = board.folder / "virtual" / "dmi" / "id"
    wanted = Identity.manufactured("lab", "r01u01")
    assert (labels / "product_serial").read_text().strip() == wanted.system_serial
    assert (labels / "product_uuid").read_text().strip() == wanted.uuid
    assert stat.S_IMODE((labels / "product_serial").stat().st_mode) == 0o400


def test_a_switch_shows_its_labels_and_no_device(sample, tmp_path):
    switch = sample.switches[0]
    made = BoardFolder(tmp_path / "switch", ())
    made.make_switch(switch, Identity.manufactured("lab", switch.slot))
    labels = made.folder / "virtual" / "dmi" / "id"
    assert (labels / "product_name").read_text() == f"{catalog.switch(switch.kind).model}\n"
    assert (labels / "product_serial").read_text().strip() == Identity.manufactured("lab", switch.slot).system_serial
    assert list((made.folder / "pci").iterdir()) == []


def test_numa_follows_the_bus(board):
    assert (board.folder / "pci/0000:18:00.0/numa_node").read_text() == "0\n"
    assert (board.folder / "pci/0000:9a:00.0/numa_node").read_text() == "1\n"


def test_each_kernel_message_is_one_record(tmp_path):
    log = KernelLog(tmp_path / "kmsg")
    log.open()
    reader = os.open(tmp_path / "kmsg", os.O_RDONLY | os.O_NONBLOCK)
    log.write("NVRM: Xid (PCI:0000:19:00): 79")
    log.write("second", level=4)
    assert os.read(reader, 8192).decode().startswith("3,0,")
    assert os.read(reader, 8192).decode().split(";")[1] == "second\n"
    os.close(reader)
    log.close()


def test_a_machine_that_is_off_has_no_kernel_log(tmp_path):
    with pytest.raises(CouldNotRun, match="off"):
        KernelLog(tmp_path / "kmsg").write("x")


def test_a_log_that_nobody_reads_fills_up(tmp_path):
    log = KernelLog(tmp_path / "kmsg")
    log.open()

    def fill():
        for _ in range(10000):
            log.write("x" * 100)

    with pytest.raises(CouldNotRun, match="full"):
        fill()
    log.close()


def message(kind, index, name):
    attribute = struct.pack("=HH", 4 + len(name) + 1, 3) + name.encode() + b"\0"
    attribute += b"\0" * (-len(attribute) % 4)
    body = struct.pack("=BxHiII", socket.AF_UNSPEC, 1, index, 0, 0) + attribute
    return struct.pack("=IHHII", 16 + len(body), kind, 0, 0, 0) + body


def test_renames_are_read_from_netlink():
    data = message(16, 20, "rail0") + message(17, 21, "gone") + message(16, 22, "rail2")
    assert list(netspace.link_messages(data)) == [(20, "rail0"), (22, "rail2")]


def test_half_a_message_is_none():
    assert list(netspace.link_messages(message(16, 20, "rail0")[:12])) == []


def test_the_delivery_is_the_same_each_time_but_for_nothing(sample, tmp_path):
    made = factory.Factory(tmp_path / "factory")
    for name in ("one", "two"):
        factory.deliver(tmp_path / name, "lab", sample, made, "PEM")
    for file in ("machines.csv", "switches.csv", "bmc-factory/r01u01"):
        assert (tmp_path / "one" / file).read_text() == (tmp_path / "two" / file).read_text()
    labels = tmp_path / "one" / "bmc-factory"
    assert stat.S_IMODE(labels.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in labels.iterdir()} == {0o600}
    assert len({path.read_text() for path in labels.iterdir()}) == len(list(labels.iterdir())) == 2
    rows = list(csv.DictReader((tmp_path / "one" / "machines.csv").open()))
    assert [row["slot"] for row in rows] == ["r01u01", "r01u09"]
    assert len({row[column] for row in rows for column in row if column.endswith(("serial", "mac", "uuid"))}) == 12
    keys = {row["ssh_host_key"] for row in csv.DictReader((tmp_path / "one" / "switches.csv").open())}
    assert len(keys) == 3
    assert all(key.startswith("ssh-ed25519 AAAA") for key in keys)


def test_keys_do_not_show_in_a_traceback(tmp_path):
    key = factory.Factory(tmp_path).switch_key("r03u01")
    assert "PRIVATE" in key.private
    assert "PRIVATE" not in repr(key)


def test_a_switch_has_its_address_and_keys_but_no_fabric(sample, tmp_path):
    switch = sample.switches[0]
    key = factory.Factory(tmp_path).switch_key(switch.slot)
    files = switches.provisioning(switch, sample, key)
    network = files["etc/systemd/network/10-management.network"].text
    assert "Address=198.18.0.20/23" in network
    assert "Destination=198.18.31.253/32" in network
    assert "0.0.0.0/0" not in network
    assert files["etc/ssh/ssh_host_ed25519_key"].mode == 0o600
    assert not [name for name in files if "frr" in name or "swp" in name]
    assert key.public in files["etc/ssh/ssh_host_ed25519_key.pub"].text


def test_the_time_server_answers_its_own_site(sample):
    text = clock.configuration(sample.site.time_servers, sample.site.block)
    assert "allow 198.18.0.0/19" in text
    assert "bindaddress 198.18.0.1" in text
    assert "local stratum" in text


def test_the_next_machine_of_a_slot_has_other_labels_and_the_sheet_says_so(sample, tmp_path):
    made = factory.Factory(tmp_path / "factory")
    factory.deliver(tmp_path / "one", "lab", sample, made, "PEM")
    made.next_machine("r01u09")
    factory.deliver(tmp_path / "two", "lab", sample, factory.Factory(tmp_path / "factory"), "PEM")
    one, two = (list(csv.DictReader((tmp_path / name / "machines.csv").open())) for name in ("one", "two"))
    assert one[0] == two[0]
    assert [column for column in one[1] if one[1][column] == two[1][column]] == ["slot", "kind"]
    labels = [(tmp_path / name / "bmc-factory" / "r01u09").read_text() for name in ("one", "two")]
    assert labels[0] != labels[1]
    assert made.identity("lab", "r01u09").system_serial == two[1]["system_serial"]
    old, new = (wiring.server_ports("lab", sample.servers[1], generation) for generation in (1, 2))
    assert [port.name for port in old] == [port.name for port in new]
    assert not {port.mac for port in old} & {port.mac for port in new}


def test_accelerators_are_on_the_bus_until_one_leaves_it(board, sample):
    kind = catalog.server(sample.servers[0].kind)
    there = [board.folder / "pci" / address for address in kind.gpu_pci]
    assert {(path / "class").read_text() for path in there} == {"0x030200\n"}
    assert {(path / "vendor").read_text() for path in there} == {"0x10de\n"}
    assert [(path / "numa_node").read_text().strip() for path in there] == ["0"] * 4 + ["1"] * 4
    board.lose_gpu(kind, 5)
    assert [path.is_dir() for path in there] == [number != 5 for number in range(8)]
    board.plug_gpu(kind, 5)
    assert all((path / "device").read_text() == "0x2330\n" for path in there)
