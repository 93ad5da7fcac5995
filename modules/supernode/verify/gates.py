"""What is right and what is not: (wanted, facts) -> findings. Pure.

Each gate gives one finding for every place it is asked about.

Not seen is unknown, never missing: a gate says FAIL only for what somebody saw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from supernode.records import Finding, Verdict
from supernode.verify import cabling, collectives, cooling, gpus, rate, scheduler, subnet, tunnel, watch
from supernode.verify.expected import HostWanted, PortWanted, Wanted
from supernode.verify.facts import fib
from supernode.verify.facts.device import DeviceFacts, Facts, next_host
from supernode.verify.facts.ping import Sweep
from supernode.verify.facts.ports import Port
from supernode.verify.unseen import unseen

Gate = Callable[[Wanted, Facts], list[Finding]]


def reach(wanted: Wanted, facts: Facts) -> list[Finding]:
    """Every device answers on its management address, with the key that the engine pinned."""
    return [_reach(name, facts.of(name)) for name in wanted.asked()]


def _reach(name: str, seen: DeviceFacts) -> Finding:
    if seen.reached and "everything" not in seen.unseen:
        return Finding("reach", name, Verdict.PASS, "answers by ssh", "answers")
    why = seen.why or seen.unseen.get("everything", "no answer")
    hint = "look at its power, its boot (console, event log of its BMC) and its management cable"
    return Finding("reach", name, Verdict.FAIL, "answers by ssh", why, evidence=(why,), hint=hint)


def identity(wanted: Wanted, facts: Facts) -> list[Finding]:
    """Hosts are who machines.yml says: name, serial, UUID."""
    return [_identity(name, host, facts.of(name)) for name, host in wanted.hosts.items()]


def _identity(name: str, host: HostWanted, seen: DeviceFacts) -> Finding:
    if seen.identity is None:
        return unseen("identity", name, seen, "identity", _who(name, host.serial, host.uuid))
    pairs = [
        ("hostname", name, seen.identity.hostname),
        ("serial", host.serial, seen.identity.serial),
        ("uuid", host.uuid.lower(), seen.identity.uuid),
    ]
    wrong = [f"{what} is {found}, not {want}" for what, want, found in pairs if want and found and want != found]
    proven = [what for what, want, found in pairs[1:] if want and want == found]
    want = _who(name, host.serial, host.uuid)
    found = _who(seen.identity.hostname, seen.identity.serial, seen.identity.uuid)
    if wrong:
        hint = f"another machine stands in {host.slot}: put the right one there, or bind this one with supernode assign"
        return Finding("identity", name, Verdict.FAIL, want, found, evidence=tuple(wrong), hint=hint)
    if not proven:
        why = (
            "the machine shows neither serial nor UUID"
            if host.serial or host.uuid
            else "machines.yml has no identity for it"
        )
        return Finding("identity", name, Verdict.UNKNOWN, want, found, evidence=(why,))
    return Finding("identity", name, Verdict.PASS, want, found)


def _who(name: str, serial: str, uuid: str) -> str:
    return ", ".join(
        part for part in (name, f"serial {serial}" if serial else "", f"uuid {uuid}" if uuid else "") if part
    )


def image(wanted: Wanted, facts: Facts) -> list[Finding]:
    """Hosts run the image that the engine installed; places are those hosts whose image is known."""
    return [_image(name, host.image, facts.of(name)) for name, host in wanted.hosts.items() if host.image]


def _image(name: str, want: str, seen: DeviceFacts) -> Finding:
    found = seen.identity.image if seen.identity is not None else ""
    if not found:
        return unseen("image", name, seen, "image", want)
    if found != want:
        hint = "the machine was installed outside this run: reinstall it, or import it"
        return Finding("image", name, Verdict.FAIL, want, found, hint=hint)
    return Finding("image", name, Verdict.PASS, want, found)


def rails(wanted: Wanted, facts: Facts) -> list[Finding]:
    """Every rail of every host is up, with its MTU and its address."""
    return [
        _port("rails", name, port, row, facts.of(name))
        for name, host in wanted.hosts.items()
        for port, row in host.ports.items()
    ]


def ports(wanted: Wanted, facts: Facts) -> list[Finding]:
    """Every designed port of every switch is up, with its MTU."""
    return [
        _port("ports", name, port, row, facts.of(name))
        for name, switch in wanted.switches.items()
        for port, row in switch.ports.items()
    ]


def _port(check: str, name: str, port: str, row: PortWanted, seen: DeviceFacts) -> Finding:
    address = f", {row.address}/{row.prefix}" if row.address else ""
    want, place = "shut" if row.shut else f"up, MTU {row.mtu}{address}", f"{name}:{port}"
    if seen.ports is None:
        return unseen(check, place, seen, "ports", want)
    found = seen.ports.get(port)
    if found is None:
        return Finding(
            check, place, Verdict.FAIL, want, "no such port", evidence=(f"ports seen: {', '.join(seen.ports)}",)
        )
    wrong = list(_port_faults(row, found))
    evidence = (*wrong, *(f"{count} {what}" for what, count in found.errors.items())) if wrong else ()
    verdict = Verdict.FAIL if wrong else Verdict.PASS
    text = f"{'up' if found.up and found.carrier is not False else found.state.lower()}, MTU {found.mtu}"
    own = (row.cable,) if any(line != "no carrier" for line in wrong) else ()  # else the far end may just be off
    hint = f"its cable is {row.cable}, to {row.peer_device}:{row.peer_port}" if wrong else ""
    return Finding(check, place, verdict, want, text, cables=own, evidence=evidence, hint=hint)


def _port_faults(row: PortWanted, found: Port) -> Iterator[str]:
    if row.shut:
        yield from ("up, though its slot is quarantined",) * found.up
        return
    if not found.up:
        yield "administratively down"
    elif found.carrier is False:
        yield "no carrier"
    if found.mtu != row.mtu:
        yield f"MTU {found.mtu}, not {row.mtu}"
    if row.address and f"{row.address}/{row.prefix}" not in found.addresses:
        yield f"address {row.address}/{row.prefix} is not there"


def mtu(wanted: Wanted, facts: Facts) -> list[Finding]:
    """Judge that the MTU passes unfragmented to the leaf and the next host on the rail, and one byte more does not."""
    return [
        _mtu(wanted, facts, name, port, row) for name, host in wanted.hosts.items() for port, row in host.ports.items()
    ]


def _mtu(wanted: Wanted, facts: Facts, name: str, port: str, row: PortWanted) -> Finding:
    seen = facts.of(name)
    place, want = f"{name}:{port}", f"{row.mtu} bytes pass, {row.mtu + 1} do not"
    other = next_host(wanted, name, port)
    targets = {"leaf": f"{row.peer_device}:{row.peer_port}", **({"peer": f"{other}:{port}"} if other else {})}
    sweeps = {who: seen.sweeps.get((port, who)) for who in targets}
    wrong = {who: list(_sweep_faults(targets[who], row.mtu, sweep)) for who, sweep in sweeps.items() if sweep}
    lines = tuple(line for rows in wrong.values() for line in rows)
    if wrong.get("leaf"):
        return Finding("mtu", place, Verdict.FAIL, want, lines[0], cables=(row.cable,), evidence=lines)
    if lines and not _reaches_leaf(facts, other, port):
        why = f"{other}:{port} does not reach its own leaf"
        return Finding("mtu", place, Verdict.UNKNOWN, want, why, evidence=lines)
    if lines:
        return Finding("mtu", place, Verdict.FAIL, want, lines[0], evidence=lines)
    if any(sweep is None for sweep in sweeps.values()):
        return unseen("mtu", place, seen, "sweeps", want)
    return Finding("mtu", place, Verdict.PASS, want, f"as wanted to {' and '.join(targets.values())}")


def _reaches_leaf(facts: Facts, name: str, port: str) -> bool:
    """Tell whether a host's first hop is well: else a ping to it says nothing of the way there."""
    sweep = facts.of(name).sweeps.get((port, "leaf"))
    return sweep is not None and sweep.small.passed and sweep.full.passed


