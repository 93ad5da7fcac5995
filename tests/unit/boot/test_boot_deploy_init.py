"""The deploy init's choice of a disk, and its report, run by the shell on folders that stand for /sys and /proc."""

import json
import subprocess
from pathlib import Path

import pytest

INIT = Path(__file__).resolve().parents[3] / "modules/supernode/boot/deploy/init"
GIB = 1 << 30


@pytest.fixture
def machine(tmp_path):
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/mounts").write_text("rootfs / rootfs rw 0 0\n")
    (tmp_path / "proc/swaps").write_text("Filename\tType\n")
    (tmp_path / "sys/block").mkdir(parents=True)
    return tmp_path


def add(machine, name, size=8 * GIB, ro="0", **files):
    block = machine / "sys/block" / name
    (block / "holders").mkdir(parents=True)
    for file, text in {"size": f"{size // 512}\n", "ro": f"{ro}\n", **files}.items():
        path = block / file.replace("__", "/")
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())


def choose(machine, pattern, size=512 << 20):
    """Return (status, the disk or the reason)."""
    script = (
        f'. "{INIT}"; SYS={machine}/sys PROC={machine}/proc DISK="$1" SIZE={size} TARGET="" REASON=""; '
        'if choose_disk; then echo "ok $TARGET"; else echo "no $REASON"; fi'
    )
    done = subprocess.run(["sh", "-c", script, "test", pattern], capture_output=True, text=True, check=True)
    verdict, _, rest = done.stdout.strip().partition(" ")
    return verdict, rest


def test_the_one_disk_with_the_name_is_chosen(machine):
    add(machine, "vda", serial="system0\n")
    add(machine, "vdb", serial="data0\n")
    assert choose(machine, "/dev/disk/by-id/virtio-system*") == ("ok", "vda")
    assert choose(machine, "virtio-data0") == ("ok", "vdb")


def test_names_are_those_of_by_id(machine):
    add(
        machine,
        "nvme0n1",
        device__model="SAMSUNG MZ1L21T9HCLS-00A07      \n",
        device__serial="S666NE0R  \n",
        wwid="eui.36\n",
    )
    add(
        machine, "sda", device__wwid="naa.5000c500a1b2c3d4\n", device__vendor="ATA     \n", device__model="ST8000NM  \n"
    )
    assert choose(machine, "nvme-SAMSUNG_MZ1L21T9HCLS-00A07_*") == ("ok", "nvme0n1")
    assert choose(machine, "nvme-eui.36") == ("ok", "nvme0n1")
    assert choose(machine, "wwn-0x5000c500a1b2c3d4") == ("ok", "sda")


def test_two_disks_are_one_too_many_and_both_are_named(machine):
    add(machine, "vda", serial="a\n")
    add(machine, "vdb", serial="b\n")
    verdict, reason = choose(machine, "virtio-*")
    assert verdict == "no"
    assert reason == "2 disks answer to virtio-*; seen: virtio-a virtio-b"


def test_no_disk_says_what_there_is(machine):
    add(machine, "vda", serial="a\n")
    assert choose(machine, "nvme-*") == ("no", "0 disks answer to nvme-*; seen: virtio-a")


@pytest.mark.parametrize("line", ["/dev/vda1 /mnt ext4 rw 0 0\n", "/dev/vda /mnt ext4 rw 0 0\n"])
def test_a_mounted_disk_is_refused(machine, line):
    add(machine, "vda", serial="a\n")
    (machine / "proc/mounts").write_text(line)
    assert choose(machine, "virtio-a") == ("no", "vda is in use")


def test_a_disk_under_a_raid_is_refused(machine):
    add(machine, "vda", serial="a\n")
    (machine / "sys/block/vda/holders/md0").write_text("")
    assert choose(machine, "virtio-a") == ("no", "vda is in use")


def test_a_small_or_write_protected_disk_is_refused(machine):
    add(machine, "vda", size=256 << 20, serial="a\n")
    add(machine, "vdb", ro="1", serial="b\n")
    assert choose(machine, "virtio-a") == ("no", "vda is smaller than the image")
    assert choose(machine, "virtio-b") == ("no", "vdb is read-only")


def test_a_drive_or_loop_device_is_never_chosen(machine):
    for name in ("sr0", "loop0", "md0", "zram0"):
        add(machine, name, serial="a\n")
    assert choose(machine, "*") == ("no", "0 disks answer to *; seen: none")


def test_a_report_stays_json_whatever_the_reason_holds(tmp_path):
    body = tmp_path / "report"
    reason = r"""printf 'curl: (60) "bad" \\ line\ntwo'"""
    script = f'. "{INIT}"; DIGEST=ab; report_body failed "$({reason})" >"{body}"'
    subprocess.run(["sh", "-c", script], check=True)
    document = json.loads(body.read_text())
    assert document == {
        "phase": "deploy", "state": "failed", "detail": "curl: (60) bad  line two", "host_keys": [], "image": "ab",
    }  # fmt: skip


def gate(tmp_path, report):
    """Return what the gate before the disk says, given what a report does."""
    stubs = f"sleep() {{ :; }}; report() {{ {report}; }}"
    script = f'. "{INIT}"; {stubs}; if enrol; then echo open; else echo "shut $REASON"; fi'
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path)
    return done.stdout.splitlines()[-1]


def test_the_disk_is_reached_only_past_a_report_that_was_taken(tmp_path):
    assert gate(tmp_path, "return 0") == "open"
    assert gate(tmp_path, "return 22").startswith("shut the site does not take the report")


def test_a_report_that_fails_without_a_word_keeps_the_disk_shut(tmp_path):
    assert gate(tmp_path, "return 137").startswith("shut")
    counted = tmp_path / "tries"
    assert gate(tmp_path, f'echo x >>"{counted}"; [ "$(wc -l <"{counted}")" -ge 3 ]') == "open"
