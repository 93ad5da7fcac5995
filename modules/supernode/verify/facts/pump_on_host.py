"""Runs on a host or a switch, with Debian's python3 alone: pumps TCP flows and counts what arrives in each second.

    python3 -c <this text> <request, base64 of JSON>

The request: serve [{key, address, port, device}], send [{key, source, address, port, device}], warm_s, windows,
connect_s. `device` is the port's name where the addresses are link-local, else "". The answer is one JSON line:
served {key: [bytes of each window]}, failed {key: why}.
"""

from __future__ import annotations

import base64
import json
import os
import selectors
import socket
import sys
import time
from collections.abc import Mapping
from typing import Any, TypeVar

Row = Mapping[str, Any]
RESET = b"\1\0\0\0\0\0\0\0"
CHUNK = bytes(65536)
TAIL_S = 1.0
GRACE_S = 2.0


def endpoint(address: str, port: int, device: str) -> tuple[int, Any]:
    """Return (family, socket address); a link-local address needs the port it belongs to."""
    if ":" in address:
        return socket.AF_INET6, (address, port, 0, socket.if_nametoindex(device) if device else 0)
    return socket.AF_INET, (address, port)


class Receiver:
    """Listens for one flow and counts its bytes by window, from the end of the warm-up on."""

    def __init__(self, row: Row, request: Row, selector: selectors.BaseSelector) -> None:
        self.key, self.warm_s, self.windows = row["key"], request["warm_s"], [0] * request["windows"]
        self.selector, self.done, self.why = selector, False, ""
        self.first: float | None = None
        family, address = endpoint(row["address"], row["port"], row["device"])
        self.listener = socket.socket(family, socket.SOCK_STREAM)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(address)
        self.listener.listen(1)
        self.listener.setblocking(False)
        selector.register(self.listener, selectors.EVENT_READ, self)

    def ready(self, sock: socket.socket) -> None:
        """Accept the flow, or count what it brought."""
        if sock is self.listener:
            flow, _ = sock.accept()
            flow.setblocking(False)
            self.selector.unregister(sock)
            sock.close()
            self.selector.register(flow, selectors.EVENT_READ, self)
            return
        try:
            data = sock.recv(1 << 20)
        except BlockingIOError:
            return
        except OSError as error:
            data, self.why = b"", str(error)
        if not data:
            self.selector.unregister(sock)
            sock.close()
            self.done = True
            return
        self.count(len(data), time.monotonic())

    def count(self, size: int, now: float) -> None:
        """Add to the window of this moment; what comes before or after all windows does not count."""
        if self.first is None:
            self.first = now
        window = int(now - self.first - self.warm_s) if now - self.first >= self.warm_s else -1
        if 0 <= window < len(self.windows):
            self.windows[window] += size

    def tick(self, now: float) -> None:
        """End when the last window has passed, whether or not the sender has ended."""
        if self.first is not None and now - self.first > self.warm_s + len(self.windows) + GRACE_S:
            self.done = True


class Sender:
    """Connects from one port, again and again until the other side listens, and sends until the windows are over."""

    def __init__(self, row: Row, request: Row, selector: selectors.BaseSelector) -> None:
        self.key, self.row, self.selector = row["key"], row, selector
        self.length_s = request["warm_s"] + request["windows"] + TAIL_S
        self.retry_at, self.give_up = 0.0, time.monotonic() + request["connect_s"]
        self.sock: socket.socket | None = None
        self.stop_at: float | None = None
        self.done, self.why = False, ""

    def tick(self, now: float) -> None:
        """Start or restart the connection, or end the flow."""
        if self.stop_at is not None and now > self.stop_at:
            self.end("")
        elif self.stop_at is None and now > self.give_up:
            self.end(self.why or "no answer")
        elif self.sock is None and now >= self.retry_at:
            self.connect()

    def connect(self) -> None:
        """Begin one attempt, bound to the port's own address so that the flow keeps to its rail."""
        row = self.row
        family, address = endpoint(row["address"], row["port"], row["device"])
        _, source = endpoint(row["source"], 0, row["device"])
        self.sock = socket.socket(family, socket.SOCK_STREAM)
        self.sock.setblocking(False)
        try:
            self.sock.bind(source)
            self.sock.connect(address)
        except BlockingIOError:
            pass
        except OSError as error:
            self.again(str(error))
            return
        self.selector.register(self.sock, selectors.EVENT_WRITE, self)

    def ready(self, sock: socket.socket) -> None:
        """Finish connecting, or send as much as the port takes."""
        if self.stop_at is None:
            code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                self.selector.unregister(sock)
                self.again(os.strerror(code))
                return
            self.stop_at = time.monotonic() + self.length_s
        try:
            sock.send(CHUNK)
        except BlockingIOError:
            return
        except OSError as error:
            self.end(str(error))

    def again(self, why: str) -> None:
        """Try again shortly: the other host may not have begun to listen."""
        if self.sock is not None:
            self.sock.close()
        self.sock, self.why, self.retry_at = None, why, time.monotonic() + 0.2

    def end(self, why: str) -> None:
        """Close for good; an unsent rest does not matter."""
        if self.sock is not None:
            if self.sock.fileno() in self.selector.get_map():
                self.selector.unregister(self.sock)
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            self.sock.close()
        self.sock, self.why, self.done = None, why, True


Actor = TypeVar("Actor", Receiver, Sender)


def make(
    kind: type[Actor], rows: list[Row], request: Row, selector: selectors.BaseSelector, failed: dict[str, str]
) -> list[Actor]:
    """Open one actor for each row; a port that cannot be opened fails alone."""
    actors = []
    for row in rows:
        try:
            actors.append(kind(row, request, selector))
        except OSError as error:
            failed[row["key"]] = f"{row['address']}: {error}"
    return actors


def main() -> None:
    """Answer the request."""
    request = json.loads(base64.b64decode(sys.argv[1]))
    selector = selectors.DefaultSelector()
    failed: dict[str, str] = {}
    receivers = make(Receiver, request["serve"], request, selector, failed)
    senders = make(Sender, request["send"], request, selector, failed)
    actors: list[Receiver | Sender] = [*receivers, *senders]
    until = time.monotonic() + request["connect_s"] + request["warm_s"] + request["windows"] + TAIL_S + GRACE_S
    while not all(actor.done for actor in actors) and time.monotonic() < until:
        if selector.get_map():
            for key, _ in selector.select(0.1):
                key.data.ready(key.fileobj)
        else:
            time.sleep(0.1)
        now = time.monotonic()
        for actor in actors:
            if not actor.done:
                actor.tick(now)
    failed.update({sender.key: sender.why for sender in senders if sender.why})
    served = {receiver.key: receiver.windows for receiver in receivers if receiver.first is not None}
    failed.update({r.key: r.why or "no flow came" for r in receivers if r.first is None})
    sys.stdout.write(json.dumps({"served": served, "failed": failed}) + "\n")


if __name__ == "__main__":
    main()