def _sweep_faults(target: str, size: int, sweep: Sweep) -> Iterator[str]:
    if not sweep.small.passed:
        yield f"no answer from {target}{f' ({sweep.small.why})' if sweep.small.why else ''}"
    elif not sweep.full.passed and sweep.full.too_long:
        yield f"the port itself refuses {size} bytes ({sweep.full.why})"
    elif not sweep.full.passed:
        yield f"small packets reach {target}, {size} bytes are lost on the way"
    if sweep.over.passed:
        yield f"{size + 1} bytes pass to {target}: the MTU is larger than declared"


def ecmp(wanted: Wanted, facts: Facts) -> list[Finding]:
    """Judge that each switch's kernel forwards to each designed prefix over as many ports as designed."""
    return [_fib(name, switch.fib, facts.of(name)) for name, switch in wanted.switches.items() if switch.fib]


def _fib(name: str, prefixes: Mapping[str, int], seen: DeviceFacts) -> Finding:
    text = f"{len(prefixes)} prefixes, {max(prefixes.values())} ways at most"
    if seen.routes is None:
        return unseen("fib", name, seen, "routes", text)
    routes = seen.routes
    narrow = {
        prefix: fib.lookup(routes, prefix) for prefix, width in prefixes.items() if width_of(routes, prefix) != width
    }
    if not narrow:
        return Finding("fib", name, Verdict.PASS, text, "as wanted")
    lines = [_fib_line(prefix, prefixes[prefix], route) for prefix, route in narrow.items()]
    hint = (
        "compare `ip route` with `vtysh -c 'show ip route'`: after a flap BGP may claim more ways than the kernel holds"
    )
    return Finding(
        "fib", name, Verdict.FAIL, text, f"{len(narrow)} prefixes otherwise", evidence=tuple(lines), hint=hint
    )


