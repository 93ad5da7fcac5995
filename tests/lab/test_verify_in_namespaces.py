"""The checks against the real tools: a small fabric of namespaces with real veth cables, lldpd, ping and kernel tables.

Faults go below the programs that observe them (cables, ports, shapers), and the checks must name them.
"""

from __future__ import annotations

import ipaddress
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from supernode.records import Finding, Verdict
from supernode.verify import expected, gates, localise
from supernode.verify import gather as gathering
from supernode.verify.facts import flows

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "verify"))
from world import expectations

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root")

PREFIX = "vfy-"
SEEN_HERE = {"reach", "cabling", "ports", "rails", "mtu", "rate", "fib"}


def sh(line: str, check: bool = True) -> str:
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 or not check, f"{line}: {done.stderr}"
    return done.stdout


class Fabric:
    """Three hosts with two rails, two leaves, two spines, as namespaces; `plug` and `unplug` make and unmake ports."""

    def __init__(self) -> None:
        self.wanted = expected.read(expectations(hosts=3, rails=2, spines=2))
        self.daemons: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, scratch: Path) -> None:
        sh("ip route replace unreachable 198.18.0.0/15 metric 9999")
        for name in self.wanted.devices():
            sh(f"ip netns add {PREFIX}{name}; ip -n {PREFIX}{name} link set lo up")
            sh(f"ip netns exec {PREFIX}{name} sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0")
        for cable in self.wanted.cables().values():
            self.plug(cable.a, cable.b)
        settings = "configure lldp portidsubtype ifname\\nconfigure lldp tx-interval 1\\n"
        for name in self.wanted.devices():
            inner = f"hostname {name}; mount -t tmpfs none /run; mkdir /run/lldpd; "
            inner += f"printf '{settings}' >/run/lldpd.conf; exec lldpd -d -O /run/lldpd.conf"
            argv = ["ip", "netns", "exec", PREFIX + name, "unshare", "-m", "-u", "sh", "-c", inner]
            log = (scratch / f"{name}.log").open("wb")
            self.daemons[name] = subprocess.Popen(argv, stdout=log, stderr=log, start_new_session=True)
        self.routes()

    def stop(self) -> None:
        for daemon in self.daemons.values():
            os.killpg(daemon.pid, signal.SIGTERM)
            daemon.wait(10)
        for name in self.wanted.devices():
            sh(f"ip netns del {PREFIX}{name}", check=False)

    def plug(self, one: expected.End, two: expected.End) -> None:
        """Join two ports by a veth pair, each with what the design gives to that port, shaped on a switch's side."""
        (d1, p1), (d2, p2) = one, two
        sh(f"ip -n {PREFIX}{d1} link add {p1} mtu 9000 type veth peer name {p2} mtu 9000 netns {PREFIX}{d2}")
        for end in (one, two):
            self._dress(end)

    def _dress(self, end: expected.End) -> None:
        device, port = end
        row = self.wanted.port(end)
        assert row is not None
        on = f"-n {PREFIX}{device}"
        sh(f"ip {on} link set {port} up")
        if device in self.wanted.switches:
            self.shape(end, float(row.rate))
            far = self.wanted.port((row.peer_device, row.peer_port))
            if far is not None and far.peer_address:
                sh(f"ip {on} addr add {far.peer_address}/31 dev {port}")
        else:
            table = 100 + int(port.removeprefix("rail"))
            sh(f"ip {on} addr add {row.address}/31 dev {port}")
            sh(f"ip {on} route replace default via {row.peer_address} table {table}")
            sh(f"ip {on} rule add from {row.address} lookup {table}")

    def shape(self, end: expected.End, mbit: float) -> None:
        sh(f"tc -n {PREFIX}{end[0]} qdisc replace dev {end[1]} root tbf rate {mbit}mbit burst 38kb limit 2mb")

    def unplug(self, end: expected.End) -> None:
        sh(f"ip -n {PREFIX}{end[0]} link del {end[1]}")

    def routes(self) -> None:
        """Give switches what BGP would: every other leaf's prefix over all their uplinks."""
        for name, switch in self.wanted.switches.items():
            for prefix, width in switch.fib.items():
                owner = f"su01-leaf{int(ipaddress.IPv4Network(prefix).network_address.packed[2]) - 8}"
                ups = [
                    p
                    for p, row in switch.ports.items()
                    if row.kind == "uplink" and (width > 1 or row.peer_device == owner)
                ]
                ways = " ".join(f"nexthop via inet6 fe80::1 dev {port}" for port in ups)
                sh(f"ip -n {PREFIX}{name} route replace {prefix} proto bgp {ways}")

    def connect(self, name: str) -> gathering.Run:
        pid = self.daemons[name].pid

        def run(command: str) -> str:
            argv = ["nsenter", "-t", str(pid), "-m", "-u", "-n", "sh", "-c", command]
            return subprocess.run(argv, capture_output=True, text=True, timeout=120).stdout

        return run

    def findings(self) -> list[Finding]:
        facts = gathering.gather(self.wanted, self.connect, lambda _event: None, patience_s=8)
        rows = localise.explain(self.wanted, facts, gates.judge(self.wanted, facts))
        return [row for row in rows if row.check in SEEN_HERE]

    def causes(self) -> dict[str, list[Finding]]:
        found: dict[str, list[Finding]] = {}
        for row in self.findings():
            if row.verdict is not Verdict.PASS:
                found.setdefault(row.cause, []).append(row)
        return found

    def cable(self, end: expected.End) -> str:
        row = self.wanted.port(end)
        assert row is not None
        return row.cable


