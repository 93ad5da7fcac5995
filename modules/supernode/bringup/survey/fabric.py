"""The fabric's part of a proposal: kinds, tiers, rates, MTU; by what most cables and ports show."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import IPv4Network

from supernode import catalog
from supernode.bringup.survey.draft import Draft
from supernode.bringup.survey.observed import DeviceSeen, HostSeen, Observations, SwitchSeen
from supernode.bringup.survey.pairing import Machine
from supernode.bringup.survey.voting import vote
from supernode.catalog import ServerKind, SwitchKind
from supernode.design.model import SPINE_ASN
from supernode.units import MbitPerS, format_rate
from supernode.verify.cabling import freshest
from supernode.verify.facts.lldp import Neighbour

_FABRIC = ("fabric",)


def rail_ports(host: HostSeen, kind: str) -> dict[int, str]:
    """Return what the host calls each of its rails: by PCI address where its kind is known, else by the name railN."""
    nics = catalog.server(kind).nics if kind else ()
    found = {nic.rail: host.nics[nic.pci] for nic in nics if nic.pci in host.nics}
    named = ((re.fullmatch(r"rail(\d+)", name), name) for name in host.ports or {})
    return found or {int(match[1]): name for match, name in named if match}


def tiers(seen: Observations) -> dict[str, str]:
    """Return "leaf" or "spine" for each switch that was asked or that another device hears.

    A switch says it itself by its AS number; of one that was not asked, who hears it tells: hosts hear leaves.
    """
    asked = {s.hostname: "spine" if s.asn == SPINE_ASN else "leaf" for s in seen.switches if s.asn}
    hosts = {host.hostname for host in seen.hosts if host.hostname}
    heard: dict[str, Counter[str]] = {}
    for device in (*seen.hosts, *seen.switches):
        sort = "host" if device.hostname in hosts else "switch"
        for row in _heard(device):
            if row.device not in hosts and _switchlike(row):
                heard.setdefault(row.device, Counter())[sort] += 1
    guessed = {name: "leaf" if count["host"] else "spine" for name, count in heard.items()}
    reached = {switch.hostname: guessed.get(switch.hostname, "leaf") for switch in seen.switches if switch.hostname}
    return {**guessed, **reached, **asked}


def _switchlike(row: Neighbour) -> bool:
    """Tell a switch that was not asked from a host that was not, by what it calls its port."""
    return any(_pattern(catalog.switch(kind)).fullmatch(port) for kind in catalog.switch_kinds() for port in row.ports)


def _heard(device: DeviceSeen) -> Iterator[Neighbour]:
    """Yield whoever is heard on each port of the fabric."""
    management = device.management_port()
    for port, rows in (device.neighbours or {}).items():
        row = freshest(rows)
        if row is not None and row.device and (management is None or port != management.name):
            yield row


def propose(draft: Draft, seen: Observations, machines: Iterable[Machine]) -> None:
    """Put the part `fabric` into a draft, all but what only arithmetic tells (`lanes`)."""
    listed = list(machines)
    names = tiers(seen)
    how = "one leaf for each rail, as most hosts hear them" if _rail_optimised(listed) else "nothing else is known"
    draft.see((*_FABRIC, "family"), "rail-optimised", how)
    draft.keep((*_FABRIC, "transport"), "which transport runs on the rails does not show on them", "roce-v2")
    for tier in ("leaf", "spine"):
        rows = [switch for switch in seen.switches if names.get(switch.hostname) == tier and not switch.why]
        _kind(draft, tier, rows)
    spines = sum(tier == "spine" for tier in names.values())
    if spines:
        draft.see((*_FABRIC, "spines"), spines, "switches that only switches hear, or of the spines' AS")
    else:
        draft.keep((*_FABRIC, "spines"), "no spine was seen", 1)
    draft.keep((*_FABRIC, "racks"), "a switch does not say in which rack it stands")
    _rates(draft, seen, listed)
    draft.elect((*_FABRIC, "mtu"), vote(_mtus(listed)), "no rail was seen", 9000)
    draft.keep((*_FABRIC, "oversubscription"), "a policy; the uplinks that are there agree with it", 1.0)
    draft.keep((*_FABRIC, "unit"), "a policy; the prefixes of the leaves agree with it", None)


def _rail_optimised(machines: list[Machine]) -> bool:
    """Tell whether most hosts hear each of their rails from another switch."""
    rows = [machine.host for machine in machines if machine.host is not None]
    apart = [len(names) == len(set(names)) for host in rows if (names := [row.device for row in _heard(host)])]
    return 2 * sum(apart) > len(apart)


def _kind(draft: Draft, tier: str, switches: list[SwitchSeen]) -> None:
    """Find the kind of a tier: what the switches call themselves, else the one kind whose ports fit them all."""
    found = vote((switch.hostname, kind) for switch in switches if (kind := switch_kind(switch)))
    if found is not None:
        draft.elect((*_FABRIC, tier), found, "")
        return
    known = (catalog.switch(name) for name in catalog.switch_kinds())
    fitting = [k.name for k in known if switches and all(_fits(k, s) for s in switches)]
    written = draft.known((*_FABRIC, tier))
    why = f"no {tier} switch was asked"
    if switches:
        why = (
            f"the {tier} switches do not say their model; by their ports: {', '.join(fitting) or 'none that is known'}"
        )
    if len(fitting) == 1 and written is None:
        draft.see((*_FABRIC, tier), fitting[0], "the only kind with these ports")
    else:
        draft.keep((*_FABRIC, tier), why)


def switch_kind(switch: SwitchSeen) -> str:
    """Return the kind that a switch's labels name, "" where they name none: its board may be another maker's."""
    known = [catalog.switch(name) for name in catalog.switch_kinds()]
    return next((k.name for k in known if (switch.vendor, switch.model) == (k.vendor, k.model)), "")


def _pattern(kind: SwitchKind) -> re.Pattern[str]:
    """Return what the names of a kind's ports match, with the number of the socket or its cage."""
    return re.compile(re.sub(r"\\{(?:n|cage)\\}", r"(\\d+)", re.escape(kind.port_pattern)) + r"(?:s\d+)?")


