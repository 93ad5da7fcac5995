"""The half of an adapter's driver that umad2sim leaves out: a request that nobody answers ends.

A kernel sends a management datagram (MAD) again, and tells its program in the end that it timed out. umad2sim waits
for ever, and with it a subnet manager: one answer that the standby manager does not give while it starts, and no link
comes up again. So the servers' adapters speak to this relay, which keeps count of the requests, and it to ibsim.

The datagrams are ibsim's (include/ibsim.h): a control channel, on which a client is given one of ten places, and one
port for the datagrams of each place.
"""

from __future__ import annotations

import logging
import selectors
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

log = logging.getLogger(__name__)

PLACES = 10
# opensm's own defaults (transaction_timeout, transaction_retries), which umad2sim does not pass on.
WAIT_S, SENDS = 0.2, 4
TIMED_OUT = struct.pack("!I", 110)  # ETIMEDOUT, where ibsim too writes it
CONTROL = struct.Struct("=IIII64s")  # magic, client, type, length, data
CONNECT, ERROR = 1, 0
STATUS, MAD, PACKET = 16, 32, 288  # offsets in a packet, and its size
SUBNET_CLASSES = (0x01, 0x81)
GET, SET, RESPONSE = 0x01, 0x02, 0x80
Address = tuple[str, int]


@dataclass
class Request:
    """A request on its way: the packet, when to look again, how often it was sent."""

    packet: bytes
    due: float
    sent: int = 1


@dataclass
class Place:
    """A client's place: the socket it speaks to, the one that speaks for it, its requests by transaction."""

    front: socket.socket
    behind: socket.socket | None = None
    waiting: dict[bytes, Request] = field(default_factory=dict)

    def ask(self, packet: bytes, now: float) -> None:
        """Pass on what the client sends."""
        if self.behind is None or len(packet) != PACKET:
            return
        if packet[MAD + 1] in SUBNET_CLASSES and packet[MAD + 3] in (GET, SET):
            self.waiting[transaction(packet)] = Request(packet, now + WAIT_S)
        send(self.behind, packet)

    def answer(self, packet: bytes) -> None:
        """Pass on what comes for the client, except an answer that it no longer waits for."""
        ended = bool(packet[MAD + 3] & RESPONSE) or packet[STATUS : STATUS + 4] != bytes(4)
        if ended and packet[MAD + 1] in SUBNET_CLASSES and self.waiting.pop(transaction(packet), None) is None:
            return
        send(self.front, packet)

    def look(self, now: float) -> None:
        """Send again what waits too long, or give it up."""
        for key, request in list(self.waiting.items()):
            if request.due > now or self.behind is None:
                continue
            if request.sent < SENDS:
                request.sent, request.due = request.sent + 1, now + WAIT_S
                send(self.behind, request.packet)
            else:
                del self.waiting[key]
                send(self.front, request.packet[:STATUS] + TIMED_OUT + request.packet[STATUS + 4 :])


class Relay:
    """Stands between the adapters, which know it as the simulator, and the simulator."""

    def __init__(self, host: str, front: int, behind: int) -> None:
        self.host, self.port, self.behind = host, front, behind
        self.places: list[Place] = []
        self._asked: deque[tuple[Address, Address | None, socket.socket | None]] = deque()
        self._selector = selectors.DefaultSelector()
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="transactions", daemon=True)

    def start(self) -> None:
        """Listen, and relay from now on.

        Raises:
            OSError: a port is taken.
        """
        self._control = self._listen(self.port, self._control_asked)
        self._simulator = self._listen(0, self._control_answered)
        self._simulator.connect((self.host, self.behind))
        for number in range(PLACES):
            place = Place(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            place.front.bind((self.host, self.port + 1 + number))
            place.front.setblocking(False)
            self._selector.register(
                place.front, selectors.EVENT_READ, lambda packet, _from, p=place: p.ask(packet, time.monotonic())
            )
            self.places.append(place)
        self._thread.start()

    def stop(self) -> None:
        """End, and close what listens."""
        self._ends.set()
        self._thread.join(timeout=5)
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        self._selector.close()

    def _listen(self, port: int, heard: Callable[[bytes, Address], None]) -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.bind((self.host, port))
        made.setblocking(False)
        self._selector.register(made, selectors.EVENT_READ, heard)
        return made

    def _run(self) -> None:
        while not self._ends.is_set():
            for key, _ in self._selector.select(timeout=WAIT_S / 4):
                try:
                    packet, sender = key.fileobj.recvfrom(512)  # type: ignore[union-attr]
                except OSError:
                    continue  # whom we speak to has gone: the next client is given its place
                key.data(packet, sender)
            now = time.monotonic()
            for place in self.places:
                place.look(now)

    def _control_asked(self, packet: bytes, sender: Address) -> None:
        if len(packet) != CONTROL.size:
            return
        magic, client, kind, length, data = CONTROL.unpack(packet)
        if kind == CONNECT:
            # The client says at which port of its own it listens: the simulator is to answer at one of ours.
            (port,) = struct.unpack_from("=I", data)
            speaks = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            speaks.bind((self.host, 0))
            speaks.setblocking(False)
            data = struct.pack("=I", speaks.getsockname()[1]) + data[4:]
            self._asked.append((sender, (sender[0], port), speaks))
        else:
            self._asked.append((sender, None, None))
        send(self._simulator, CONTROL.pack(magic, client, kind, length, data))

    def _control_answered(self, packet: bytes, _sender: Address) -> None:
        # One after the other is how the simulator answers.
        asker, client, speaks = self._asked.popleft()
        if speaks is not None and client is not None:
            kind, (number,) = CONTROL.unpack(packet)[2], struct.unpack_from("=I", packet, CONTROL.size - 64)
            if kind == ERROR or number >= PLACES:
                speaks.close()
            else:
                self._seat(self.places[number], number, client, speaks)
        self._control.sendto(packet, asker)

    def _seat(self, place: Place, number: int, client: Address, speaks: socket.socket) -> None:
        if place.behind is not None:
            self._selector.unregister(place.behind)
            place.behind.close()
        place.waiting.clear()
        place.front.connect(client)
        speaks.connect((self.host, self.behind + 1 + number))
        self._selector.register(speaks, selectors.EVENT_READ, lambda packet, _from: place.answer(packet))
        place.behind = speaks


def transaction(packet: bytes) -> bytes:
    """Return a packet's class and transaction id, less the bits in which the simulator notes the client."""
    return packet[MAD + 1 : MAD + 2] + packet[MAD + 10 : MAD + 16]


def send(through: socket.socket, packet: bytes) -> None:
    """Send, as datagrams are sent: whoever is not there gets nothing."""
    try:
        through.send(packet)
    except OSError as error:
        log.debug("a datagram of the subnet is lost: %s", error)
