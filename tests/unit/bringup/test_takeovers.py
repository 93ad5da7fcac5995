"""Who is quarantined, whose ports are shut, and which spare takes over: from the documents and the Outputs alone."""

import pytest
from straggling import LAB, lab, outputs, state

from supernode import design as designing
from supernode import spec
from supernode.bringup import stragglers
from supernode.records import Verdict

# Two scalable units of three; the spares are the last of each pool, in the second unit.
TWO_UNITS = LAB.replace("count: 8\n    spares: 1", "count: 5\n    spares: 1").replace(
    "mtu: 9000", "mtu: 9000\n  unit: 3"
)


def with_machines(design, machines):
    return designing.build(spec.Inputs(design.environment, design.allocation, machines))


def after_quarantine(design, *names, **how):
    late_hosts = [design.host(name) for name in names]
    machines = stragglers.quarantined(design, outputs(design, dead=names), late_hosts, "r1")
    found = with_machines(design, machines)
    return found, outputs(found, **how)


def names(hosts):
    return [host.name for host in hosts]


def test_who_never_came_is_quarantined_with_state_phase_reason_and_run():
    design = lab()
    dead = ["gpu-002", "gpu-009"]
    hosts, site = stragglers.to_quarantine(design, outputs(design, dead=dead))
    assert (names(hosts), site) == (dead, "")
    record = stragglers.quarantined(design, outputs(design, dead=dead), hosts, "r1").slots[design.host("gpu-002").slot]
    assert (record.state, record.run) == ("quarantined", "r1")
    assert record.reason == "late in deploy: no report in 60 s"


@pytest.mark.parametrize("service", ["in_service", "drained"])
def test_who_serves_or_is_drained_is_never_quarantined_and_always_named(service):
    design = lab(gpu_002=service)
    found = outputs(design, dead=["gpu-002"])
    assert stragglers.to_quarantine(design, found) == ([], "")
    row = next(f for f in stragglers.findings(design, found) if f.place == "gpu-002")
    assert row.verdict is Verdict.FAIL
    assert row.evidence == ("POST 0x92",)
    assert "no report in 60 s" in row.cause


@pytest.mark.parametrize(("failed", "held"), [(4, False), (5, True), (9, True)])
def test_when_more_than_the_share_failed_it_is_the_site(failed, held):
    design = lab()
    dead = [f"gpu-{n:03d}" for n in range(1, failed + 1)]
    found = outputs(design, dead=dead)
    hosts, site = stragglers.to_quarantine(design, found)
    assert (names(hosts), bool(site)) == ([] if held else dead, held)
    if held:
        rows = [f for f in stragglers.findings(design, found, site) if f.verdict is Verdict.FAIL and f.place in dead]
        assert {f.cause for f in rows} == {site}
        assert f"{failed} of the 9" in site
        assert "0.5" in site


def test_one_machine_alone_is_never_the_site():
    design = lab(**{f"gpu_00{n}": "in_service" for n in range(1, 8)}, gpu_009="quarantined")
    hosts, site = stragglers.to_quarantine(design, outputs(design, dead=["gpu-008"]))
    assert (names(hosts), site) == (["gpu-008"], "")


def test_a_spare_takes_over_in_its_own_place():
    design, found = after_quarantine(lab(), "gpu-002")
    (row,) = stragglers.takeovers(design, found)
    assert (row.spare.name, row.slot) == ("gpu-009", design.host("gpu-002").slot)
    then = with_machines(design, stragglers.activated(design, [row], "r2"))
    assert (state(then, "gpu-009"), then.host("gpu-009").state) == ("new", "active")
    assert then.host("gpu-009").management == design.host("gpu-009").management
    assert stragglers.takeovers(then, outputs(then)) == []


def test_two_failed_and_one_spare_leave_one_gap():
    design, found = after_quarantine(lab(), "gpu-002", "gpu-005")
    rows = stragglers.takeovers(design, found)
    then = with_machines(design, stragglers.activated(design, rows, "r2"))
    verdicts = {f.place: f for f in stragglers.findings(then, outputs(then)) if f.verdict is not Verdict.PASS}
    assert {place: f.verdict for place, f in verdicts.items()} == {"gpu-002": Verdict.ADVICE, "gpu-005": Verdict.FAIL}
    assert "gpu-009 (" in verdicts["gpu-002"].cause
    assert "no spare is ready" in verdicts["gpu-005"].cause
    assert verdicts["gpu-005"].evidence == ("POST 0x92",)


