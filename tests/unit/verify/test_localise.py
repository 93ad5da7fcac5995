"""Faults go into the plugs, the machines' facts follow, and the checks must name the one cause."""

import dataclasses

import pytest
from world import World, expectations

from supernode.records import Finding, Verdict
from supernode.units import Milliseconds
from supernode.verify import gates, localise
from supernode.verify.facts.clock import Clock
from supernode.verify.facts.identity import Identity


def judge(world: World) -> list[Finding]:
    facts = world.facts()
    return localise.explain(world.wanted, facts, gates.judge(world.wanted, facts))


def causes(world: World) -> dict[str, list[Finding]]:
    found: dict[str, list[Finding]] = {}
    for row in judge(world):
        if row.verdict is not Verdict.PASS:
            found.setdefault(row.cause, []).append(row)
    return found


def only(world: World) -> tuple[str, list[Finding]]:
    found = causes(world)
    assert len(found) == 1, {cause: [(r.check, r.place) for r in rows] for cause, rows in found.items()}
    return next(iter(found.items()))


def test_a_healthy_fabric_passes_every_check_at_every_place(world):
    rows = judge(world)
    assert {row.verdict for row in rows} == {Verdict.PASS}
    # Neither a driver, a collective library, another site, a scheduler nor InfiniBand is wanted here.
    elsewhere = {"gpus", "collectives", "tunnel", "scheduler", "ib-links", "subnet-manager"}
    assert {row.check for row in rows} == set(gates.GATES) - elsewhere
    assert len({(row.check, row.place) for row in rows}) == len(rows)


def test_two_rails_of_one_host_exchanged_name_both_cables_and_both_plugs(world):
    world.exchange(("su01-leaf0", "swp3"), ("su01-leaf1", "swp3"))
    cause, rows = only(world)
    one, two = world.cable(("gpu-003", "rail0")), world.cable(("gpu-003", "rail1"))
    ends = f"{one} (from gpu-003:rail0) and {two} (from gpu-003:rail1)"
    assert cause == f"cables {ends} are exchanged at su01-leaf0:swp3 and su01-leaf1:swp3"
    head = rows[0]
    assert (head.check, head.verdict, head.cables) == ("cabling", Verdict.FAIL, (one, two))
    for end in ("gpu-003:rail0", "gpu-003:rail1", "su01-leaf0:swp3", "su01-leaf1:swp3"):
        assert end in " ".join(head.evidence)
    assert "exchange the two plugs at su01-leaf1:swp3 and su01-leaf0:swp3" in head.hint
    assert "gpu-003:rail1 and gpu-003:rail0" in head.hint, "the other reading that LLDP allows is named too"
    assert {r.check for r in rows} == {"cabling", "mtu", "rate"}, "what follows from it has no cause of its own"
    failing = [(r.check, r.place) for r in rows if r.verdict is Verdict.FAIL]
    assert failing == [("cabling", one), ("cabling", two)], "what follows is unknown until the cause is mended"


def test_the_same_rail_of_two_hosts_exchanged(world):
    world.exchange(("su01-leaf2", "swp1"), ("su01-leaf2", "swp4"))
    cause, rows = only(world)
    assert cause.endswith("are exchanged at su01-leaf2:swp1 and su01-leaf2:swp4")
    assert rows[0].cables == (world.cable(("gpu-001", "rail2")), world.cable(("gpu-004", "rail2")))


def test_uplinks_exchanged_at_a_leaf_are_mended_at_that_leaf_alone(world):
    world.exchange(("su01-leaf1", "swp49"), ("su01-leaf1", "swp50"))
    cause, rows = only(world)
    assert "exchanged at su01-leaf1:swp49 and su01-leaf1:swp50" in cause
    assert rows[0].hint.startswith("exchange the two plugs at su01-leaf1:")


def test_two_independent_exchanges_are_two_causes(world):
    world.exchange(("su01-leaf0", "swp1"), ("su01-leaf1", "swp1"))
    world.exchange(("su01-leaf2", "swp4"), ("su01-leaf3", "swp4"))
    assert len(causes(world)) == 2


