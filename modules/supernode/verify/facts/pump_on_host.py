"""Runs on a host or a switch, with Debian's python3 alone: pumps datagrams and counts what arrives in each second.

    python3 -c <this text> <request, base64 of JSON>

The request: serve [{key, address, port, device}], send [{key, source, address, port, device, mbit_s, size}], warm_s,
windows, connect_s. `device` is the port's name where the addresses are link-local, else "". The answer is one JSON
line: served and offered {key: [bytes of each window]}, failed {key: why}.

It ends when whoever asked is gone: it holds the ports that the next verification wants.

Datagrams at a set pace, not TCP: acknowledgements would share the way back with another flow, and one slow cable would
slow flows that never cross it in that direction. The pace stays below the declared rate, so that a healthy port queues
nothing.
"""

from __future__ import annotations

import base64
import json
import os
import select
import socket
import stat
import struct
import sys
import time
from collections.abc import Mapping
from typing import Any, TypeVar

Row = Mapping[str, Any]
HELLO, GO = b"hello", b"go"
SO_RXQ_OVFL = 40
RECEIVE_BUFFER = 4 << 20
TICK_S = 0.008
HELLO_EVERY_S = 0.2
CATCH_UP_S = 0.1
TAIL_S = 0.5
GRACE_S = 2.0


def endpoint(address: str, port: int, device: str) -> tuple[int, Any]:
    """Return (family, socket address); a link-local address needs the port it belongs to."""
    if ":" in address:
        return socket.AF_INET6, (address, port, 0, socket.if_nametoindex(device) if device else 0)
    return socket.AF_INET, (address, port)


def bound(address: str, port: int, device: str) -> socket.socket:
    """Open a socket on a port's own address, so that the flow keeps to its rail."""
    family, place = endpoint(address, port, device)
    sock = socket.socket(family, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, RECEIVE_BUFFER)
    sock.setblocking(False)
    sock.bind(place)
    return sock


class Windows:
    """Bytes by second, from the end of the warm-up on; what comes before or after all windows does not count."""

    def __init__(self, request: Row) -> None:
        self.warm_s, self.bytes = request["warm_s"], [0] * request["windows"]
        self.first: float | None = None

    def add(self, size: int, now: float) -> None:
        """Count some bytes."""
        if self.first is None:
            self.first = now
        past = now - self.first - self.warm_s
        if 0 <= past < len(self.bytes):
            self.bytes[int(past)] += size

    def over(self, now: float) -> bool:
        """Tell whether the last window has passed."""
        return self.first is not None and now - self.first > self.warm_s + len(self.bytes) + TAIL_S


class Receiver:
    """Waits for one flow and counts it; what the kernel dropped for want of buffer came over the cable, and counts."""

    def __init__(self, row: Row, request: Row) -> None:
        self.key, self.windows, self.done, self.dropped = row["key"], Windows(request), False, 0
        self.sock = bound(row["address"], row["port"], row["device"])
        self.sock.setsockopt(socket.SOL_SOCKET, SO_RXQ_OVFL, 1)

    def tick(self, now: float) -> None:
        """Take in all that has come."""
        while True:
            try:
                data, extra, _, sender = self.sock.recvmsg(65536, 64)
            except OSError:
                break
            if data == HELLO:
                self.answer(sender)
            else:
                self.windows.add(len(data) * (1 + self.newly_dropped(extra)), now)
        self.done = self.windows.over(now)

    def answer(self, sender: Any) -> None:
        """Tell the sender that somebody listens; it asks again when this is lost."""
        try:
            self.sock.sendto(GO, sender)
        except OSError:
            return

    def newly_dropped(self, extra: list[tuple[int, int, bytes]]) -> int:
        """Return how many datagrams the kernel has dropped since the last look."""
        for level, kind, value in extra:
            if level == socket.SOL_SOCKET and kind == SO_RXQ_OVFL:
                total = int(struct.unpack("=I", value[:4])[0])
                new, self.dropped = total - self.dropped, total
                return new
        return 0


