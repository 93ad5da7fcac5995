"""A real SSH server on loopback: the right key is talked to, another is not, a silent one does not hold us up."""

import socket
import threading
import time

import paramiko
import pytest
from testinfra.host import Host

from supernode.records import DeviceOutput, Outputs
from supernode.verify import reach
from supernode.verify.gather import UnreachableError

HOST_KEY = paramiko.ECDSAKey.generate()


class Server(paramiko.ServerInterface):
    def get_allowed_auths(self, username):
        return "publickey"

    def check_auth_publickey(self, username, key):
        return paramiko.AUTH_SUCCESSFUL if username == "supernode" else paramiko.AUTH_FAILED

    def check_channel_request(self, kind, chanid):
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel, command):
        def answer():
            time.sleep(0.3)  # the request is granted only when this method has returned
            channel.sendall_stderr(b"e" * 300_000)
            channel.sendall(b"ran " + command + b" " + b"o" * 300_000)
            channel.send_exit_status(0)
            channel.close()

        threading.Thread(target=answer, daemon=True).start()
        return True


@pytest.fixture
def port():
    listener = socket.create_server(("127.0.0.1", 0))
    transports = []

    def serve():
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            transport = paramiko.Transport(sock)
            transport.add_server_key(HOST_KEY)
            transport.start_server(server=Server())
            transports.append(transport)

    threading.Thread(target=serve, daemon=True).start()
    yield listener.getsockname()[1]
    listener.close()
    for transport in transports:
        transport.close()


@pytest.fixture
def key(tmp_path):
    path = tmp_path / "id"
    paramiko.ECDSAKey.generate().write_private_key_file(str(path))
    return path


def line(key: paramiko.PKey) -> str:
    return f"{key.get_name()} {key.get_base64()}"


DEVICE = DeviceOutput("gpu-001", "machine", "r01u01", "127.0.0.1")


def run(port: int, key, pinned: str, user: str = "supernode", device: DeviceOutput = DEVICE) -> str:
    host = Host(reach.PinnedBackend("127.0.0.1", user, key, (pinned,), port))
    return reach.run_on(host, "facts", device)


def test_the_pinned_key_is_talked_to_and_both_long_outputs_are_read(port, key):
    assert run(port, key, line(HOST_KEY)) == "ran facts " + "o" * 300_000


def test_another_host_key_is_not_talked_to(port, key):
    with pytest.raises(UnreachableError, match="another host key"):
        run(port, key, line(paramiko.ECDSAKey.generate()))


def test_an_unknown_host_key_is_not_talked_to(port, key):
    host = Host(reach.PinnedBackend("127.0.0.1", "supernode", key, (), port))
    with pytest.raises(UnreachableError, match="not found in known_hosts"):
        reach.run_on(host, "facts", DEVICE)


def test_a_refused_login_says_so(port, key):
    with pytest.raises(UnreachableError, match="refuses the login"):
        run(port, key, line(HOST_KEY), user="nobody")


def test_a_hung_host_that_accepts_and_says_nothing_is_given_up(key, monkeypatch):
    monkeypatch.setattr(reach, "CONNECT_S", 0.5)
    late = DeviceOutput("gpu-001", "machine", "r01u01", "127.0.0.1", "late", "firstboot", "no report")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        started = time.monotonic()
        with pytest.raises(UnreachableError, match=r"\(late in phase firstboot: no report\)"):
            run(silent.getsockname()[1], key, line(HOST_KEY), device=late)
    assert time.monotonic() - started < 5


def test_a_device_that_the_engine_does_not_know_is_unreachable_with_the_reason(key):
    failed = DeviceOutput("gpu-002", "machine", "r01u02", "127.0.0.1", "failed", "boot", "BMC does not answer")
    connect = reach.Connections(Outputs("lab", "", {"gpu-002": failed}), reach.Login("supernode", key, "admin"))
    with pytest.raises(UnreachableError, match="not provisioned"):
        connect("gpu-001")("facts")
    with pytest.raises(UnreachableError, match="failed in phase boot: BMC does not answer"):
        connect("gpu-002")("facts")