def test_a_missing_cable_is_named_with_both_ends(world):
    world.pull(("gpu-002", "rail1"))
    cause, rows = only(world)
    cable = world.cable(("gpu-002", "rail1"))
    assert cause == f"cable {cable} between gpu-002:rail1 and su01-leaf1:swp2 is missing, unplugged or broken"
    assert {(r.check, r.place) for r in rows} >= {
        ("cabling", cable),
        ("rails", "gpu-002:rail1"),
        ("ports", "su01-leaf1:swp2"),
    }


def test_a_missing_uplink_explains_the_narrow_tables(world):
    world.pull(("su01-leaf0", "swp49"))
    cause, rows = only(world)
    assert cause.startswith(f"cable {world.cable(('su01-leaf0', 'swp49'))} between su01-leaf0:swp49 and spine01:swp1")
    assert {r.place for r in rows if r.check == "fib"} >= {"su01-leaf0", "spine01", "su01-leaf1"}


def test_a_narrow_kernel_table_is_found_though_every_cable_is_well(world):
    world.fib_missing.add(("su01-leaf2", "swp50"))
    _, rows = only(world)
    assert [(r.check, r.place, r.verdict) for r in rows] == [("fib", "su01-leaf2", Verdict.FAIL)]
    assert "1 of 2 ways" in rows[0].evidence[0]


def test_a_plug_in_a_free_port(world):
    other = world.pull(("gpu-001", "rail0"))
    world.join(("gpu-001", "rail0"), ("su01-leaf0", "swp40"))
    cause, rows = only(world)
    assert cause == f"cable {world.cable(other)} is plugged into su01-leaf0:swp40 instead of su01-leaf0:swp1"
    assert rows[0].hint == "move the plug from su01-leaf0:swp40 to su01-leaf0:swp1"


def test_a_block_one_port_too_far_is_one_cause_with_moves_in_order(world):
    for i in (4, 3, 2, 1):
        world.pull((f"gpu-00{i}", "rail0"))
        world.join((f"gpu-00{i}", "rail0"), ("su01-leaf0", f"swp{i + 1}"))
    cause, rows = only(world)
    assert cause.startswith("4 cables")
    assert cause.endswith("are plugged 1 port too far on su01-leaf0")
    steps = rows[0].hint.split("; then ")
    assert steps[0] == "move the plug from su01-leaf0:swp2 to su01-leaf0:swp1"
    assert len(steps) == 4


def test_a_host_with_all_rails_shifted_by_one_is_one_cause(world):
    hosts = [("gpu-002", f"rail{r}") for r in range(4)]
    far = [world.pull(end) for end in hosts]
    for r, end in enumerate(hosts):
        world.join(end, far[(r + 1) % 4])
    cause, rows = only(world)
    assert cause.startswith("the 4 rail cables of gpu-002")
    assert "shifted by 1 rail" in cause
    assert len(rows[0].hint.split("; then ")) == 3, "a rotation of four takes three exchanges"


def follow(world: World, hint: str) -> None:
    """Do what a hint says."""
    for step in hint.split(" (LLDP")[0].split("; then "):
        words = step.split()
        if step.startswith("exchange"):
            world.exchange(tuple(words[-3].split(":")), tuple(words[-1].split(":")))
        else:
            far = world.pull(tuple(words[4].split(":")))
            world.join(far, tuple(words[-1].split(":")))


@pytest.mark.parametrize("order", [(1, 0, 2, 3), (1, 2, 0, 3), (3, 2, 1, 0), (1, 2, 3, 0), (2, 3, 0, 1), (1, 3, 0, 2)])
@pytest.mark.parametrize("at", ["host", "leaf"])
def test_following_the_hints_mends_any_order_of_plugs(world, order, at):
    ends = (
        [("gpu-002", f"rail{r}") for r in range(4)]
        if at == "host"
        else [("su01-leaf3", f"swp{i}") for i in range(1, 5)]
    )
    far = [world.pull(end) for end in ends]
    for end, place in zip(ends, order, strict=True):
        world.join(end, far[place])
    for rows in causes(world).values():
        follow(world, rows[0].hint)
    assert causes(world) == {}


