"""An InfiniBand subnet against the design: its links, its manager, and who is joined to whom. Pure.

Nobody hears a neighbour there; one host walks the whole subnet. `spread` gives each device of the design what that walk
saw at its ports, so that cables are judged, and put right, as in any fabric.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

from supernode.catalog import infiniband
from supernode.records import Finding, Verdict
from supernode.verify.cabling import text
from supernode.verify.expected import Cable, End, SubnetWanted, Wanted
from supernode.verify.facts.device import DeviceFacts, Facts
from supernode.verify.facts.infiniband import LinkEnd, SubnetFacts
from supernode.verify.facts.lldp import Neighbour
from supernode.verify.facts.ports import Port

ACTIVE, WAITING = "Active", ("Initialize", "Armed")
HINT = "on a subnet manager's host: systemctl status supernode-opensm, ibstat, ibnetdiscover"


def walker(wanted: Wanted, facts: Facts) -> str:
    """Return the first of the managers' hosts that saw the subnet, or ""."""
    managers = wanted.subnet.managers if wanted.subnet else ()
    return next((name for name in managers if facts.of(name).subnet is not None), "")


def seen(wanted: Wanted, facts: Facts) -> SubnetFacts | None:
    """Return what the first of the managers' hosts that saw the subnet saw."""
    return facts.of(walker(wanted, facts)).subnet


def ends(wanted: Wanted, facts: Facts) -> dict[End, LinkEnd]:
    """Return what was seen of each port, under the design's names; nodes that the design does not know are left out."""
    found = seen(wanted, facts)
    if found is None or wanted.subnet is None:
        return {}
    rows = ((_place(wanted, wanted.subnet, row.node), row) for row in found.ends)
    return {place: row for place, row in rows if place is not None}


def _place(wanted: Wanted, subnet: SubnetWanted, node: tuple[str, int]) -> End | None:
    """Return the designed device and port of a node's port."""
    name, port = node
    if name in subnet.nodes:
        return subnet.nodes[name]
    if name not in wanted.switches:
        return None
    return name, next((p for p in wanted.switches[name].ports if _number(p) == port), f"p{port}")


def _number(port: str) -> int:
    digits = re.search(r"\d+$", port)
    return int(digits[0]) if digits else 0


def spread(wanted: Wanted, facts: Facts) -> Facts:
    """Return the facts with each device's neighbours and fabric ports as the walk over the subnet saw them."""
    found = ends(wanted, facts)
    if wanted.subnet is None or not found:
        return facts
    devices = dict(facts.devices)
    for name in wanted.devices():
        before = devices.get(name) or DeviceFacts(name, reached=name in wanted.switches)
        mine = {port: row for (device, port), row in found.items() if device == name}
        if name in wanted.switches and not mine:
            before = dataclasses.replace(before, reached=False, why="no port of it is in the subnet")
        devices[name] = _with(wanted, wanted.subnet, before, mine)
    return dataclasses.replace(facts, devices=devices)


def _with(wanted: Wanted, subnet: SubnetWanted, device: DeviceFacts, mine: dict[str, LinkEnd]) -> DeviceFacts:
    device = dataclasses.replace(device, unseen={k: v for k, v in device.unseen.items() if k != "neighbours"})
    if not device.reached:
        return dataclasses.replace(device, neighbours=_neighbours(wanted, subnet, mine) if mine else None)
    ports = {port: Port(port, 0, True, row.peer is not None, row.state) for port, row in mine.items()}
    return dataclasses.replace(
        device, neighbours=_neighbours(wanted, subnet, mine), ports={**(device.ports or {}), **ports}
    )


def _neighbours(wanted: Wanted, subnet: SubnetWanted, mine: dict[str, LinkEnd]) -> dict[str, tuple[Neighbour, ...]]:
    found: dict[str, tuple[Neighbour, ...]] = {}
    for port, row in mine.items():
        if row.peer is not None:
            device, far = _place(wanted, subnet, row.peer) or (row.peer[0], str(row.peer[1]))
            found[port] = (Neighbour(device, (far,)),)
    return found


def links(wanted: Wanted, facts: Facts) -> list[Finding]:
    """Every cable of an InfiniBand fabric is active, with all its lanes, at its speed."""
    if wanted.subnet is None:
        return []
    found = ends(wanted, facts)
    return [_link(cable, found) for cable in wanted.cables().values()]


