"""The one place that knows testinfra: a device's `run`, over SSH, with its host key pinned.

testinfra's own paramiko backend takes any host key with a warning and waits for ever on a hung host; this one does
neither.
"""

from __future__ import annotations

import functools
import logging
import time
from dataclasses import dataclass
from pathlib import Path

import paramiko
from testinfra.backend.paramiko import ParamikoBackend
from testinfra.host import Host

from supernode.clients.ssh import load_key
from supernode.records import DeviceOutput, Outputs
from supernode.verify.gather import Run, UnreachableError

SSH_PORT = 22
CONNECT_S = 10
COMMAND_S = 180
_CHUNK = 65536
_LOOK_S = 1.0

logging.getLogger("paramiko").addHandler(logging.NullHandler())


@dataclass(frozen=True)
class Login:
    """How to log in: hosts as the environment's user, switches as their administrator, both with the same key file."""

    user: str
    key: Path
    switch_user: str


class PinnedBackend(ParamikoBackend):  # type: ignore[misc]
    """testinfra's paramiko backend with pinned host keys, no agent, and limits on every wait."""

    def __init__(self, address: str, user: str, key: Path, host_keys: tuple[str, ...], port: int = SSH_PORT) -> None:
        super().__init__(f"{user}@{address}", timeout=CONNECT_S)
        self._address, self._user, self._key, self._host_keys, self._port = address, user, key, host_keys, port
        self._cut = False

    def cut(self) -> None:
        """Break the connection, now or once it is made."""
        self._cut = True
        made = self.__dict__.get("client")
        if made is not None:
            made.close()

    @functools.cached_property
    def client(self) -> paramiko.SSHClient:
        """Connect; a host whose key is not among the pinned ones is not talked to."""
        client = paramiko.SSHClient()
        client.set_missing_host_key_policy(paramiko.RejectPolicy())
        keys = client.get_host_keys()
        known = self._address if self._port == SSH_PORT else f"[{self._address}]:{self._port}"
        for line in self._host_keys:
            entry = paramiko.hostkeys.HostKeyEntry.from_line(f"{known} {line}")
            if entry is not None and entry.key is not None:
                keys.add(known, entry.key.get_name(), entry.key)
        limits = {"timeout": CONNECT_S, "banner_timeout": CONNECT_S, "auth_timeout": CONNECT_S}
        client.connect(
            self._address,
            port=self._port,
            username=self._user,
            pkey=load_key(self._key.read_text(encoding="utf-8")),
            allow_agent=False,
            look_for_keys=False,
            **limits,  # type: ignore[arg-type]
        )
        return client

    def _exec_command(self, command: bytes) -> tuple[int, bytes, bytes]:
        transport = None if self._cut else self.client.get_transport()
        if transport is None or self._cut:
            raise paramiko.SSHException("the connection is gone")
        channel = transport.open_session(timeout=CONNECT_S)
        channel.exec_command(command)
        return _read(channel, time.monotonic() + COMMAND_S)


def _read(channel: paramiko.Channel, until: float) -> tuple[int, bytes, bytes]:
    """Read both outputs side by side, so that neither fills up while the other is waited for.

    The end is the end of standard output; or silence after the exit status, when a child still holds the output open.
    """
    channel.settimeout(_LOOK_S)
    out, err = bytearray(), bytearray()
    while True:
        while channel.recv_stderr_ready():
            err += channel.recv_stderr(_CHUNK)
        if time.monotonic() > until:
            channel.close()
            raise TimeoutError(f"no end of the command after {COMMAND_S} s")
        try:
            data = channel.recv(_CHUNK)
        except TimeoutError:
            if channel.exit_status_ready():
                break
            continue
        if not data:
            break
        out += data
    if not channel.status_event.wait(max(until - time.monotonic(), _LOOK_S)):
        raise TimeoutError("the command ended without an exit status")
    while channel.recv_stderr_ready():
        err += channel.recv_stderr(_CHUNK)
    return channel.recv_exit_status(), bytes(out), bytes(err)


class Connections:
    """`connect` for `gather`: a device by its designed name, as the engine's outputs say where and who it is.

    Args:
        outputs: where the devices are, and their pinned keys.
        login: as whom.
    """

    def __init__(self, outputs: Outputs, login: Login) -> None:
        self._outputs, self._login = outputs, login
        self._backends: list[PinnedBackend] = []

    def __call__(self, name: str) -> Run:
        """Return a device's `run`; the connection is made when it is first asked."""
        device = self._outputs.devices.get(name)
        if device is None:
            return _refuse("the engine knows no such device: it was not provisioned")
        if not device.host_keys:
            return _refuse(_state(device) or "no host key is known")
        user = self._login.switch_user if device.kind in ("switch", "gateway") else self._login.user
        backend = PinnedBackend(device.address, user, self._login.key, device.host_keys)
        self._backends.append(backend)
        host = Host(backend)
        return lambda command: run_on(host, command, device)

    def cut(self) -> None:
        """Break every connection, and make none any more: who waits for an answer gets an error at once."""
        for backend in self._backends:
            backend.cut()


def _refuse(why: str) -> Run:
    def run(_command: str) -> str:
        raise UnreachableError(why)

    return run


def run_on(host: Host, command: str, device: DeviceOutput) -> str:
    """Run a command and return its standard output.

    Raises:
        UnreachableError: in one line, why, with what the engine last knew of a device that is not ready.
    """
    try:
        return str(host.run(command).stdout)
    except paramiko.BadHostKeyException as error:
        raise UnreachableError("presents another host key than the pinned one") from error
    except paramiko.AuthenticationException as error:
        raise UnreachableError(f"refuses the login: {error}") from error
    except (paramiko.SSHException, OSError, EOFError) as error:
        words = str(error).splitlines()[0] if str(error) else type(error).__name__
        after = _state(device)
        raise UnreachableError(f"{words}{f' ({after})' if after else ''}") from error


def _state(device: DeviceOutput) -> str:
    """Say what the engine last knew of a device that is not ready."""
    if device.state == "ready":
        return ""
    return f"{device.state} in phase {device.phase}: {device.reason}"
