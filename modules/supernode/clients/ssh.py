"""SSH on a bounded pool of threads, with the host's key pinned: a host whose key is not known is not talked to.

paramiko blocks, so every call runs on one pool of this module; an event loop is never held up.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import io
import shlex
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

import paramiko

from supernode.clients import looking
from supernode.clients.exchange import Exchange, printable
from supernode.clients.looking import LookOnly
from supernode.errors import CouldNotRun

__all__ = [
    "CommandFailed",
    "HostKeyMismatch",
    "LoginRefused",
    "LookOnly",
    "NoAnswer",
    "Result",
    "Ssh",
    "TooMuch",
    "connect",
    "fingerprint",
    "key_line",
    "load_key",
    "open_session",
    "same_key",
    "scan",
]

THREADS = 64
_POOL = ThreadPoolExecutor(THREADS, thread_name_prefix="ssh")
_KEYS: tuple[type[paramiko.PKey], ...] = (paramiko.Ed25519Key, paramiko.ECDSAKey, paramiko.RSAKey)
_CHUNK = 65536
_MOMENT_S = 0.1
OUTPUT_LIMIT = 16 << 20  # bytes of both streams: a host cannot fill the operator's memory
_T = TypeVar("_T")


class HostKeyMismatch(CouldNotRun):
    """The host presents a key other than the pinned ones.

    Attributes:
        presented: the key it showed, in authorized_keys form.
    """

    def __init__(self, address: str, presented: str) -> None:
        what = f"presents another host key than the pinned one: {presented}"
        super().__init__(address, what, "another machine answers at this address")
        self.presented = presented


class LoginRefused(CouldNotRun):
    """The host is the right one and refuses the user's key."""


class NoAnswer(CouldNotRun):
    """Nothing that speaks SSH answered in time."""


class TooMuch(CouldNotRun):
    """A command printed more than is kept; it was given up."""


class CommandFailed(CouldNotRun):
    """A command ended with another status than 0.

    Attributes:
        result: what it printed.
    """

    def __init__(self, address: str, command: str, result: Result) -> None:
        # Where a host does not resolve its own name, sudo says so each time; that is never why a command failed.
        told = [line for line in result.stderr.splitlines() if line.strip() and "unable to resolve host" not in line]
        text = told or result.stdout.strip().splitlines()
        super().__init__(
            address, f"{command!r} ended with status {result.status}" + (f": {printable(text[-1])}" if text else "")
        )
        self.result = result


@dataclass(frozen=True)
class Result:
    """What a command printed, and its exit status (-1 when a signal ended it)."""

    status: int
    stdout: str
    stderr: str


async def _threaded(work: Callable[[], _T]) -> _T:
    return await asyncio.get_running_loop().run_in_executor(_POOL, work)


def key_line(key: paramiko.PKey) -> str:
    """Write a public key in authorized_keys form without a comment."""
    return f"{key.get_name()} {key.get_base64()}"


def fingerprint(line: str) -> str:
    """Return a public key's fingerprint as `ssh-keygen -l` writes it; the line itself where it is no key."""
    words = line.split()
    try:
        blob = base64.b64decode(words[1], validate=True)
    except (IndexError, ValueError):
        return line
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def same_key(one: str, other: str) -> bool:
    """Compare two public keys, comments aside."""
    return one.split()[:2] == other.split()[:2] and len(one.split()) >= 2


def load_key(text: str) -> paramiko.PKey:
    """Read a private key without a passphrase.

    Raises:
        CouldNotRun: no key of a kind that is known.
    """
    for kind in _KEYS:
        with contextlib.suppress(paramiko.SSHException, ValueError):
            return kind.from_private_key(io.StringIO(text if text.endswith("\n") else text + "\n"))
    hint = "an unencrypted Ed25519, ECDSA or RSA key in OpenSSH form is expected"
    raise CouldNotRun("ssh key", "is no private key that can be read", hint)