def test_a_failed_spare_is_quarantined_and_nobody_misses_it():
    design, found = after_quarantine(lab(), "gpu-009")
    assert stragglers.takeovers(design, found) == []
    assert [f.verdict for f in stragglers.findings(design, found) if f.place == "gpu-009"] == [Verdict.ADVICE]


def test_a_spare_that_is_not_ready_takes_over_for_nobody():
    design, _ = after_quarantine(lab(), "gpu-002")
    assert stragglers.takeovers(design, outputs(design, dead=["gpu-009"])) == []


def test_what_cannot_be_fenced_is_not_replaced_and_the_report_says_why():
    design, found = after_quarantine(lab(), "gpu-002", deaf=["su01-leaf3"])
    slot = design.host("gpu-002").slot
    assert stragglers.unfenced(design, found) == {slot: "su01-leaf3 is late in contact: no login within 60 s"}
    assert stragglers.takeovers(design, found) == []
    row = next(f for f in stragglers.findings(design, found) if f.place == "gpu-002")
    assert row.verdict is Verdict.FAIL
    assert "not fenced, so not replaced: su01-leaf3" in row.cause


def test_a_switch_that_shows_another_file_has_not_fenced():
    """Known bad: the switch is ready, with the configuration from before the quarantine."""
    before = lab()
    design, _ = after_quarantine(before, "gpu-002")
    assert len(stragglers.unfenced(design, outputs(before))) == 1
    assert "does not show the designed /etc/frr/frr.conf" in stragglers.unfenced(design, outputs(before)).popitem()[1]


def test_the_gap_of_a_slot_that_is_not_fenced_is_not_filled_by_another_spare():
    """Known bad: gpu-002 was replaced, gpu-005 is not fenced; a second spare must not be counted to gpu-002's fence."""
    design = lab(TWO_UNITS.replace("spares: 1", "spares: 3"), gpu_001="quarantined", gpu_004="quarantined")
    assert {design.host("gpu-001").su, design.host("gpu-004").su} == {1, 2}
    found = outputs(design, deaf=["su02-leaf0"])
    rows = stragglers.takeovers(design, found)
    assert [row.slot for row in rows] == [design.host("gpu-001").slot]
    then = with_machines(design, stragglers.activated(design, rows, "r2"))
    assert stragglers.takeovers(then, outputs(then, deaf=["su02-leaf0"])) == []
    assert [row.slot for row in stragglers.takeovers(then, outputs(then))] == [then.host("gpu-004").slot]


def test_a_spare_of_the_same_unit_comes_first():
    text = TWO_UNITS.replace("count: 5", "count: 4").replace("spares: 1", "spares: 2")
    design = lab(text, gpu_003="spare", gpu_004="quarantined", gpu_006="new")
    units = {h.name: h.su for h in design.hosts}
    assert (units["gpu-003"], units["gpu-004"], units["gpu-005"]) == (1, 2, 2)
    (row,) = stragglers.takeovers(design, outputs(design))
    assert row.spare.name == "gpu-005"  # gpu-003 has the lower ordinal, and stands in another unit


def test_a_slot_quarantined_by_hand_is_replaced_as_well():
    design = lab(gpu_004="quarantined")
    assert [row.spare.name for row in stragglers.takeovers(design, outputs(design))] == ["gpu-009"]


def test_too_few_machines_are_said_with_both_numbers():
    design = lab(LAB.replace("spares: 1", "spares: 1\n    minimum: 7"))
    assert stragglers.too_few(design, outputs(design, dead=["gpu-001"])) == []
    (row,) = stragglers.too_few(design, outputs(design, dead=["gpu-001", "gpu-002"]))
    assert (row.place, row.verdict) == ("gpu", Verdict.FAIL)
    assert "6 of 8" in row.cause
    assert "fewer than 7" in row.cause
