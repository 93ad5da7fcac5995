"""What a cable has to carry: on whose word, how that binds, and what it is held against."""

from __future__ import annotations

import dataclasses
import json

import pytest
from world import World
from world import expectations as small

from supernode import design, packaged, spec
from supernode.design import expectations
from supernode.records import Verdict
from supernode.units import MbitPerS
from supernode.verify import baselines, expected, gates, localise, marks, rate
from supernode.workspace import EnvironmentFolder

LAB = (packaged.root() / "inventories/lab/environment.yml").read_text()
CABLE = "C00006"  # gpu-002:rail1


def of_lab(floor: str):
    text = LAB.replace("  rate_floor: 0.9\n", floor)
    assert (text != LAB) == (floor != "  rate_floor: 0.9\n")
    return expectations.build(design.build(spec.read({"environment": text})))


def judged(world: World):
    facts = world.facts()
    return localise.explain(world.wanted, facts, gates.judge(world.wanted, facts))


def computed(baseline=None) -> World:
    world = World(dataclasses.replace(small(), rate_contract=False, rate_source="computed: x"))
    world.wanted = expected.read(world.expectations, baseline=baseline)
    return world


def slowed(world: World, share: float) -> World:
    world.slow = {(CABLE, way): MbitPerS(10 * share) for way in ("up", "down")}
    return world


def row_of(rows, cable=CABLE):
    return next(row for row in rows if (row.check, row.place) == ("rate", cable))


@pytest.mark.parametrize("floor", [0.5, 0.99])
def test_a_contract_floor_wins_even_when_it_is_looser(floor):
    found = of_lab(f"  rate_floor: {floor}\n")
    assert (found.rate_floor, found.rate_contract) == (floor, True)
    mark = marks.mark(found, None)
    assert (mark.share, mark.binding, mark.source) == (floor, True, "contract: verify.rate_floor")


def test_without_one_the_mark_is_computed_and_says_how():
    found = of_lab("")
    assert not found.rate_contract
    assert found.rate_floor == pytest.approx((9000 - 48) / (9000 + 38) * 0.93, abs=1e-4)
    assert all(word in found.rate_source for word in ("declared rate", "lanes", "paced UDP", "9000-byte", "0.93"))
    assert expectations.Expectations.from_json(json.loads(json.dumps(found.to_json()))) == found


def test_a_computed_mark_is_advice_until_known_good_hosts_have_reached_it():
    row = row_of(judged(slowed(computed(), 0.7)))
    assert row.verdict is Verdict.ADVICE
    assert "not calibrated on known-good hosts, so it is advice" in row.wanted
    assert CABLE in row.cause
    good = marks.Baseline(
        "20260101-1", {"rail 10 Mbit/s": marks.Good(0.97, 16), "uplink 20 Mbit/s": marks.Good(0.97, 8)}
    )
    row = row_of(judged(slowed(computed(good), 0.5)))
    assert row.verdict is Verdict.FAIL
    assert "calibrated on 24 cables by run 20260101-1" in row.wanted


@pytest.mark.parametrize("share", [0.5, 0.01])
def test_half_a_rate_or_none_fails_whoever_has_reached_the_mark(share):
    assert row_of(judged(slowed(computed(), share))).verdict is Verdict.FAIL


def test_a_baseline_that_never_reached_the_mark_calibrates_nothing():
    low = marks.Baseline("r", {"rail 10 Mbit/s": marks.Good(0.97, 16), "uplink 20 Mbit/s": marks.Good(0.6, 8)})
    assert not computed(low).wanted.mark.binding
    assert not computed(marks.Baseline("r", {})).wanted.mark.binding


def test_a_finding_shows_mark_source_value_and_the_cohorts_median(world):
    row = row_of(judged(slowed(world, 0.25)))
    assert row.wanted == "at least 9 Mbit/s each way (contract: verify.rate_floor)"
    assert row.found == "2.5 Mbit/s"
    assert "the median of its cohort (rail 10 Mbit/s): 9.7 Mbit/s" in gates_row(world).evidence


def gates_row(world):
    return row_of(rate.gate(world.wanted, world.facts()))


def test_a_link_at_half_its_rate_is_named_by_its_cable_and_told_from_a_slow_one():
    half, slow = (row_of(judged(slowed(World(), share))) for share in (0.497, 0.25))
    assert half.cause.startswith(f"cable {CABLE} between gpu-002:rail1 and su01-leaf1:swp2 runs at half its rate: 4.97")
    assert "lanes" in half.hint
    assert f"cable {CABLE} between gpu-002:rail1 and su01-leaf1:swp2 is slow: 2.5" in slow.cause


def test_below_the_cohort_but_above_a_loose_contract_is_advice():
    world = World(dataclasses.replace(small(), rate_floor=0.4))
    row = row_of(judged(slowed(world, 0.5)))
    assert (row.verdict, row.found) == (Verdict.ADVICE, "5 Mbit/s")
    assert any("95%" in line for line in row.evidence)
    assert [r.verdict for r in judged(World()) if r.check == "rate"].count(Verdict.ADVICE) == 0


def with_errors(facts, device, port, **counts):
    seen, errors = facts.of(device), {name.replace("_", " "): count for name, count in counts.items()}
    ports = {**seen.ports, port: dataclasses.replace(seen.ports[port], errors=errors)}
    return dataclasses.replace(facts, devices={**facts.devices, device: dataclasses.replace(seen, ports=ports)})


def test_error_counters_of_a_port_are_held_against_a_good_rate_and_shown_with_a_bad_one(world):
    facts = with_errors(world.facts(), "su01-leaf1", "swp2", rx_errors=12, rx_dropped=900)
    row = row_of(rate.gate(world.wanted, facts))
    assert (row.verdict, row.cables) == (Verdict.ADVICE, (CABLE,))
    assert row.evidence == ("su01-leaf1:swp2 counted 12 rx errors since it started",)
    dropped = with_errors(world.facts(), "su01-leaf1", "swp2", rx_dropped=900)
    assert row_of(rate.gate(world.wanted, dropped)).verdict is Verdict.PASS
    bad = slowed(World(), 0.5)
    assert "no port of it counted an error" in row_of(rate.gate(bad.wanted, bad.facts())).evidence


def test_a_clean_run_leaves_the_medians_of_each_cohort(world, tmp_path):
    folder = EnvironmentFolder("lab", tmp_path, tmp_path)
    assert baselines.read(folder) is None
    found = marks.baseline(world.wanted.cables(), judged(world), "run-1")
    assert {name: (round(g.share, 2), g.cables) for name, g in found.cohorts.items()} == {
        "rail 10 Mbit/s": (0.97, 16),
        "uplink 20 Mbit/s": (0.97, 8),
    }
    baselines.write(folder, found)
    assert baselines.read(folder) == found
    assert computed(found).wanted.mark.binding
    (folder.state / baselines.NAME).write_text("[]")
    assert baselines.read(folder) is None