def _fits(kind: SwitchKind, switch: SwitchSeen) -> bool:
    matches = [_pattern(kind).fullmatch(name) for name in switch.neighbours or {}]
    numbers = [int(match[1]) for match in matches if match]
    return bool(numbers) and all(kind.first_port <= n < kind.first_port + kind.ports for n in numbers)


def _rates(draft: Draft, seen: Observations, machines: list[Machine]) -> None:
    paths = {name: (*_FABRIC, "rates", name) for name in ("rail", "uplink")}
    rails = vote(_rail_rates(machines))
    if rails is not None:
        draft.elect(paths["rail"], rails, "", write=format_rate)
    else:
        rates = {nic.rate for machine in machines if machine.kind for nic in catalog.server(machine.kind).nics}
        default = format_rate(rates.pop()) if len(rates) == 1 else None
        draft.keep(paths["rail"], "no rail port reports its speed; that of its kind's is the default", default)
    uplinks = vote(_uplink_rates(seen))
    if uplinks is not None:
        draft.elect(paths["uplink"], uplinks, "", write=format_rate)
    else:
        draft.keep(paths["uplink"], "no uplink port reports its speed")


def _rail_rates(machines: list[Machine]) -> Iterator[tuple[str, MbitPerS]]:
    for machine in machines:
        if machine.host is not None:
            rates = machine.host.rates()
            for port in rail_ports(machine.host, machine.kind).values():
                if port in rates:
                    yield f"{machine.place}:{port}", rates[port]


def _uplink_rates(seen: Observations) -> Iterator[tuple[str, MbitPerS]]:
    switches = {switch.hostname for switch in seen.switches}
    for switch in seen.switches:
        for port, rows in (switch.neighbours or {}).items():
            row, mine = freshest(rows), (switch.ports or {}).get(port)
            if row is not None and row.device in switches and mine is not None and mine.hardware and mine.speed:
                yield f"{switch.hostname}:{port}", mine.speed


def _mtus(machines: list[Machine]) -> Iterator[tuple[str, int]]:
    for machine in machines:
        if machine.host is not None:
            ports = machine.host.ports or {}
            for name in rail_ports(machine.host, machine.kind).values():
                if name in ports:
                    yield f"{machine.place}:{name}", ports[name].mtu


def lanes(seen: Observations) -> int:
    """Return how many parallel cables most pairs of a leaf and a spine have; 0 where none was heard."""
    names = tiers(seen)
    counted: Counter[tuple[str, str]] = Counter()
    for switch in seen.switches:
        if names.get(switch.hostname) == "leaf":
            counted.update((switch.hostname, r.device) for r in _heard(switch) if names.get(r.device) == "spine")
    found = vote((f"{leaf} - {spine}", count) for (leaf, spine), count in counted.items())
    return found.value if found is not None else 0


def stride(seen: Observations) -> int:
    """Return how many addresses the prefix that most leaves announce holds; 0 where none announces one."""
    prefixes = ((s.hostname, IPv4Network(p)) for s in seen.switches for p in s.announced if not p.endswith("/32"))
    found = vote((name, network.num_addresses) for name, network in prefixes)
    return found.value if found is not None else 0


def gpus_differ(machines: Iterable[Machine], kinds: Mapping[str, ServerKind]) -> Iterator[tuple[str, int, int]]:
    """Yield (place, GPUs that its controller lists, GPUs of its kind) where they differ."""
    for machine in machines:
        if machine.controller is not None and machine.kind and machine.controller.gpus is not None:
            wanted = kinds[machine.kind].gpus
            if machine.controller.gpus != wanted:
                yield machine.place, machine.controller.gpus, wanted