@pytest.fixture(scope="module")
def fabric(tmp_path_factory):
    made = Fabric()
    patch = pytest.MonkeyPatch()
    patch.setattr(flows, "WINDOWS", 3)
    try:
        made.start(tmp_path_factory.mktemp("fabric"))
        time.sleep(2)
        yield made
    finally:
        patch.undo()
        made.stop()


def only(fabric: Fabric) -> tuple[str, list[Finding]]:
    found = fabric.causes()
    assert len(found) == 1, {
        cause: [(r.check, r.place, r.found, r.evidence) for r in rows] for cause, rows in found.items()
    }
    return next(iter(found.items()))


@pytest.mark.core
def test_a_healthy_fabric_is_seen_as_healthy(fabric):
    rows = fabric.findings()
    bad = [(r.check, r.place, r.found, r.evidence) for r in rows if r.verdict is not Verdict.PASS]
    assert not bad
    assert {row.check for row in rows} == SEEN_HERE


@pytest.mark.core
def test_exchanged_cables_are_named_at_both_plugs(fabric):
    one, two = ("su01-leaf0", "swp2"), ("su01-leaf1", "swp2")
    hosts = ("gpu-002", "rail0"), ("gpu-002", "rail1")
    for end in hosts:
        fabric.unplug(end)
    fabric.plug(hosts[0], two)
    fabric.plug(hosts[1], one)
    time.sleep(2)
    try:
        cause, rows = only(fabric)
    finally:
        for end in hosts:
            fabric.unplug(end)
        fabric.plug(hosts[0], one)
        fabric.plug(hosts[1], two)
        time.sleep(6)  # until the former neighbours have aged out
    first, second = (fabric.cable(end) for end in hosts)
    ends = f"{first} (from gpu-002:rail0) and {second} (from gpu-002:rail1)"
    assert cause == f"cables {ends} are exchanged at su01-leaf0:swp2 and su01-leaf1:swp2"
    assert rows[0].cables == (first, second)


@pytest.mark.core
def test_a_slow_cable_is_named(fabric):
    fabric.shape(("su01-leaf1", "swp3"), 4)
    try:
        cause, _ = only(fabric)
    finally:
        fabric.shape(("su01-leaf1", "swp3"), 10)
    cable = fabric.cable(("gpu-003", "rail1"))
    before, _, rate = cause.partition(" is slow: ")
    assert before == f"cable {cable} between gpu-003:rail1 and su01-leaf1:swp3"
    assert 3.7 < float(rate.split()[0]) < 4.2, rate
    assert rate.endswith("of 10 Mbit/s towards gpu-003:rail1")


@pytest.mark.operations
def test_a_missing_cable_and_a_small_mtu_are_two_causes(fabric):
    fabric.unplug(("su01-leaf0", "swp49"))
    sh(f"ip -n {PREFIX}su01-leaf1 link set swp1 mtu 1500")
    try:
        found = fabric.causes()
    finally:
        sh(f"ip -n {PREFIX}su01-leaf1 link set swp1 mtu 9000")
        fabric.plug(("su01-leaf0", "swp49"), ("spine01", "swp1"))
        fabric.routes()
    missing = fabric.cable(("su01-leaf0", "swp49"))
    assert sorted(found) == [
        f"cable {missing} between su01-leaf0:swp49 and spine01:swp1 is missing, unplugged or broken",
        "su01-leaf1:swp1: MTU 1500, not 9000",
    ]
    assert ("fib", "su01-leaf0") in {(r.check, r.place) for rows in found.values() for r in rows}
