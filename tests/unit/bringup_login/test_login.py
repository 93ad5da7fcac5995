"""Logging in by hand: which device is meant, which keys it may show, and that ssh holds it to them."""

import shlex
import subprocess

import pytest
import yaml
from ssh_server import line, new_key, serving
from typer.testing import CliRunner

from supernode import design, packaged, spec
from supernode.bringup import login
from supernode.cli.main import app
from supernode.errors import CouldNotRun, WrongInput
from supernode.records import DeviceOutput, Outputs
from supernode.workspace import EnvironmentFolder

LAB = (packaged.root() / "tests" / "lab" / "slim" / "environment.yml").read_text()
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGd0cmVlbm9kZWtleXRoYXRpc25vbmVhdGFsbHh4"


def designed(**slots):
    machines = yaml.safe_dump({"schema": 1, "slots": slots})
    return design.build(spec.read({"environment": LAB, "machines": machines}))


def outputs_of(computed, name, **more):
    row = computed.host(name)
    device = DeviceOutput(name, "machine", row.slot, str(row.management.ip), **more)
    return Outputs(computed.name, computed.digest, {name: device})


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "inventories" / "lab"
    place.mkdir(parents=True)
    (place / "environment.yml").write_text(LAB)
    return EnvironmentFolder("lab", place, tmp_path)


@pytest.mark.parametrize("word", ["gpu-003", "slot", "address"])
def test_a_host_is_found_by_name_slot_and_address(word):
    computed = designed()
    row = computed.host("gpu-003")
    said = {"slot": row.slot, "address": str(row.management.ip)}.get(word, word)
    found = login.target(computed, outputs_of(computed, "gpu-003", host_keys=(KEY,)), said)
    assert (found.name, found.user, found.host_keys) == ("gpu-003", "supernode", (KEY,))


def test_a_near_name_is_offered():
    with pytest.raises(WrongInput) as said:
        login.target(designed(), None, "gpu-03")
    assert "did you mean gpu-0" in said.value.hint


def test_a_switch_is_known_by_its_delivery():
    slot = designed().switch("su01-leaf0").slot
    found = login.target(designed(**{slot: {"identity": {"ssh_host_key": KEY}}}), None, "su01-leaf0")
    assert (found.user, found.host_keys) == ("admin", (KEY,))


def test_what_was_never_provisioned_or_came_late_says_so():
    computed = designed()
    with pytest.raises(CouldNotRun, match="never provisioned"):
        login.target(computed, None, "gpu-001")
    late = outputs_of(computed, "gpu-001", state="late", phase="deploy", reason="no report after 600 s")
    with pytest.raises(CouldNotRun, match="late in deploy: no report after 600 s"):
        login.target(computed, late, "gpu-001")


def test_a_quarantined_host_says_why_and_can_be_had_all_the_same():
    slot = designed().host("gpu-002").slot
    computed = designed(**{slot: {"state": "quarantined", "reason": "GPU 3 fell off"}})
    outputs = outputs_of(computed, "gpu-002", host_keys=(KEY,))
    with pytest.raises(CouldNotRun, match="quarantined: GPU 3 fell off"):
        login.target(computed, outputs, "gpu-002")
    assert login.target(computed, outputs, "gpu-002", anyway=True).host_keys == (KEY,)


def test_the_key_of_the_last_provisioning_goes_before_the_one_in_machines_yml(folder):
    slot = designed().host("gpu-001").slot
    computed = designed(**{slot: {"identity": {"ssh_host_key": KEY}}})
    newer = outputs_of(computed, "gpu-001", host_keys=("ssh-ed25519 AAAAnewer",))
    for outputs, first, second in ((newer, "AAAAnewer", ""), (None, "", KEY.split()[1])):
        provisioned, bound = login.known_hosts_files(folder, computed, outputs)
        assert (first in provisioned.read_text(), second in bound.read_text()) == (True, True)
        assert bool(bound.read_text()) == bool(second)


def run_ssh(tmp_path, pinned, words):
    """Run the real ssh against a server on loopback that shows one key, with another or the same pinned."""
    private, user_key = new_key()
    _, host_key = new_key()
    key = tmp_path / "id 1%d"
    key.write_text(private)
    key.chmod(0o600)
    known = tmp_path / "known hosts"
    shown = line(host_key if pinned else new_key()[1])
    known.write_text(f"127.0.0.1,gpu-001 {shown}\n")
    heard = []

    def handle(command, _stdin):
        heard.append(command)
        return 7, "in\n", ""

    with serving(host_key, user_key, handle) as server:
        argv = login.command(login.Target("gpu-001", "127.0.0.1", "supernode", (shown,)), key, [known], words)
        done = subprocess.run(
            [argv[0], "-p", str(server.port), *argv[1:]], capture_output=True, text=True, timeout=30, check=False
        )
    return done, heard


def test_ssh_runs_the_command_under_the_pinned_key(tmp_path):
    done, heard = run_ssh(tmp_path, True, ["vtysh", "-c", "show version"])
    assert (done.returncode, done.stdout, heard) == (7, "in\n", ["vtysh -c 'show version'"])


def test_one_word_is_a_line_for_the_shell_there(tmp_path):
    _, heard = run_ssh(tmp_path, True, ["journalctl -k | tail"])
    assert heard == ["journalctl -k | tail"]


def test_ssh_refuses_another_key_and_sends_nothing(tmp_path):
    done, heard = run_ssh(tmp_path, False, ["true"])
    assert (done.returncode, heard) == (255, [])
    assert "REMOTE HOST IDENTIFICATION HAS CHANGED" in done.stderr


def test_the_command_line_prints_what_it_would_start(folder, monkeypatch):
    slot = designed().switch("su01-leaf0").slot
    (folder.folder / "machines.yml").write_text(
        yaml.safe_dump({"schema": 1, "slots": {slot: {"identity": {"ssh_host_key": KEY}}}})
    )
    monkeypatch.setenv("SUPERNODE_ROOT", str(folder.root))
    place = folder.ssh_key_file
    told = CliRunner().invoke(app, ["ssh", "--print", "lab", "su01-leaf0", "ls", "-l", "--json"])
    assert told.exit_code == 3  # no key yet
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("key")
    told = CliRunner().invoke(app, ["ssh", "--print", "lab", "su01-leaf0", "ls", "-l", "--json"])
    words = shlex.split(told.stdout)
    assert told.exit_code == 0, told.output
    assert words[-2:] == [str(designed().switch("su01-leaf0").management.ip), "ls -l --json"]
    assert "StrictHostKeyChecking=yes" in words
