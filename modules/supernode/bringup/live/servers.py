"""Ask time servers for the time (RFC 5905) and name servers for addresses (RFC 1035): one datagram each way."""

from __future__ import annotations

import asyncio
import secrets
import socket
import struct
import time
from collections.abc import Callable
from ipaddress import IPv4Address

from supernode.bringup.live.seen import NameSeen, TimeSeen

LIMIT_S = 2.0
TRIES = 2
_EPOCH_1900_S = 2208988800
_UNSYNCHRONISED_LEAP, _STRATA = 3, range(1, 16)


class _Exchange(asyncio.DatagramProtocol):
    """Sends one datagram, and keeps the first answer that fits it."""

    def __init__(self, message: bytes, fits: Callable[[bytes], bool]) -> None:
        self._message, self._fits = message, fits
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.sendto(self._message)  # type: ignore[attr-defined]

    def datagram_received(self, data: bytes, _address: object) -> None:
        if not self.answer.done() and self._fits(data):
            self.answer.set_result(data)

    def error_received(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


async def _ask(server: str, port: int, message: bytes, fits: Callable[[bytes], bool]) -> bytes:
    """Send until an answer fits.

    Raises:
        OSError: the server refuses or cannot be reached; TimeoutError, which is one, when it stays silent.
    """
    failure: OSError = TimeoutError()
    for _ in range(TRIES):
        try:
            async with asyncio.timeout(LIMIT_S):
                return await _once(server, port, message, fits)
        except OSError as error:
            failure = error
    raise failure


async def _once(server: str, port: int, message: bytes, fits: Callable[[bytes], bool]) -> bytes:
    loop = asyncio.get_running_loop()
    transport, exchange = await loop.create_datagram_endpoint(
        lambda: _Exchange(message, fits), remote_addr=(server, port), family=socket.AF_INET
    )
    try:
        return await exchange.answer
    finally:
        transport.close()


def _said(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer in {TRIES} times {LIMIT_S:g} s"
    return error.strerror or str(error)


async def time_of(server: str, port: int = 123) -> TimeSeen:
    """Ask a time server; its clock less ours is as exact as the way to it is even."""
    stamp = secrets.token_bytes(8)  # it comes back as the origin: an answer to somebody else's question does not fit
    request = bytes([0x23]) + bytes(39) + stamp
    sent = time.time()
    try:
        answer = await _ask(server, port, request, lambda data: len(data) >= 48 and data[24:32] == stamp)
    except OSError as error:
        return TimeSeen(server, error=_said(error))
    back = time.time()
    leap, mode, stratum = answer[0] >> 6, answer[0] & 7, answer[1]
    if mode != 4:
        return TimeSeen(server, error=f"answers in mode {mode}, not as a server")
    taken, given = (_ntp_time(answer[start : start + 8]) for start in (32, 40))
    unsynchronised = leap == _UNSYNCHRONISED_LEAP or stratum not in _STRATA
    return TimeSeen(server, stratum, unsynchronised, ((taken - sent) + (given - back)) / 2)


def _ntp_time(stamp: bytes) -> float:
    seconds, part = struct.unpack("!II", stamp)
    return float(seconds - _EPOCH_1900_S + part / 2**32)


async def addresses_of(name: str, server: str, port: int = 53) -> NameSeen:
    """Ask a name server for a name's IPv4 addresses."""
    number = secrets.token_bytes(2)
    labels = b"".join(bytes([len(label)]) + label for label in name.rstrip(".").encode("idna").split(b"."))
    question = labels + b"\0" + struct.pack("!HH", 1, 1)
    request = number + struct.pack("!HHHHH", 0x0100, 1, 0, 0, 0) + question
    try:
        answer = await _ask(server, port, request, lambda data: data[:2] == number and len(data) >= 12)
    except OSError as error:
        return NameSeen(name, server, error=_said(error))
    code = answer[3] & 15
    if code not in (0, 3):
        return NameSeen(name, server, error=f"answers with error {code}")
    try:
        return NameSeen(name, server, _addresses(answer, 12 + len(question)))
    except (IndexError, struct.error):
        return NameSeen(name, server, error="answers what is no DNS message")


def _addresses(answer: bytes, at: int) -> tuple[str, ...]:
    found = []
    for _ in range(struct.unpack("!H", answer[6:8])[0]):
        while answer[at] and answer[at] < 0xC0:
            at += 1 + answer[at]
        at += 2 if answer[at] else 1  # a pointer ends a name, and so does the empty label
        kind, _, _, length = struct.unpack("!HHIH", answer[at : at + 10])
        at += 10
        if kind == 1 and length == 4:
            found.append(str(IPv4Address(answer[at : at + 4])))
        at += length
    return tuple(found)


def is_address(name: str) -> bool:
    """Tell an IPv4 address from a name."""
    try:
        socket.inet_pton(socket.AF_INET, name)
    except OSError:
        return False
    return True
