"""The first-boot unit on a folder instead of a machine."""

import json
import os
import re
import stat
import subprocess
from pathlib import Path

import pytest

from supernode.boot.host import enrol, firstboot

PORT = {
    "match": {"macaddress": "02:00:00:00:00:11"},
    "addresses": ["198.18.0.11/23"],
    "routes": [{"to": "0.0.0.0/0", "via": "198.18.0.1"}],
    "nameservers": {"addresses": ["198.18.0.1"]},
}


@pytest.fixture
def root(tmp_path):
    (tmp_path / "etc/ssh").mkdir(parents=True)
    return tmp_path


def test_a_port_is_matched_by_mac_and_given_its_address_and_route(root):
    firstboot.write_network(root, {"version": 2, "ethernets": {"management": PORT}})
    text = (root / "etc/systemd/network/10-management.network").read_text()
    assert "[Match]\nMACAddress=02:00:00:00:00:11\n" in text
    assert "\nAddress=198.18.0.11/23\n" in text
    assert "\n[Route]\nDestination=0.0.0.0/0\nGateway=198.18.0.1\n" in text
    assert "\nDHCP=no\n" in text
    assert (root / "etc/resolv.conf").read_text() == "nameserver 198.18.0.1\n"


def test_a_port_without_routes_gets_none():
    assert "[Route]" not in firstboot.network_file({"match": PORT["match"], "addresses": PORT["addresses"]})


def test_user_data_is_read_as_json_behind_its_header():
    assert firstboot.parse_user_data('#cloud-config\n{"hostname": "gpu-001"}\n') == {"hostname": "gpu-001"}


@pytest.mark.parametrize(
    "text",
    ["#!/bin/sh\nrm -rf /\n", '{"hostname": "gpu-001"}', "#cloud-config\nhostname: gpu-001\n", "#cloud-config\n[]"],
)
def test_other_user_data_is_refused(text):
    with pytest.raises(ValueError, match=r"user-data|Expecting"):
        firstboot.parse_user_data(text)


def test_a_file_has_its_mode_and_content(root):
    record = {"path": "/etc/apt/apt.conf.d/90supernode", "content": "x;\n", "permissions": "0600", "owner": "root:root"}
    firstboot.write_file(root, record)
    path = root / "etc/apt/apt.conf.d/90supernode"
    assert path.read_text() == "x;\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_in_base64_is_decoded_and_another_encoding_refused(root):
    firstboot.write_file(root, {"path": "/a", "content": "aGk=", "encoding": "b64"})
    assert (root / "a").read_text() == "hi"
    with pytest.raises(ValueError, match="gz"):
        firstboot.write_file(root, {"path": "/b", "content": "", "encoding": "gz"})


def test_names_are_written_where_resolvers_look(root):
    firstboot.set_name(root, "gpu-001", "gpu-001.lab.internal")
    assert (root / "etc/hostname").read_text() == "gpu-001\n"
    assert "127.0.1.1 gpu-001.lab.internal gpu-001\n" in (root / "etc/hosts").read_text()


def test_a_user_gets_keys_and_sudo_and_no_password(root):
    calls = []
    account = {
        "name": "operator", "sudo": "ALL=(ALL) NOPASSWD:ALL", "lock_passwd": True, "shell": "/bin/bash",
        "ssh_authorized_keys": ["ssh-ed25519 AAAA one", "ssh-ed25519 BBBB two\n"],
    }  # fmt: skip
    firstboot.make_user(root, account, run=lambda argv, **_: calls.append(argv))
    assert calls == [["useradd", "--root", str(root), "--create-home", "--shell", "/bin/bash", "operator"]]
    rule = root / "etc/sudoers.d/90-operator"
    assert rule.read_text() == "operator ALL=(ALL) NOPASSWD:ALL\n"
    assert stat.S_IMODE(rule.stat().st_mode) == 0o440
    keys = root / "home/operator/.ssh/authorized_keys"
    assert keys.read_text() == "ssh-ed25519 AAAA one\nssh-ed25519 BBBB two\n"
    assert stat.S_IMODE(keys.stat().st_mode) == 0o600


def test_host_keys_of_an_image_never_stay(root):
    for name in ("ssh_host_rsa_key", "ssh_host_rsa_key.pub", "ssh_host_ed25519_key"):
        (root / "etc/ssh" / name).write_text("everyone's")
    firstboot.make_host_keys(root, run=lambda argv, **_: (root / "etc/ssh/ssh_host_ed25519_key").write_text("mine"))
    assert sorted(path.name for path in (root / "etc/ssh").iterdir()) == ["ssh_host_ed25519_key"]
    assert (root / "etc/ssh/ssh_host_ed25519_key").read_text() == "mine"


def test_a_root_that_is_no_partition_is_not_grown(root, monkeypatch):
    monkeypatch.setattr(firstboot.Path, "is_file", lambda self: False)
    firstboot.grow_root(root, run=lambda *a, **k: pytest.fail("nothing to grow"))


def test_a_disk_that_cannot_be_grown_does_not_stop_the_boot(root, monkeypatch, capsys):
    def refuse(argv, **_):
        raise subprocess.CalledProcessError(1, argv)

    monkeypatch.setattr(firstboot, "partition_of", lambda path: ("/dev/vda", "2", "/dev/vda2"))
    firstboot.grow_root(root, run=refuse)
    assert "root not grown" in capsys.readouterr().err