def _link(cable: Cable, found: dict[End, LinkEnd]) -> Finding:
    want = f"{ACTIVE}, {infiniband.LANES}x {infiniband.speed(cable.rate)}"
    rows = {end: found[end] for end in (cable.a, cable.b) if end in found}
    joined = {end: row for end, row in rows.items() if row.peer is not None}
    if not joined:
        why = "no link" if rows else "not seen"
        return Finding("ib-links", cable.id, Verdict.UNKNOWN, want, why, hint="" if rows else HINT)
    wrong = list(dict.fromkeys(line for end, row in joined.items() for line in _faults(cable, row)))
    lines = tuple(f"{text(end)}: {_said(row)}" for end, row in joined.items())
    if not wrong:
        # Lanes and speed are what was negotiated; whether anything is carried, the state alone says.
        told = next((row for row in joined.values() if row.state), None)
        if told is None:
            return Finding("ib-links", cable.id, Verdict.UNKNOWN, want, "state not seen", evidence=lines, hint=HINT)
        return Finding("ib-links", cable.id, Verdict.PASS, want, _said(told))
    hint = "see its error counters (ibqueryerrors); clean both plugs, else replace the cable, then the port"
    if all(row.state in WAITING for row in joined.values()) and all(line.startswith("is ") for line in wrong):
        hint = "its lanes run: the manager has not brought it up. See /var/log/opensm.log on the manager's host;"
        hint += " `systemctl kill -s HUP supernode-opensm` has it look again"
    what = f"cable between {text(cable.a)} and {text(cable.b)}: {', '.join(wrong)}"
    return Finding("ib-links", cable.id, Verdict.FAIL, want, what, cables=(cable.id,), evidence=lines, hint=hint)


def _said(row: LinkEnd) -> str:
    return f"{row.state or 'state not seen'}, {row.width}x {row.speed}"


def _faults(cable: Cable, row: LinkEnd) -> Iterator[str]:
    if row.state and row.state != ACTIVE:
        yield f"is {row.state}, not {ACTIVE}"
    if row.width != infiniband.LANES:
        yield f"{row.width} of {infiniband.LANES} lanes run"
    if row.speed != infiniband.speed(cable.rate):
        yield f"runs at {row.speed}, not at {infiniband.speed(cable.rate)}"


def managers(wanted: Wanted, facts: Facts) -> list[Finding]:
    """Every designed subnet manager runs, and all obey the designed master: there is one, and it is that one."""
    if wanted.subnet is None:
        return []
    return [_manager(wanted.subnet, name, facts) for name in wanted.subnet.managers]


def _manager(subnet: SubnetWanted, name: str, facts: Facts) -> Finding:
    master, device = subnet.managers[0], facts.of(name)
    want = "runs and is master" if name == master else f"runs and obeys {master}"
    found = device.subnet
    if found is None:
        why = device.why if not device.reached else device.unseen.get("subnet", "not seen")
        return Finding("subnet-manager", name, Verdict.UNKNOWN, want, "not seen", evidence=(why,) if why else ())
    if found.service != "active":
        hint = "journalctl -u supernode-opensm; tail /var/log/opensm.log"
        what = f"its subnet manager is {found.service or 'not there'}"
        return Finding("subnet-manager", name, Verdict.FAIL, want, what, hint=hint)
    if found.manager is None:
        what = "no subnet manager answers it"
        return Finding("subnet-manager", name, Verdict.FAIL, want, what, hint="ibstat: is its port up?")
    who = _who(subnet, found)
    said = f"obeys {who}, priority {found.manager.priority}, {found.manager.state.lower()}"
    good = who == master and found.manager.state == "MASTER"
    hint = "" if good else "another one in the fabric, on a switch or a host? or was the master away: then restart it"
    return Finding("subnet-manager", name, Verdict.PASS if good else Verdict.FAIL, want, said, hint=hint)


def _who(subnet: SubnetWanted, found: SubnetFacts) -> str:
    if found.manager is None:
        return "nobody"
    node = found.owner(found.manager.guid)
    return subnet.nodes[node][0] if node in subnet.nodes else node or f"a stranger ({found.manager.guid:#018x})"
