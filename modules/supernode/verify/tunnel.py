"""The tunnel between two sites: fresh, carrying what it was designed for in both directions, and the only way."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network
from typing import TYPE_CHECKING

from supernode.records import Finding, Verdict
from supernode.verify.expected import Wanted
from supernode.verify.facts import fib
from supernode.verify.facts.device import DeviceFacts, Facts
from supernode.verify.facts.ping import Ping

if TYPE_CHECKING:
    from supernode.design.expectations import GatewayExpectation

FRESH_S = 180  # WireGuard sends nothing by an older handshake (https://www.wireguard.com/protocol/)
CHECK = "tunnel"


def gate(wanted: Wanted, facts: Facts) -> list[Finding]:
    """Judge each gateway's direction: handshake, packet sizes inside and on the WAN, ways, firewall."""
    return [_gateway(name, row, facts.of(name)) for name, row in wanted.gateways.items()]


def _gateway(name: str, row: GatewayExpectation, seen: DeviceFacts) -> Finding:
    want = f"{row.mtu} bytes to {row.peer} inside the tunnel, {row.wan_mtu} on the WAN, no other way"
    if seen.tunnel is None or not seen.sweeps:
        why = seen.why if not seen.reached else "; ".join(f"{fact}: {text}" for fact, text in seen.unseen.items())
        return Finding(CHECK, name, Verdict.UNKNOWN, want, "not seen", evidence=(why,) if why else ())
    lines = (*_carries(row, seen), *_ways(row, seen), *_firewall(row, seen))
    if lines:
        return Finding(CHECK, name, Verdict.FAIL, want, lines[0], evidence=lines, hint=_hint(row, seen))
    return Finding(CHECK, name, Verdict.PASS, want, f"as wanted, handshake {seen.tunnel.age_s or 0:.0f} s ago")


def silent(seen: DeviceFacts) -> bool:
    """Tell whether not even a small packet comes back through the tunnel."""
    sweep = seen.sweeps.get(("tunnel", "peer"))
    return sweep is not None and not sweep.small.passed


def narrow(seen: DeviceFacts) -> bool:
    """Tell whether the WAN carries small packets and loses those of the declared size."""
    sweep = seen.sweeps.get(("wan", "peer"))
    return sweep is not None and sweep.small.passed and not sweep.full.passed


def _carries(row: GatewayExpectation, seen: DeviceFacts) -> Iterator[str]:
    tunnel, wan = seen.sweeps.get(("tunnel", "peer")), seen.sweeps.get(("wan", "peer"))
    age = seen.tunnel.age_s if seen.tunnel else None
    last = f"last handshake {age:.0f} s ago" if age is not None else "no handshake ever"
    if silent(seen):
        yield f"no answer from {row.peer} through the tunnel, {last}"
    elif age is None or age > FRESH_S:
        yield f"the handshake is not fresh: {last}"
    if wan is not None and not wan.small.passed:
        yield f"no answer from {row.peer} on the WAN"
    if narrow(seen) and wan is not None:
        # Said before what is inside: there a router's or the gateway's own fragments may hide it.
        yield f"the WAN loses packets of {row.wan_mtu} bytes{_why(wan.full)}"
    if tunnel is not None and tunnel.small.passed and not tunnel.full.passed:
        yield f"packets of {row.mtu} bytes are lost inside the tunnel{_why(tunnel.full)}"
    if tunnel is not None and tunnel.over.passed:
        yield f"{row.mtu + 1} bytes pass inside the tunnel: its MTU is larger than designed"


def _why(ping: Ping) -> str:
    return f" ({ping.why})" if ping.why else ""


def _ways(row: GatewayExpectation, seen: DeviceFacts) -> Iterator[str]:
    """Look at the kernel's table: each prefix of the other site, and each part of one, leads into the tunnel."""
    if seen.routes is None:
        yield f"its routes were not seen ({seen.unseen.get('routes', '')})"
        return
    for prefix in row.beyond:
        way = fib.lookup(seen.routes, prefix)
        parts = [route for route in seen.routes if route.prefix.subnet_of(IPv4Network(prefix))]
        for route in parts if way in parts else [*parts, way]:
            ports = route.ports if route is not None else ()
            if set(ports) != {row.interface}:
                what = route.prefix if route is not None else prefix
                yield f"the way to {what} leads over {', '.join(ports) or 'nothing'}, not over {row.interface}"


def _firewall(row: GatewayExpectation, seen: DeviceFacts) -> Iterator[str]:
    tunnel = seen.tunnel
    if tunnel is None:
        return
    if not tunnel.closed:
        yield "its firewall forwards what no rule accepts"
    missing = [name for name in row.private if f"private-{name}" not in tunnel.counters]
    if missing:
        yield f"its firewall has no rule that keeps data on its site: {', '.join(missing)}"


def _hint(row: GatewayExpectation, seen: DeviceFacts) -> str:
    wan = seen.sweeps.get(("wan", "peer"))
    if silent(seen) and wan is not None and wan.small.passed:
        return f"{row.peer} answers on the WAN: does the provider let the tunnel's UDP through?"
    if narrow(seen):
        return "set vpn.wan_mtu to what the way between the gateways carries, or have the provider mend it"
    return f"`pulumi up` puts tunnel, routes and firewall of both gateways right; the WAN between them is {row.site}'s"