def width_of(routes: tuple[fib.Route, ...], prefix: str) -> int:
    """Return over how many ports packets to a prefix leave; 0 where no route covers it."""
    route = fib.lookup(routes, prefix)
    return route.width if route is not None else 0


def _fib_line(prefix: str, width: int, route: fib.Route | None) -> str:
    if route is None:
        return f"{prefix}: no route, {width} ways wanted"
    dead = f", dead {', '.join(route.dead)}" if route.dead else ""
    return f"{prefix}: {route.width} of {width} ways, {route.prefix} over {', '.join(route.ports) or 'nothing'}{dead}"


def clock(wanted: Wanted, facts: Facts) -> list[Finding]:
    """Every host's clock is kept, and near enough."""
    return [_clock(name, float(wanted.time_offset), facts.of(name)) for name in wanted.hosts]


def _clock(name: str, limit_ms: float, seen: DeviceFacts) -> Finding:
    want = f"within {limit_ms:g} ms"
    if seen.clock is None:
        return unseen("time", name, seen, "clock", want)
    report = seen.clock
    if not report.running:
        return Finding(
            "time", name, Verdict.FAIL, want, "chronyd does not answer", evidence=(report.why,), hint="role time_synced"
        )
    if not report.synchronised:
        hint = "its time servers do not answer: site.time_servers"
        return Finding("time", name, Verdict.FAIL, want, "not synchronised", evidence=(report.why,), hint=hint)
    found = f"{report.offset:+.3f} ms (uncertain by {report.bound:.3f} ms)"
    verdict = Verdict.PASS if abs(report.offset) <= limit_ms else Verdict.FAIL
    return Finding("time", name, verdict, want, found, evidence=(f"source {report.source}, stratum {report.stratum}",))


def _routed(gate: Gate) -> Gate:
    """Return a gate that has no place in an InfiniBand fabric: nothing there has an address or a route."""
    return lambda wanted, facts: [] if wanted.subnet is not None else gate(wanted, facts)


GATES: dict[str, Gate] = {
    "reach": reach,
    "tunnel": tunnel.gate,
    "identity": identity,
    "image": image,
    "cabling": cabling.gate,
    "ib-links": subnet.links,
    "subnet-manager": subnet.managers,
    "ports": _routed(ports),
    "rails": _routed(rails),
    "mtu": _routed(mtu),
    "rate": _routed(rate.gate),
    "fib": _routed(ecmp),
    "time": clock,
    "gpus": gpus.gate,
    "collectives": collectives.gate,
    "cooling": cooling.gate,
    "watch": watch.gate,
    "scheduler": scheduler.gate,
}
"""Every gate by its check's name, causes before consequences."""


def judge(wanted: Wanted, facts: Facts) -> list[Finding]:
    """Run every gate."""
    return [finding for gate in GATES.values() for finding in gate(wanted, facts)]
