"""How large a packet passes unfragmented, and to whom: pings with the don't-fragment bit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from supernode.verify.facts.raw import MISSING_PROGRAM, NotSeenError, Raw

HEADERS = 28
SMALL = 56
_COUNT = re.compile(r"(\d+) packets transmitted, (\d+) received")


@dataclass(frozen=True)
class Ping:
    """What one target answered; too_long: this machine's own port refused the size, so nothing was sent."""

    sent: int
    received: int
    too_long: bool = False
    why: str = ""

    @property
    def passed(self) -> bool:
        """At least one answer: the first packets may wait for ARP and be lost."""
        return self.received > 0


@dataclass(frozen=True)
class Sweep:
    """The three sizes to one target: a small packet, the largest that must pass, the smallest that must not."""

    small: Ping
    full: Ping
    over: Ping


def sizes(mtu: int) -> dict[str, int]:
    """Return the payload of each ping: IPv4 and ICMP headers take 28 of the MTU."""
    return {"small": SMALL, "full": mtu - HEADERS, "over": mtu - HEADERS + 1}


def commands(source: str, target: str, mtu: int) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield (size's name, argv) for one target; `-I` with an address keeps to the rail by source routing.

    Each ends with the first answer, or after its seconds: ARP alone may cost more than one, and what must not pass is
    not waited for as long.
    """
    for name, size in sizes(mtu).items():
        limit = "1" if name == "over" else "4"
        how = ("-c", "1", "-w", limit, "-i", "0.3", "-s", str(size), "-I", source)
        yield name, ("ping", "-n", "-M", "do", *how, target)


def parse(raw: Raw) -> Ping:
    """Read iputils' ping.

    Raises:
        NotSeenError: ping is not there or printed no statistics.
    """
    if raw.rc == MISSING_PROGRAM:
        raise NotSeenError("ping is not installed")
    count = _COUNT.search(raw.out)
    if count is None:
        raise NotSeenError(raw.problem)
    too_long = "message too long" in raw.err or "message too long" in raw.out.lower()
    errors = re.findall(r"From \S+.*", raw.out)
    why = errors[0] if errors else raw.err.strip().splitlines()[0] if raw.err.strip() else ""
    return Ping(int(count[1]), int(count[2]), too_long, why)