def test_two_hosts_exchanged_whole_are_one_cause(world):
    for r in range(4):
        world.exchange((f"su01-leaf{r}", "swp1"), (f"su01-leaf{r}", "swp2"))
    cause, rows = only(world)
    assert cause.startswith("gpu-001 and gpu-002 are exchanged")
    assert len(rows[0].cables) == 8


def test_a_host_that_is_off_is_the_cause_of_all_that_cannot_be_seen(world):
    world.off.add("gpu-004")
    cause, rows = only(world)
    assert cause == "gpu-004 does not answer: timed out"
    assert (rows[0].check, rows[0].verdict) == ("reach", Verdict.FAIL)
    verdicts = {r.check: r.verdict for r in rows if r.place.startswith("gpu-004") and r.check != "reach"}
    assert set(verdicts.values()) == {Verdict.UNKNOWN}, "not seen is unknown, never missing"


def test_a_fault_does_not_hide_behind_another(world):
    world.off.add("gpu-004")
    world.exchange(("su01-leaf0", "swp1"), ("su01-leaf1", "swp1"))
    world.pull(("gpu-002", "rail3"))
    world.slow[(world.cable(("gpu-003", "rail2")), "down")] = 4.0
    found = list(causes(world))
    assert [cause.split(" ")[0] for cause in sorted(found)] == ["cable", "cable", "cables", "gpu-004"], found


def test_a_silent_lldp_daemon_is_unknown_and_named(world):
    world.mute.add("su01-leaf2")
    cause, rows = only(world)
    assert cause.startswith("LLDP on su01-leaf2 does not answer")
    assert {r.verdict for r in rows} == {Verdict.UNKNOWN}


@pytest.mark.parametrize("way", ["up", "down"])
def test_a_slow_rail_cable_is_named_with_its_direction(world, way):
    cable = world.cable(("gpu-003", "rail1"))
    world.slow[(cable, way)] = 3.0
    cause, rows = only(world)
    towards = "gpu-003:rail1" if way == "down" else "su01-leaf1:swp3"
    assert (
        cause
        == f"cable {cable} between gpu-003:rail1 and su01-leaf1:swp3 is slow: 3 Mbit/s of 10 Mbit/s towards {towards}"
    )
    assert [(r.check, r.place) for r in rows] == [("rate", cable)]


def test_a_cable_slow_both_ways_is_one_cause(world):
    cable = world.cable(("gpu-001", "rail0"))
    world.slow.update({(cable, "up"): 3.0, (cable, "down"): 4.0})
    cause, _ = only(world)
    assert cause == f"cable {cable} between gpu-001:rail0 and su01-leaf0:swp1 is slow: 3 Mbit/s of 10 Mbit/s"


def test_a_slow_uplink_is_named(world):
    cable = world.cable(("su01-leaf2", "swp50"))
    world.slow[(cable, "up")] = 5.0
    cause, _ = only(world)
    assert cause.startswith(f"cable {cable} between su01-leaf2:swp50 and spine02:swp3 is slow: 5 Mbit/s of 20 Mbit/s")


def test_with_two_hosts_a_slow_flow_cannot_be_pinned_and_both_cables_are_said():
    world = World(expectations(hosts=2))
    cable = world.cable(("gpu-001", "rail0"))
    world.slow[(cable, "down")] = 3.0
    cause, rows = only(world)
    assert cause.startswith("one of the cables")
    assert rows[0].cables == (cable, world.cable(("gpu-002", "rail0")))


def test_a_slow_host_is_not_eight_slow_cables(world):
    for r in range(4):
        world.slow.update({(world.cable(("gpu-002", f"rail{r}")), way): 3.0 for way in ("up", "down")})
    cause, _ = only(world)
    assert cause.startswith("every cable of gpu-002 is slow")


