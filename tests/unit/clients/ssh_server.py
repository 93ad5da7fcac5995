"""An SSH server on loopback that runs a function for each command: paramiko's own server side, in threads."""

from __future__ import annotations

import io
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import paramiko
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

Handler = Callable[[str, bytes], tuple[int, str | Iterator[str], str]]


def new_key() -> tuple[str, paramiko.PKey]:
    """Return a private key's text and the key."""
    text = (
        ed25519.Ed25519PrivateKey.generate()
        .private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption())
        .decode()
    )
    return text, paramiko.Ed25519Key.from_private_key(io.StringIO(text))


def line(key: paramiko.PKey) -> str:
    return f"{key.get_name()} {key.get_base64()}"


class _Interface(paramiko.ServerInterface):
    def __init__(self, allowed: paramiko.PKey, handler: Handler) -> None:
        self.allowed, self.handler = allowed, handler

    def get_allowed_auths(self, username):
        return "publickey"

    def check_auth_publickey(self, username, key):
        return paramiko.AUTH_SUCCESSFUL if key == self.allowed else paramiko.AUTH_FAILED

    def check_channel_request(self, kind, chanid):
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel, command):
        threading.Thread(target=self._run, args=(channel, command.decode()), daemon=True).start()
        return True

    def _run(self, channel, command):
        stdin = bytearray()
        while chunk := channel.recv(65536):
            stdin += chunk
        status, out, err = self.handler(command, bytes(stdin))
        with suppress(OSError):
            for part in [out] if isinstance(out, str) else out:  # an iterator prints as it goes
                channel.sendall(part.encode())
            channel.sendall_stderr(err.encode())
            channel.send_exit_status(status)
            channel.close()


class Server:
    def __init__(self, host_key: paramiko.PKey, user_key: paramiko.PKey, handler: Handler, port: int = 0) -> None:
        self.host_key, self.user_key, self.handler = host_key, user_key, handler
        self.logins = 0
        self._socket = socket.create_server(("127.0.0.1", port), reuse_port=False)
        self.port = self._socket.getsockname()[1]
        self._transports: list[paramiko.Transport] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        transport = paramiko.Transport(connection)
        transport.add_server_key(self.host_key)
        self._transports.append(transport)
        with suppress(paramiko.SSHException, EOFError, OSError):
            transport.start_server(server=_Interface(self.user_key, self.handler))
            self.logins += 1

    def close(self):
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for transport in self._transports:
            transport.close()


@contextmanager
def serving(host_key: paramiko.PKey, user_key: paramiko.PKey, handler: Handler, port: int = 0) -> Iterator[Server]:
    server = Server(host_key, user_key, handler, port)
    try:
        yield server
    finally:
        server.close()
