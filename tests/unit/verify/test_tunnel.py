"""The check of a tunnel, on recorded output of the real tools, and on each thing that can be wrong alone."""

import dataclasses
import json
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from supernode.design.expectations import GatewayExpectation
from supernode.records import Finding, Verdict
from supernode.units import Milliseconds
from supernode.verify import localise, tunnel
from supernode.verify.expected import HostWanted, Wanted
from supernode.verify.facts import fib
from supernode.verify.facts import tunnel as seeing
from supernode.verify.facts.device import DeviceFacts, Facts
from supernode.verify.facts.ping import Ping, Sweep
from supernode.verify.facts.raw import NotSeenError, Raw
from supernode.verify.marks import Mark

SAMPLES = Path(__file__).with_name("samples")
WG, NFT = "wireguard-tools-1.0.20210914-handshakes", "nftables-1.0.6-ruleset"
HOME = GatewayExpectation(
    "gw-branch", "home", "wg0", "198.19.0.5", "198.19.6.2", "", 1340, 1400, ("198.19.2.0/23",), ("scans",), ()
)
BRANCH = GatewayExpectation(
    "gw-home", "branch", "wg0", "198.19.2.1", "198.19.6.10", "198.19.6.10", 1340, 1400,
    ("198.19.0.0/24",), ("scans",), ("edge-001",),
)  # fmt: skip
WANTED = Wanted(
    {"edge-001": HostWanted("b01u01", "", "", "", {})},
    {},
    Milliseconds(100),
    Mark(0.9, "contract"),
    gateways={"gw-home": HOME, "gw-branch": BRANCH},
)
ROUTE = fib.Route(IPv4Network("198.19.2.0/23"), ("wg0",))
YES, NO = Ping(1, 1), Ping(1, 0)
FRAG = Ping(1, 0, why="From 198.19.6.1 icmp_seq=1 Frag needed and DF set (mtu = 1300)")


def sample(name):
    return Raw(0, (SAMPLES / name).read_text())


def raw(handshakes="good", rules="good", now="1796092060.0"):
    names = {seeing.HANDSHAKES: f"{WG}-{handshakes}.txt", seeing.FIREWALL: f"{NFT}-{rules}.txt"}
    return {**{key: sample(name) for key, name in names.items()}, "now": Raw(0, now)}


def seen(name="gw-home", **changes):
    prefix = WANTED.gateways[name].beyond[0]
    sweeps = {("tunnel", "peer"): Sweep(YES, YES, NO)}
    if name == "gw-home":
        sweeps[("wan", "peer")] = Sweep(YES, YES, NO)
    facts = DeviceFacts(
        name,
        reached=True,
        routes=(fib.Route(IPv4Network(prefix), ("wg0",)), fib.Route(IPv4Network("0.0.0.0/0"), ("wan0",))),
        sweeps=sweeps,
        tunnel=seeing.parse(raw()),
    )
    return dataclasses.replace(facts, **changes)


def judged(**devices):
    facts = {name: seen(name) for name in WANTED.gateways} | {row.name: row for row in devices.values()}
    return {row.place: row for row in tunnel.gate(WANTED, Facts(facts))}


def test_what_the_tools_printed_on_a_gateway_that_is_well():
    found = seeing.parse(raw())
    assert found.closed
    assert 0 < found.age_s < 180
    assert {"around", "private-scans"} <= set(found.counters)


def test_what_they_printed_on_one_that_is_not():
    found = seeing.parse(raw("never", "none"))
    assert found.age_s is None
    assert not found.closed
    assert found.counters == {}


def test_a_counter_by_which_no_rule_drops_keeps_no_data_on_its_site():
    document = json.loads(sample(f"{NFT}-good.txt").out)
    rows = [row for row in document["nftables"] if row.get("rule", {}).get("chain") != "private"]
    loose = {**raw(), seeing.FIREWALL: Raw(0, json.dumps({"nftables": rows}))}
    row = judged(home=seen(tunnel=seeing.parse(loose)))["gw-home"]
    assert row.verdict is Verdict.FAIL
    assert "no rule that keeps data on its site: scans" in " ".join(row.evidence)


