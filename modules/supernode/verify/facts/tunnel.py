"""What a gateway says of its tunnel: the last handshake, and the firewall that is in force."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from supernode.verify.facts import fib, ping
from supernode.verify.facts.raw import NotSeenError, Raw

if TYPE_CHECKING:
    from supernode.design.expectations import GatewayExpectation

HANDSHAKES, FIREWALL = "handshakes", "firewall"


@dataclass(frozen=True)
class Tunnel:
    """What was seen.

    Attributes:
        age_s: seconds since the last handshake; None when there was none.
        closed: the chain that forwards drops what no rule accepts.
        counters: packets that each named counter has counted, of those by which a rule drops: one that no rule uses
            keeps nothing back.
    """

    age_s: float | None
    closed: bool
    counters: Mapping[str, int] = field(default_factory=dict)


def commands(mine: GatewayExpectation, peer: GatewayExpectation) -> dict[str, tuple[str, ...]]:
    """Return what one gateway is asked; `latest-handshakes` shows no key but the peer's public one."""
    found: dict[str, tuple[str, ...]] = {
        HANDSHAKES: ("sudo", "-n", "wg", "show", mine.interface, "latest-handshakes"),
        FIREWALL: ("sudo", "-n", "nft", "-j", "list", "ruleset"),
        "routes": fib.COMMAND,
    }
    ways = [("tunnel", mine.inside, peer.inside, mine.mtu)]
    ways += [("wan", mine.wan, peer.public, mine.wan_mtu)] if peer.public else []
    for way, source, target, mtu in ways:
        found |= {f"ping {way} peer {size}": argv for size, argv in ping.commands(source, target, mtu)}
    return found


def parse(raw: Mapping[str, Raw]) -> Tunnel:
    """Read `wg show <interface> latest-handshakes` against the gateway's own clock, and `nft -j list ruleset`.

    Raises:
        NotSeenError: nft or the clock cannot be read; an interface that is not there had no handshake.
    """
    rules = [row for row in raw[FIREWALL].json()["nftables"] if isinstance(row, dict)]
    chains = [row["chain"] for row in rules if "chain" in row]
    dropping = {name for row in rules if "rule" in row for name in _drops_by(row["rule"].get("expr") or ())}
    named = (row["counter"] for row in rules if "counter" in row)
    counters = {row["name"]: int(row["packets"]) for row in named if row["name"] in dropping}
    closed = any(chain.get("hook") == "forward" and chain.get("policy") == "drop" for chain in chains)
    return Tunnel(_age(raw[HANDSHAKES], raw["now"]), closed, counters)


def _drops_by(statements: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the named counters of a rule that drops."""
    if not any("drop" in row for row in statements):
        return []
    return [row["counter"] for row in statements if isinstance(row.get("counter"), str)]


def _age(handshakes: Raw, now: Raw) -> float | None:
    if handshakes.rc != 0:
        if "Unable to access interface" in handshakes.err:
            return None
        raise NotSeenError(handshakes.problem)
    times = [int(line.split()[1]) for line in handshakes.out.splitlines() if len(line.split()) == 2]
    last = max(times, default=0)
    return max(0.0, float(now.must()) - last) if last else None