class Ssh:
    """A connection; made by `connect`.

    Attributes:
        look: it runs only what `looking` lists.
        exchanges: what it was asked to run, where it only looks: the command as path, its exit status as status
            (-1: no answer).
    """

    def __init__(self, address: str, transport: paramiko.Transport, *, look: bool = False) -> None:
        self.address, self.look = address, look
        self.exchanges: list[Exchange] = []
        self._transport = transport

    @property
    def host_key(self) -> str:
        """The key under which the host was found to be itself, in authorized_keys form."""
        return key_line(self._transport.get_remote_server_key())

    async def run(
        self, command: str | Sequence[str], *, stdin: bytes = b"", limit_s: float = 60.0, check: bool = True
    ) -> Result:
        """Run a command.

        Args:
            command: a shell line, or words, which are quoted.
            stdin: what it reads.
            limit_s: it is given up after this time, whether it still prints or not.
            check: raise when it ends with another status than 0.

        Raises:
            CommandFailed: with `check`, on another status.
            NoAnswer: not done in time, or the connection broke.
            TooMuch: more output than OUTPUT_LIMIT.
            LookOnly: the connection only looks, and this does more; nothing was sent.
        """
        line = command if isinstance(command, str) else shlex.join(command)
        if self.look and (stdin or not looking.admitted(command)):
            raise looking.refuse(self.address, repr(line[:80]))
        began, status = time.monotonic(), -1
        try:
            result = await _threaded(lambda: self._run(line, stdin, limit_s))
            status = result.status
        finally:
            if self.look:
                self.exchanges.append(Exchange("RUN", line, status, time.monotonic() - began, ""))
        if check and result.status != 0:
            raise CommandFailed(self.address, line, result)
        return result

    async def put(self, path: str, content: str | bytes, mode: str = "0644", *, sudo: bool = False) -> None:
        """Write a file whole: to a temporary name beside it, then renamed; a file that exists keeps its owner."""
        if self.look:
            raise looking.refuse(self.address, f"writing {path}")
        data = content.encode() if isinstance(content, str) else content
        quoted = shlex.quote(path)
        script = (
            f'set -e; umask 022; d=$(dirname {quoted}); mkdir -p "$d"; t=$(mktemp "$d/.put.XXXXXX"); '
            f'cat >"$t"; chmod {shlex.quote(mode)} "$t"; '
            f'if [ -e {quoted} ]; then chown --reference={quoted} "$t"; fi; mv -f "$t" {quoted}'
        )
        await self.run([*(["sudo", "-n"] if sudo else []), "sh", "-c", script], stdin=data)

    def _run(self, line: str, stdin: bytes, limit_s: float) -> Result:
        ends = time.monotonic() + limit_s
        try:
            with self._transport.open_session(timeout=limit_s) as channel:
                # paramiko waits for the answer to this without a limit.
                watch = threading.Timer(limit_s, channel.close)
                watch.start()
                try:
                    channel.exec_command(line)
                finally:
                    watch.cancel()
                return _Conversation(channel, ends).hold(stdin)
        except _TooMuchError as error:
            raise TooMuch(self.address, f"{line[:80]!r} printed more than {OUTPUT_LIMIT >> 20} MiB") from error
        except (TimeoutError, paramiko.SSHException, OSError, EOFError) as error:
            late = TimeoutError() if time.monotonic() >= ends else error
            raise NoAnswer(self.address, f"{line[:80]!r}: {_say(late, limit_s)}") from error

    async def close(self) -> None:
        """Close the connection."""
        await _threaded(self._transport.close)


class _TooMuchError(Exception):
    """More output than is kept."""


class _Conversation:
    """One command's streams, fed and read until it ends or its one deadline is over, however often it says something.

    Args:
        channel: the command's.
        ends: when it is given up, by `time.monotonic`.
    """

    def __init__(self, channel: paramiko.Channel, ends: float) -> None:
        self._channel, self._ends = channel, ends
        self._out, self._err = bytearray(), bytearray()

    def hold(self, stdin: bytes) -> Result:
        """Feed stdin, read both streams, wait for the status."""
        rest = memoryview(stdin)
        while rest:
            rest = rest[self._briefly(lambda rest=rest: self._channel.send(rest[:_CHUNK])) or 0 :]  # type: ignore[misc]
            self._take()
        self._channel.shutdown_write()
        while (chunk := self._briefly(lambda: self._channel.recv(_CHUNK))) != b"":
            self._keep(self._out, chunk or b"")
            self._take()
        while (chunk := self._briefly(lambda: self._channel.recv_stderr(_CHUNK))) != b"":
            self._keep(self._err, chunk or b"")
        if not self._channel.status_event.wait(max(0.0, self._ends - time.monotonic())):
            raise TimeoutError
        out, err = (bytes(stream).decode(errors="replace") for stream in (self._out, self._err))
        return Result(self._channel.recv_exit_status(), out, err)

    def _briefly(self, step: Callable[[], _T]) -> _T | None:
        """Do one step within a moment, None when nothing came: the other stream may be what is full."""
        left = self._ends - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._channel.settimeout(min(_MOMENT_S, left))
        try:
            return step()
        except TimeoutError:
            return None

    def _take(self) -> None:
        """Keep what lies ready."""
        while self._channel.recv_ready():
            self._keep(self._out, self._channel.recv(_CHUNK))
        while self._channel.recv_stderr_ready():
            self._keep(self._err, self._channel.recv_stderr(_CHUNK))

    def _keep(self, stream: bytearray, chunk: bytes) -> None:
        stream += chunk
        if len(self._out) + len(self._err) > OUTPUT_LIMIT:
            raise _TooMuchError


