"""A small fabric whose physical state a test bends, and the facts that its machines would then show.

The design is one thing, the plugs are another: `links` says what is really joined. Facts are made from the plugs alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from supernode.design.expectations import Expectations, HostExpectation, HostPort, SwitchExpectation, SwitchPort
from supernode.design.observers import (
    CoolingExpectation,
    CoolingUnitExpectation,
    TargetExpectation,
    WatchExpectation,
)
from supernode.units import MbitPerS, Milliseconds
from supernode.verify import expected, gather
from supernode.verify.expected import End
from supernode.verify.facts import clock, fib, flows, identity, lldp, ping, ports, scraped
from supernode.verify.facts.device import DeviceFacts, Facts, next_host

MTU, RAIL, UPLINK = 9000, MbitPerS(10), MbitPerS(20)


def expectations(hosts: int = 4, rails: int = 4, spines: int = 2) -> Expectations:
    """One scalable unit: host i is in port i of each leaf."""
    names = [f"gpu-{i:03d}" for i in range(1, hosts + 1)]
    leaves = [f"su01-leaf{r}" for r in range(rails)]
    spine_names = [f"spine{s:02d}" for s in range(1, spines + 1)]
    host_rows, switch_ports, cable = {}, {n: {} for n in (*leaves, *spine_names)}, 0
    for i, name in enumerate(names, 1):
        rows = {}
        for r, leaf in enumerate(leaves):
            cable += 1
            mine, theirs = f"198.18.{8 + r}.{2 * i + 1}", f"198.18.{8 + r}.{2 * i}"
            rows[f"rail{r}"] = HostPort(mine, 31, MTU, RAIL, leaf, f"swp{i}", theirs, f"C{cable:05d}")
            switch_ports[leaf][f"swp{i}"] = SwitchPort(name, f"rail{r}", MTU, RAIL, f"C{cable:05d}", "rail")
        host_rows[name] = HostExpectation(
            f"r01u{2 * i:02d}", f"SN{i:04d}", f"00000000-0000-4000-8000-{i:012d}", "f" * 64, rows
        )
    for r, leaf in enumerate(leaves):
        for s, spine in enumerate(spine_names):
            cable += 1
            up, down = f"swp{max(49, hosts + 1) + s}", f"swp{r + 1}"
            switch_ports[leaf][up] = SwitchPort(spine, down, MTU, UPLINK, f"C{cable:05d}", "uplink")
            switch_ports[spine][down] = SwitchPort(leaf, up, MTU, UPLINK, f"C{cable:05d}", "uplink")
    switches = {}
    for name, rows in switch_ports.items():
        others = {
            f"198.18.{8 + r}.0/24": spines if name in leaves else 1 for r, leaf in enumerate(leaves) if leaf != name
        }
        switches[name] = SwitchExpectation(rows, others)
    observers = {"cooling": cooling(names[-1]), "watch": watch(names)}
    return Expectations(host_rows, switches, Milliseconds(100), 0.9, **observers)


def cooling(host: str) -> CoolingExpectation:
    signals = {"secondary_flow_cubic_meters_per_second": (0.0, 0.1), "heat_removed_watts": (0.0, 5e6)}
    unit = CoolingUnitExpectation(("r01",), 2.0, signals, 0.0005)
    return CoolingExpectation(host, "http://198.18.0.14:9861/metrics", {"cdu1": unit})


def watch(names: list[str]) -> WatchExpectation:
    targets = tuple(TargetExpectation("node", f"198.18.0.{11 + n}:9100", name) for n, name in enumerate(names))
    return WatchExpectation(names[-1], "http://198.18.0.14:9090", targets, ("TargetDown",), "198.18.0.14:9093")


def cooling_page(detector: str = "ok", state: str = "fresh") -> scraped.Metrics:
    """What the agent serves of the one unit."""
    cdu, prefix = {"cdu": "cdu1"}, "supernode_cooling_"
    rows = [
        ("unit_info", cdu, 1.0),
        *(("unit_state", {**cdu, "state": each}, float(each == state)) for each in ("fresh", "frozen", "silent")),
        ("last_success_timestamp_seconds", cdu, 1000.0),
        ("leak_detector_state", {**cdu, "detector": "tray", "state": detector}, 1.0),
        ("flow_cubic_meters_per_second", {**cdu, "loop": "secondary"}, 0.001),
        ("heat_removed_watts", cdu, 40000.0),
    ]
    return scraped.Metrics(1001.0, tuple(scraped.Sample(prefix + name, labels, value) for name, labels, value in rows))


@dataclass
class World:
    """The plugs, and what else can be wrong."""

    expectations: Expectations = field(default_factory=expectations)
    links: dict[End, End] = field(default_factory=dict)
    off: set[str] = field(default_factory=set)
    mute: set[str] = field(default_factory=set)
    mtus: dict[End, int] = field(default_factory=dict)
    slow: dict[tuple[str, str], float] = field(default_factory=dict)
    identities: dict[str, identity.Identity] = field(default_factory=dict)
    clocks: dict[str, clock.Clock] = field(default_factory=dict)
    fib_missing: set[tuple[str, str]] = field(default_factory=set)
    stale: dict[End, End] = field(default_factory=dict)
    cooling: scraped.Metrics = field(default_factory=cooling_page)
    unscraped: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.wanted = expected.read(self.expectations)
        if not self.links:
            for cable in self.wanted.cables().values():
                self.join(cable.a, cable.b)

    def join(self, one: End, two: End) -> None:
        """Put a cable between two ports."""
        self.links[one], self.links[two] = two, one

    def pull(self, end: End) -> End:
        """Take a cable away; return where its other plug was."""
        other = self.links.pop(end)
        del self.links[other]
        return other

    def exchange(self, one: End, two: End) -> None:
        """Exchange the plugs in two ports."""
        first, second = self.pull(one), self.pull(two)
        self.join(first, two)
        self.join(second, one)

    def cable(self, end: End) -> str:
        """The designed cable of an end."""
        row = self.wanted.port(end)
        assert row is not None
        return row.cable

    # what the machines show

    def facts(self) -> Facts:
        """Ask everyone."""
        devices = {name: self._device(name) for name in self.wanted.devices()}
        return Facts(devices, tuple(self._flows(devices)))

    def _device(self, name: str) -> DeviceFacts:
        if name in self.off:
            return DeviceFacts(name, reached=False, why="timed out")
        host = self.wanted.hosts.get(name)
        mine = {port for device, port in self.links if device == name}
        rows = host.ports if host else self.wanted.switches[name].ports
        seen = {port: self._port(name, port) for port in sorted(mine | set(rows))}
        heard = {p: (self._neighbour(n),) for p in seen if (n := self._heard(name, p)) and n[0] not in self.mute}
        who = self.identities.get(name) or (
            identity.Identity(name, host.serial, host.uuid, host.image) if host else identity.Identity(name)
        )
        return DeviceFacts(
            name,
            reached=True,
            identity=who,
            ports=seen,
            neighbours=None if name in self.mute else heard,
            clock=self.clocks.get(
                name, clock.Clock(True, True, "198.18.0.1", 3, Milliseconds(0.02), Milliseconds(0.1))
            ),
            routes=None if host else tuple(self._routes(name)),
            sweeps=dict(self._sweeps(name)) if host else {},
            cooling=self.cooling if self.wanted.cooling and name == self.wanted.cooling.host else None,
            watch=self._watched() if self.wanted.watch and name == self.wanted.watch.host else None,
            unseen={"neighbours": "unable to connect to socket"} if name in self.mute else {},
        )

    def _watched(self) -> scraped.Watched:
        down = self.off | self.unscraped
        rows = [(row, "down" if row.host in down else "up") for row in self.wanted.watch.targets]
        targets = tuple(scraped.Scraping(row.job, row.address, row.host, health, "refused") for row, health in rows)
        return scraped.Watched(targets, {"TargetDown": ""}, ("198.18.0.14:9093",))

    def _live(self, name: str, port: str) -> End | None:
        far = self.links.get((name, port))
        return None if far is None or far[0] in self.off or name in self.off else far

    def _heard(self, name: str, port: str) -> End | None:
        return self.stale.get((name, port)) or self._live(name, port)

    def _neighbour(self, end: End) -> lldp.Neighbour:
        return lldp.Neighbour(end[0], (end[1],), "0 day, 00:00:10")

    def _port(self, name: str, port: str) -> ports.Port:
        row = self.wanted.port((name, port))
        addresses = (f"{row.address}/{row.prefix}",) if row and row.address else ()
        mtu, carrier = self.mtus.get((name, port), MTU), self._live(name, port) is not None
        return ports.Port(port, mtu, True, carrier, "UP" if carrier else "DOWN", addresses, f"fe80::{name}:{port}")

    def _answers(self, one: End, two: End) -> bool:
        """Two ends of one /31 talk when a plug really joins them."""
        return self._live(*one) == two

    def _sweep(self, path: list[End], *, answers: bool) -> ping.Sweep:
        least = min(self.mtus.get(end, MTU) for end in path)
        local = self.mtus.get(path[0], MTU)
        small = ping.Ping(2, 2 if answers else 0)
        full = ping.Ping(2, 2 if answers and least >= MTU else 0, too_long=local < MTU)
        return ping.Sweep(small, full, ping.Ping(2, 2 if answers and least > MTU else 0, too_long=local <= MTU))

    def _sweeps(self, name: str):
        for port, row in self.wanted.hosts[name].ports.items():
            near, leaf = (name, port), (row.peer_device, row.peer_port)
            joined = self._answers(near, leaf)
            yield (port, "leaf"), self._sweep([near, leaf], answers=joined)
            other = next_host(self.wanted, name, port)
            far = self.wanted.hosts[other].ports[port]
            beyond = [(far.peer_device, far.peer_port), (other, port)]
            reached = joined and self._answers(beyond[1], beyond[0])
            yield (port, "peer"), self._sweep([near, leaf, *beyond], answers=reached)

    def _routes(self, name: str):
        switch = self.wanted.switches[name]
        for prefix, width in switch.fib.items():
            owner = f"su01-leaf{int(prefix.split('.')[2]) - 8}"
            ways = [
                port
                for port, row in switch.ports.items()
                if row.kind == "uplink"
                and (width > 1 or row.peer_device == owner)
                and self._answers((name, port), (row.peer_device, row.peer_port))
                and (name, port) not in self.fib_missing
                and self._spine_reaches(row.peer_device, owner)
            ]
            if ways:
                import ipaddress

                yield fib.Route(ipaddress.IPv4Network(prefix), tuple(ways), (), "bgp")

    def _spine_reaches(self, device: str, owner: str) -> bool:
        if device == owner:
            return True
        rows = self.wanted.switches[device].ports
        return any(
            row.peer_device == owner and self._answers((device, port), (owner, row.peer_port))
            for port, row in rows.items()
        )

    def _flows(self, devices: dict[str, DeviceFacts]):
        answering = gather.able(self.wanted, devices)
        switch_ports = {name: devices[name].ports or {} for name in self.wanted.switches if name not in self.off}
        for step in (1, -1):
            plan = flows.rail_flows(self.wanted, answering, step)
            plan += flows.uplink_flows(self.wanted.cables().values(), switch_ports, step)
            yield from (self._pumped(flow) for flow in plan)

    def _pumped(self, flow: flows.Flow) -> flows.Measured:
        cables = self.wanted.cables()
        crossed = [cables[cable] for cable, _ in flow.cables]
        if any(self._live(*c.a) != c.b for c in crossed):
            return flows.Measured(flow, None, "no answer")
        return flows.Measured(flow, MbitPerS(min([flow.rate * 0.97, *(self.slow.get(h, 1e9) for h in flow.cables)])))
