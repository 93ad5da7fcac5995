"""Secrets reach a host over ssh's standard input alone, once, and their unit is told; against a real SSH server."""

import functools
import hashlib
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from supernode.bringup import placing
from supernode.clients import ssh
from supernode.design.rows import CREDENTIALS, Placed
from supernode.errors import CouldNotRun
from supernode.records import DeviceOutput, State

sys.path.insert(0, str(Path(__file__).parents[1] / "clients"))
import ssh_server

SECRET = "correct horse battery staple"
ROWS = (Placed("cdu2", "file:secrets/cdu2", "supernode-cooling.service"), Placed("cdu2-ca", "ca.pem", "x.service"))


@pytest.fixture
def host(tmp_path, monkeypatch):
    """A host whose commands run here, without sudo and with its credentials in a folder of the test's."""
    key_text, key = ssh_server.new_key()
    place, said, broken = tmp_path / "host", [], []

    def handler(command, stdin):
        said.append(command)
        if "systemctl" in command:
            return 0, "", ""
        line = command.replace("sudo -n ", "").replace(CREDENTIALS, str(place))
        done = subprocess.run(["sh", "-c", line], input=stdin, capture_output=True)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    run = ssh.Ssh.run

    async def breaking(self, command, **how):
        if any(word in " ".join(command) for word in broken):
            raise ssh.NoAnswer(self.address, "the connection broke")
        return await run(self, command, **how)

    monkeypatch.setattr(ssh.Ssh, "run", breaking)
    folder = tmp_path / "env"
    (folder / "secrets").mkdir(parents=True)
    for name, text, mode in (
        ("secrets/cdu2", SECRET + "\n", 0o600),
        ("ca.pem", "PEM\n", 0o644),
        ("key", key_text, 0o600),
    ):
        (folder / name).write_text(text)
        (folder / name).chmod(mode)
    with ssh_server.serving(ssh_server.new_key()[1], key, handler) as server:
        monkeypatch.setattr(ssh, "connect", functools.partial(ssh.connect, port=server.port))
        rows = {"head-001": ROWS}
        monkeypatch.setattr(placing.roles, "placed", lambda design, row: rows.get(row.name, ()))
        device = DeviceOutput(
            "head-001", "machine", "r03u01", "127.0.0.1", host_keys=(ssh_server.line(server.host_key),)
        )
        hosts = [SimpleNamespace(name=name, state="active") for name in ("head-001", "gpu-001")]
        design = SimpleNamespace(hosts=hosts, environment=SimpleNamespace(access=SimpleNamespace(user="supernode")))
        yield SimpleNamespace(
            place=place,
            rows=rows,
            said=said,
            broken=broken,
            folder=SimpleNamespace(folder=folder, ssh_key_file=folder / "key"),
            design=design,
            outputs=SimpleNamespace(devices={"head-001": device}),
        )


def placed(host):
    events = []
    placing.place(host.folder, host.design, host.outputs, events.append)
    return [(event.host, event.state, event.detail) for event in events]


def test_a_secret_is_placed_once_and_stands_in_no_command(host):
    assert placed(host) == [("head-001", State.CHANGED, "cdu2, cdu2-ca")]
    assert (host.place / "cdu2").read_text() == SECRET
    assert (host.place / "cdu2").stat().st_mode & 0o777 == 0o600
    assert (host.place / "cdu2-ca").read_text() == "PEM\n"
    assert SECRET not in "".join(host.said)
    assert any("try-restart supernode-cooling.service" in line for line in host.said)
    host.said.clear()
    assert placed(host) == [("head-001", State.OK, "")]
    assert not any("systemctl" in line or "mktemp" in line for line in host.said)


def test_another_secret_replaces_it_and_restarts_its_unit_alone(host):
    placed(host)
    host.said.clear()
    (host.folder.folder / "secrets/cdu2").write_text("another\n")
    assert placed(host) == [("head-001", State.CHANGED, "cdu2")]
    assert hashlib.sha256((host.place / "cdu2").read_bytes()).digest() == hashlib.sha256(b"another").digest()
    assert [line for line in host.said if "systemctl" in line] == [
        "sudo -n systemctl try-restart supernode-cooling.service"
    ]


RESTART = "sudo -n systemctl try-restart supernode-cooling.service"


@pytest.mark.parametrize("word", ["try-restart supernode-cooling", "cat >"])
def test_a_run_that_died_before_the_restart_is_taken_up_by_the_next(host, word):
    placed(host)
    (host.folder.folder / "secrets/cdu2").write_text("another\n")
    host.broken.append(word)
    assert [row[:2] for row in placed(host)] == [("head-001", State.FAILED)]
    host.broken.clear()
    host.said.clear()
    ((_, state, said),) = placed(host)
    assert (state, said) == (State.CHANGED, "cdu2" if word == "cat >" else "supernode-cooling.service restarted")
    assert (host.place / "cdu2").read_text() == "another"
    assert [line for line in host.said if "systemctl" in line] == [RESTART]
    assert placed(host) == [("head-001", State.OK, "")]


def test_what_no_role_needs_any_more_is_removed_also_where_nothing_is_left(host):
    placed(host)
    (host.place / ".put.a1b2c3").write_text("half of a secr")
    host.rows["head-001"] = ROWS[1:]
    ((_, state, said),) = placed(host)
    assert (state, set(said.split(", "))) == (State.CHANGED, {"cdu2 removed", ".put.a1b2c3 removed"})
    assert {path.name for path in host.place.iterdir() if path.is_file()} == {"cdu2-ca"}
    host.rows["head-001"] = ()
    assert placed(host) == [("head-001", State.CHANGED, "cdu2-ca removed")]
    assert placed(host) == [("head-001", State.OK, "")]


def test_a_host_that_never_had_a_secret_is_left_as_it_is(host):
    host.rows["head-001"] = ()
    assert placed(host) == [("head-001", State.OK, "")]
    assert not host.place.exists()


def test_a_secret_that_is_not_there_ends_the_run_by_its_reference(host):
    (host.folder.folder / "secrets/cdu2").unlink()
    with pytest.raises(CouldNotRun, match="file:secrets/cdu2"):
        placed(host)


def test_a_host_that_does_not_answer_is_told_of_and_ends_nothing(host):
    host.outputs.devices["head-001"] = DeviceOutput(
        "head-001", "machine", "r03u01", "127.0.0.1", host_keys=("ssh-ed25519 AAAA",)
    )
    rows = placed(host)
    assert [row[:2] for row in rows] == [("head-001", State.FAILED)]