def _say(error: BaseException, limit_s: float) -> str:
    return f"no answer in {limit_s:g} s" if isinstance(error, TimeoutError) else (str(error) or type(error).__name__)


def _handshake(address: str, port: int, limit_s: float, kinds: Iterable[str]) -> paramiko.Transport:
    """Connect and exchange keys, asking for the given kinds of host key; nothing of ours has been sent yet."""
    transport: paramiko.Transport | None = None
    try:
        sock = socket.create_connection((address, port), timeout=limit_s)
        transport = paramiko.Transport(sock)
        transport.banner_timeout = transport.handshake_timeout = transport.auth_timeout = limit_s
        options = transport.get_security_options()
        algorithms = set(kinds) | ({"rsa-sha2-256", "rsa-sha2-512"} if "ssh-rsa" in kinds else set())
        wanted = tuple(k for k in options.key_types if k in algorithms)
        if wanted:
            options.key_types = wanted
        transport.start_client(timeout=limit_s)
    except (OSError, paramiko.SSHException, EOFError) as error:
        if transport is not None:
            transport.close()
        raise NoAnswer(f"{address}:{port}", _say(error, limit_s)) from error
    return transport


def _open(
    address: str, port: int, user: str, key: paramiko.PKey, pinned: Sequence[str], limit_s: float
) -> paramiko.Transport:
    kinds = {line.split()[0] for line in pinned if line.split()}
    if not kinds:
        hint = "a host is only talked to under a known key"
        raise CouldNotRun(f"{address}:{port}", "no host key is pinned for it", hint)
    transport = _handshake(address, port, limit_s, kinds)
    try:
        presented = key_line(transport.get_remote_server_key())
        if not any(same_key(presented, line) for line in pinned):
            raise HostKeyMismatch(f"{address}:{port}", presented)
        transport.auth_publickey(user, key)
        transport.set_keepalive(15)
    except paramiko.AuthenticationException as error:
        transport.close()
        raise LoginRefused(f"{address}:{port}", f"refuses the key of user {user!r}") from error
    except (paramiko.SSHException, OSError, EOFError) as error:
        transport.close()
        raise NoAnswer(f"{address}:{port}", _say(error, limit_s)) from error
    except BaseException:
        transport.close()
        raise
    return transport


async def open_session(
    address: str,
    user: str,
    key: str,
    host_keys: Sequence[str],
    *,
    port: int = 22,
    limit_s: float = 10.0,
    look: bool = False,
) -> Ssh:
    """Log in at `address`; the caller closes the connection. See `connect`."""
    loaded = load_key(key)
    transport = await _threaded(lambda: _open(address, port, user, loaded, host_keys, limit_s))
    return Ssh(address, transport, look=look)


@asynccontextmanager
async def connect(
    address: str,
    user: str,
    key: str,
    host_keys: Sequence[str],
    *,
    port: int = 22,
    limit_s: float = 10.0,
    look: bool = False,
) -> AsyncIterator[Ssh]:
    """Log in at `address` for the length of the block.

    Args:
        address: host name or address.
        user: who logs in.
        key: the private key's text, already resolved.
        host_keys: the pinned public keys in authorized_keys form; any one of them will do.
        port: TCP port.
        limit_s: for each of connecting, the banner and the login.
        look: only commands of `looking.RULES` run; anything else is refused before it is sent.

    Raises:
        HostKeyMismatch: another key; nothing was sent to that host.
        LoginRefused, NoAnswer: as they say.
    """
    connection = await open_session(address, user, key, host_keys, port=port, limit_s=limit_s, look=look)
    try:
        yield connection
    finally:
        await asyncio.shield(connection.close())


async def scan(
    address: str, *, port: int = 22, limit_s: float = 10.0, kinds: Sequence[str] = ("ssh-ed25519",)
) -> tuple[str, ...]:
    """Return the host keys that a host presents, in authorized_keys form, one for each kind, without logging in.

    Raises:
        NoAnswer: nothing that speaks SSH answered, or it has no key of these kinds.
    """

    def one(kind: str) -> str:
        transport = _handshake(address, port, limit_s, (kind,))
        try:
            return key_line(transport.get_remote_server_key())
        finally:
            transport.close()

    found = []
    for kind in kinds:
        with contextlib.suppress(NoAnswer):
            found.append(await _threaded(lambda kind=kind: one(kind)))  # type: ignore[misc]
    if not found:
        raise NoAnswer(f"{address}:{port}", f"shows no host key of {', '.join(kinds)}")
    return tuple(dict.fromkeys(found))