def test_the_report_has_keys_without_comments_and_the_image(root):
    (root / "etc/supernode").mkdir()
    (root / "etc/supernode/image").write_text("ab12\n")
    (root / "etc/ssh/ssh_host_ed25519_key.pub").write_text("ssh-ed25519 AAAA root@gpu-001\n")
    assert enrol.document(root) == {
        "phase": "firstboot", "state": "ok", "detail": "", "host_keys": ["ssh-ed25519 AAAA"], "image": "ab12",
    }  # fmt: skip
    json.dumps(enrol.document(root))


def put_account(root, uid=1000):
    """What useradd leaves when the power goes: a name, a home of nobody's, a lock."""
    (root / "etc/passwd").write_text(f"root:x:0:0::/root:/bin/sh\noperator:x:{uid}:{uid}::/home/operator:/bin/bash\n")
    (root / "etc/group").write_text(f"root:x:0:\noperator:x:{uid}:\n")
    (root / "etc/passwd.lock").write_text("1")
    (root / "home/operator/.ssh").mkdir(parents=True)
    (root / "home/operator/.bashrc").write_text("")


class Tools:
    """useradd and its like, as far as they matter: an account is made once, and a lock stops them."""

    def __init__(self, root):
        self.root, self.calls = root, []

    def __call__(self, argv, check=False, **_):
        self.calls.append(argv[0])
        lines = {name: (self.root / "etc" / name).read_text().splitlines() for name in ("passwd", "group")}
        assert not (self.root / "etc/passwd.lock").exists()
        there = any(line.startswith(f"{argv[-1]}:") for text in lines.values() for line in text)
        if argv[0] == "useradd":
            if there:
                raise subprocess.CalledProcessError(9, argv)
            return
        files = ("passwd",) if argv[0] == "userdel" else ("group",)
        for name in files:
            kept = [line for line in lines[name] if not line.startswith(f"{argv[-1]}:")]
            (self.root / "etc" / name).write_text("\n".join(kept) + "\n")


def test_an_account_that_a_power_cut_left_is_made_again(root):
    put_account(root)
    tools = Tools(root)
    with pytest.raises(AssertionError):
        tools(["useradd", "operator"], check=True)
    tools.calls.clear()
    firstboot.make_user(root, {"name": "operator", "ssh_authorized_keys": ["ssh-ed25519 AAAA"]}, run=tools)
    assert tools.calls == ["userdel", "groupdel", "useradd"]
    assert (root / "home/operator/.ssh/authorized_keys").read_text() == "ssh-ed25519 AAAA\n"
    assert not (root / "home/operator/.bashrc").exists()


def test_an_account_of_the_system_is_not_removed(root):
    put_account(root, uid=33)
    tools = Tools(root)
    with pytest.raises(subprocess.CalledProcessError):
        firstboot.make_user(root, {"name": "operator"}, run=tools)
    assert tools.calls == ["useradd"]


def test_appending_again_appends_nothing(root):
    record = {"path": "/etc/a", "content": "line\n", "append": True}
    for _ in range(2):
        firstboot.write_file(root, record)
    assert (root / "etc/a").read_text() == "line\n"


@pytest.fixture
def seeded(root, monkeypatch):
    """A machine before its first boot; what it calls is taken note of."""
    seed = root / "var/lib/cloud/seed/nocloud"
    seed.mkdir(parents=True)
    (seed / "meta-data").write_text('{"instance-id": "i-1", "local-hostname": "gpu-001"}')
    (seed / "user-data").write_text('#cloud-config\n{"users": [{"name": "operator"}]}')
    (seed / "network-config").write_text("{}")
    monkeypatch.setattr(firstboot, "ROOT", root)
    return root


def test_host_keys_come_before_anything_that_can_fail(seeded, monkeypatch):
    def no_user(*_):
        raise subprocess.CalledProcessError(9, "useradd")

    def key(root):
        (root / "etc/ssh/ssh_host_ed25519_key").write_text("mine")

    monkeypatch.setattr(firstboot, "make_host_keys", key)
    monkeypatch.setattr(firstboot, "make_user", no_user)
    with pytest.raises(subprocess.CalledProcessError):
        firstboot.main()
    assert (seeded / "etc/ssh/ssh_host_ed25519_key").read_text() == "mine"
    assert not (seeded / "var/lib/supernode/firstboot.done").exists()


def test_the_mark_comes_after_what_it_stands_for(seeded, monkeypatch):
    synced = []

    def note(handle):
        assert not (seeded / "var/lib/supernode/firstboot.done").exists()
        synced.append(str(Path(f"/proc/self/fd/{handle}").readlink()))

    for name in ("make_host_keys", "make_user", "grow_root"):
        monkeypatch.setattr(firstboot, name, lambda *_: None)
    (seeded / "etc/older").write_text("")
    os.utime(seeded / "etc/older", (1, 1))
    monkeypatch.setattr(firstboot.os, "fsync", note)
    assert firstboot.main() == 0
    assert str(seeded / "etc/hostname") in synced
    assert str(seeded / "etc/older") not in synced
    assert (seeded / "var/lib/supernode/firstboot.done").read_text() == "i-1\n"


def test_enrolment_waits_for_the_mark_of_the_first_boot():
    unit = (Path(firstboot.__file__).parents[1] / "tree/etc/systemd/system/supernode-enrol.service").read_text()
    conditions = re.findall(r"^ConditionPathExists=\|(.*)$", unit, re.MULTILINE)
    assert conditions == ["/var/lib/supernode/firstboot.done", "/usr/bin/cloud-init"]
