"""The pump that measures a machine: many TCP flows through one forwarding namespace, each out of a shaped port.

Started by capacity as `python -m supernode.lab.pump SECONDS`, in namespaces of its own; prints Mbit/s.
"""

from __future__ import annotations

import functools
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from supernode.lab import netspace, wiring
from supernode.lab.artefacts import LABS
from supernode.units import MbitPerS

FLOWS, WORKERS, PORT = 64, 4, 9
RATE = MbitPerS(1000)  # of one port: all together more than any machine carries, so that the machine is the limit
SEGMENT = wiring.shaping(MbitPerS(10)).offload  # as slow rails have it: small packets are what costs
_BLOCK = 1 << 16


def _setup() -> Iterator[str]:
    yield f"route add unreachable {LABS} metric 9999"
    yield "netns add source"
    yield "netns add sink"
    yield f"link add name trunk mtu 9000 {SEGMENT} type veth peer name trunk0 mtu 9000 {SEGMENT} netns source"
    yield "address add 198.19.255.2/30 dev trunk"
    yield "link set trunk up"
    for flow in range(FLOWS):
        yield f"link add name p{flow} mtu 9000 {SEGMENT} type veth peer name q{flow} mtu 9000 {SEGMENT} netns sink"
        yield f"address add 198.19.{flow}.1/30 dev p{flow}"
        yield f"link set p{flow} up"


def main() -> int:
    """Set up, pump, print."""
    seconds = float(sys.argv[1])
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
    netspace.batch(_setup())
    shape = wiring.shaping(RATE).qdisc
    netspace.batch((f"qdisc replace dev p{flow} root {shape}" for flow in range(FLOWS)), program="tc")
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1", encoding="ascii")
    netspace.batch(
        ["address add 198.19.255.1/30 dev trunk0", "link set trunk0 up", "route add default via 198.19.255.2"], "source"
    )
    netspace.batch((f"address add 198.19.{flow}.2/30 dev q{flow}" for flow in range(FLOWS)), "sink")
    netspace.batch([*(f"link set q{flow} up" for flow in range(FLOWS)), "route add default via 198.19.0.1"], "sink")
    print(_pump(seconds))  # noqa: T201 - its parent reads it
    return 0


def _pump(seconds: float) -> float:
    listeners = netspace.within("sink", lambda: [socket.create_server((f"198.19.{n}.2", PORT)) for n in range(FLOWS)])
    senders = netspace.within(
        "source", lambda: [socket.create_connection((f"198.19.{n}.2", PORT), 5) for n in range(FLOWS)]
    )
    receivers = [listener.accept()[0] for listener in listeners]
    pushing = [_fork(functools.partial(_push, senders[n::WORKERS], seconds + 2))[0] for n in range(WORKERS)]
    counting = [_fork(functools.partial(_count, receivers[n::WORKERS], seconds)) for n in range(WORKERS)]
    total = sum(int(os.read(pipe, 64) or 0) for _, pipe in counting)
    for pid in [*pushing, *(pid for pid, _ in counting)]:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return total * 8 / 1e6 / seconds


def _fork(work: Callable[[], int]) -> tuple[int, int]:
    here, there = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(there, str(work()).encode())
        os._exit(0)
    os.close(there)
    return pid, here


def _push(sockets: list[socket.socket], seconds: float) -> int:
    block, end = bytes(_BLOCK), time.monotonic() + seconds
    with selectors.DefaultSelector() as ready:
        for number, each in enumerate(sockets):
            each.setblocking(False)
            ready.register(each, selectors.EVENT_WRITE, number)
        while time.monotonic() < end:
            for key, _ in ready.select(0.1):
                sockets[key.data].send(block)
    return 0


def _count(sockets: list[socket.socket], seconds: float) -> int:
    buffer, total = bytearray(_BLOCK), 0
    end = time.monotonic() + seconds
    with selectors.DefaultSelector() as ready:
        for number, each in enumerate(sockets):
            ready.register(each, selectors.EVENT_READ, number)
        while time.monotonic() < end:
            for key, _ in ready.select(0.1):
                total += sockets[key.data].recv_into(buffer)
    return total


if __name__ == "__main__":
    sys.exit(main())