def test_when_everything_is_slow_no_cable_is_blamed(world):
    world.slow.update({(c, w): 2.0 for c in world.wanted.cables() for w in ("up", "down")})
    cause, _ = only(world)
    assert cause.startswith("all ")
    assert "flows are slow" in cause


def test_a_small_mtu_on_the_switch_is_one_cause_at_its_port(world):
    world.mtus[("su01-leaf0", "swp3")] = 1500
    cause, rows = only(world)
    assert cause == "su01-leaf0:swp3: MTU 1500, not 9000"
    assert ("mtu", "gpu-003:rail0") in {(r.check, r.place) for r in rows}


def test_an_mtu_that_is_too_large_is_found_though_all_pings_pass(world):
    world.mtus.update({("su01-leaf0", "swp3"): 9216, ("gpu-003", "rail0"): 9216})
    assert any("MTU 9216, not 9000" in cause for cause in causes(world))


def test_two_machines_in_each_others_slot(world):
    one, two = world.wanted.hosts["gpu-001"], world.wanted.hosts["gpu-002"]
    world.identities["gpu-001"] = Identity("gpu-001", two.serial, two.uuid, two.image)
    world.identities["gpu-002"] = Identity("gpu-002", one.serial, one.uuid, one.image)
    cause, _ = only(world)
    assert cause == "gpu-001 and gpu-002 stand in each other's slot"


def test_a_machine_that_shows_no_serial_is_unknown(world):
    image = world.wanted.hosts["gpu-001"].image
    world.identities["gpu-001"] = Identity("gpu-001", "", "", image)
    rows = [r for r in judge(world) if r.verdict is not Verdict.PASS]
    assert [(r.check, r.place, r.verdict) for r in rows] == [("identity", "gpu-001", Verdict.UNKNOWN)]


def test_a_wrong_image_and_a_wrong_clock_are_found(world):
    good = world.facts().of("gpu-001").identity
    world.identities["gpu-001"] = dataclasses.replace(good, image="0" * 64)
    world.clocks["gpu-002"] = Clock(True, True, "198.18.0.1", 3, Milliseconds(250))
    world.clocks["gpu-003"] = Clock(True, False, why="Not synchronised")
    world.clocks["gpu-004"] = Clock(False, why="506 Cannot talk to daemon")
    failing = {(r.check, r.place) for r in judge(world) if r.verdict is Verdict.FAIL}
    assert failing == {("image", "gpu-001"), ("time", "gpu-002"), ("time", "gpu-003"), ("time", "gpu-004")}


def test_what_the_other_end_denies_is_stale_and_blames_no_cable(world):
    world.stale[("gpu-002", "rail1")] = ("su01-leaf0", "swp2")
    bad = [r for r in judge(world) if r.verdict is not Verdict.PASS]
    assert [(r.check, r.place, r.verdict) for r in bad] == [
        ("cabling", world.cable(("gpu-002", "rail1")), Verdict.UNKNOWN)
    ]
    assert "stale" in bad[0].found


def test_a_fabric_that_nobody_configured_is_a_few_causes_and_not_hundreds(world):
    for cable in world.wanted.cables().values():
        world.mtus.update({cable.a: 1500, cable.b: 1500})
        if cable.kind == "uplink":
            world.fib_missing.update({cable.a, cable.b})
    found = list(causes(world))
    assert [cause for cause in found if cause] == [
        "48 ports of 10 devices: MTU 1500, not 9000",
        "the kernel of 6 switches holds none of the designed routes",
    ]


def test_many_machines_that_are_silent_for_one_reason_are_one_cause(world):
    world.off.update({"gpu-001", "gpu-002", "gpu-003"})
    cause, rows = only(world)
    assert cause == "3 devices do not answer: timed out"
    assert rows[0].evidence == ("gpu-001: timed out", "gpu-002: timed out", "gpu-003: timed out")