def test_an_interface_that_is_gone_had_no_handshake_and_a_tool_that_fails_was_not_seen():
    gone = Raw(1, "", "Unable to access interface: No such device")
    assert seeing.parse({**raw(), seeing.HANDSHAKES: gone}).age_s is None
    with pytest.raises(NotSeenError):
        seeing.parse({**raw(), seeing.HANDSHAKES: Raw(1, "", "sudo: a password is required")})


def test_no_command_shows_a_private_key():
    asked = seeing.commands(HOME, BRANCH)
    assert asked[seeing.HANDSHAKES] == ("sudo", "-n", "wg", "show", "wg0", "latest-handshakes")
    assert "ping wan peer full" in asked
    assert not [key for key in seeing.commands(BRANCH, HOME) if key.startswith("ping wan")]  # nobody reaches home


def test_a_tunnel_that_is_well_passes_both_ways():
    assert {row.verdict for row in judged().values()} == {Verdict.PASS}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sweeps": {("tunnel", "peer"): Sweep(NO, NO, NO)}}, "no answer from gw-branch through the tunnel"),
        ({"sweeps": {("tunnel", "peer"): Sweep(YES, NO, NO)}}, "packets of 1340 bytes are lost inside the tunnel"),
        ({"sweeps": {("tunnel", "peer"): Sweep(YES, YES, YES)}}, "1341 bytes pass inside the tunnel"),
        (
            {"sweeps": {("tunnel", "peer"): Sweep(YES, YES, NO), ("wan", "peer"): Sweep(YES, FRAG, NO)}},
            "the WAN loses packets of 1400 bytes (From 198.19.6.1 icmp_seq=1 Frag needed and DF set (mtu = 1300))",
        ),
        ({"tunnel": seeing.parse(raw(now="1796099999.0"))}, "the handshake is not fresh"),
        ({"tunnel": seeing.parse(raw("never"))}, "the handshake is not fresh: no handshake ever"),
        ({"tunnel": seeing.parse(raw(rules="none"))}, "its firewall forwards what no rule accepts"),
        ({"routes": (fib.Route(IPv4Network("0.0.0.0/0"), ("wan0",)),)}, "leads over wan0, not over wg0"),
        (
            {"routes": (ROUTE, fib.Route(IPv4Network("198.19.2.8/32"), ("eth0",)))},
            "the way to 198.19.2.8/32 leads over eth0, not over wg0",
        ),
    ],
)  # fmt: skip
def test_each_thing_that_is_wrong_is_said(changes, said):
    row = judged(home=seen(**changes))["gw-home"]
    assert row.verdict is Verdict.FAIL
    assert said in " ".join(row.evidence)


def test_a_gateway_that_nobody_saw_is_unknown():
    row = judged(home=DeviceFacts("gw-home", reached=False, why="timed out"))["gw-home"]
    assert (row.verdict, row.evidence) == (Verdict.UNKNOWN, ("timed out",))


def test_a_tunnel_that_carries_nothing_is_the_cause_of_all_that_lies_behind_it():
    silent = {name: seen(name, sweeps={("tunnel", "peer"): Sweep(NO, NO, NO)}) for name in WANTED.gateways}
    facts = Facts({**silent, "edge-001": DeviceFacts("edge-001", reached=False, why="timed out")})
    lost = Finding("reach", "edge-001", Verdict.FAIL, "answers by ssh", "timed out")
    rows = localise.explain(WANTED, facts, [*tunnel.gate(WANTED, facts), lost])
    assert len({row.cause for row in rows}) == 1
    assert "the tunnel between gw-branch and gw-home carries nothing" in rows[0].cause
    assert [row.verdict for row in rows] == [Verdict.FAIL, Verdict.FAIL, Verdict.UNKNOWN]