class Sender:
    """Asks until the other side listens, then sends at its pace until the windows are over."""

    def __init__(self, row: Row, request: Row) -> None:
        self.key, self.windows, self.done, self.why = row["key"], Windows(request), False, "no answer"
        self.sock = bound(row["source"], 0, row["device"])
        self.sock.connect(endpoint(row["address"], row["port"], row["device"])[1])
        self.pace, self.data = row["mbit_s"] * 1e6 / 8, bytes(row["size"])
        self.give_up, self.ask_at = time.monotonic() + request["connect_s"], 0.0
        self.started: float | None = None
        self.sent = 0.0

    def tick(self, now: float) -> None:
        """Ask, or send what is due."""
        if self.started is None:
            self.ask(now)
        else:
            self.send(now, self.started)
            self.done = self.windows.over(now)

    def ask(self, now: float) -> None:
        """Send a hello now and then, and see whether it was answered."""
        try:
            if now >= self.ask_at:
                self.ask_at = now + HELLO_EVERY_S
                self.sock.send(HELLO)
            if self.sock.recv(16) == GO:
                self.started, self.why = now, ""
        except BlockingIOError:
            pass
        except OSError as error:
            self.why = error.strerror or str(error)
        if self.started is None and now > self.give_up:
            self.done = True

    def send(self, now: float, started: float) -> None:
        """Send up to the pace; what was missed for more than a moment stays missed, for a burst would be dropped."""
        due = self.pace * (now - started)
        self.sent = max(self.sent, due - self.pace * CATCH_UP_S)
        while self.sent < due:
            self.sent += len(self.data)
            try:
                self.sock.send(self.data)
            except OSError:
                return
            self.windows.add(len(self.data), now)


Actor = TypeVar("Actor", Receiver, Sender)


def make(kind: type[Actor], rows: list[Row], request: Row, failed: dict[str, str]) -> list[Actor]:
    """Open one actor for each row; a port that cannot be opened fails alone."""
    actors: list[Actor] = []
    for row in rows:
        try:
            actors.append(kind(row, request))
        except OSError as error:
            failed[row["key"]] = f"{row['address']}: {error}"
    return actors


class Asker:
    """Whoever asked, at the other end of standard input; where that is no open pipe or socket, nobody can be missed."""

    _GONE = select.POLLHUP | select.POLLRDHUP | select.POLLERR

    def __init__(self) -> None:
        self._poll = select.poll()
        try:
            mode = os.fstat(0).st_mode
        except OSError:
            return
        if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            self._poll.register(0, select.POLLRDHUP)
        if self.gone():
            self._poll.unregister(0)

    def gone(self) -> bool:
        """Tell whether it is."""
        return any(event & self._GONE for _, event in self._poll.poll(0))


def main() -> None:
    """Answer the request."""
    asker = Asker()
    request = json.loads(base64.b64decode(sys.argv[1]))
    failed: dict[str, str] = {}
    receivers = make(Receiver, request["serve"], request, failed)
    senders = make(Sender, request["send"], request, failed)
    actors: list[Receiver | Sender] = [*receivers, *senders]
    until = time.monotonic() + request["connect_s"] + request["warm_s"] + request["windows"] + TAIL_S + GRACE_S
    while not all(actor.done for actor in actors) and time.monotonic() < until and not asker.gone():
        for actor in actors:
            if not actor.done:
                actor.tick(time.monotonic())
        time.sleep(TICK_S)
    failed.update({sender.key: sender.why for sender in senders if sender.why})
    failed.update({receiver.key: "no flow came" for receiver in receivers if receiver.windows.first is None})
    served = {receiver.key: receiver.windows.bytes for receiver in receivers if receiver.windows.first is not None}
    offered = {sender.key: sender.windows.bytes for sender in senders}
    sys.stdout.write(json.dumps({"served": served, "offered": offered, "failed": failed}) + "\n")


if __name__ == "__main__":
    main()
