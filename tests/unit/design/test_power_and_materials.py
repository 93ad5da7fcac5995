"""What racks draw, what is bought, and what fails together."""

import csv

import pytest

from supernode import design, spec
from supernode.design import domains, materials, optics, physical, power, runs
from supernode.errors import Refusal

from .sites import LAB, ROOT, lab, large


def example(name):
    folder = ROOT / "inventories/examples" / name
    return design.build(spec.read({path.stem: path.read_text() for path in folder.glob("*.yml")}))


@pytest.fixture(scope="module")
def superpod():
    found = example("superpod-h100-1su-ib")
    return found, optics.fit_all(runs.runs(found))


def test_a_rack_draws_what_its_machines_and_their_plugs_draw(superpod):
    """Four systems of 10.2 kW, and in each four cages with a transceiver of 15 W."""
    found, fits = superpod
    first = power.racks(found, fits)[0]
    assert (first.servers_w, first.switches_w, first.optics_w) == (4 * 10200, 0, 4 * 4 * 15)
    assert (first.liquid_w, first.air_w, first.unsplit_w) == (0, first.total_w, 0)
    assert first.unknown == ()
    assert not first.over


def test_what_no_source_says_is_named_and_not_taken_for_nothing(superpod):
    found, fits = superpod
    fabric = [row for row in power.racks(found, fits) if row.rack in found.environment.fabric.racks]
    assert {name for row in fabric for name in row.unknown} == {"qm9700"}
    assert sum(row.optics_w for row in fabric) == 15 * (8 * 16 + 8 * 16 + 4 * 32)


def test_every_watt_of_the_site_is_in_one_rack(superpod):
    found, fits = superpod
    rows = power.racks(found, fits)
    assert sum(row.servers_w for row in rows) == 31 * 10200
    assert sum(row.optics_w for row in rows) == 15 * (31 * 4 + 8 * 32 + 4 * 32)


def fed(watts):
    return large(count=8, spares=0, racks=3).replace("name: f1, units: 48", f"name: f1, units: 48, power_w: {watts}")


def test_a_rack_that_is_fed_enough_is_accepted():
    """Eight leaves and two spines of 300 W."""
    found = design.build(spec.read({"environment": fed(3000)}))
    assert [row.total_w for row in power.racks(found) if row.rack == "f1"] == [3000]


def test_a_rack_that_is_fed_too_little_is_refused_by_name():
    with pytest.raises(Refusal) as refused:
        design.build(spec.read({"environment": fed(2999)}))
    (problem,) = refused.value.problems
    assert problem.what == "rack f1 is fed 2999 W, what stands in it draws 3000 W"
    assert problem.path[::2] == ("racks", "power_w")


def test_liquid_takes_its_share():
    text = large(count=4, spares=0, racks=4).replace("lab-gpu8", "gb300-tray")
    text = text.replace("lab-leaf", "sn5610").replace("lab-spine", "sn5610").replace("10 Mbit/s", "400 Gbit/s")
    text = text.replace("50 Mbit/s", "400 Gbit/s").replace("gb300-tray,", "gb300-tray, disk: /dev/disk/by-id/x,")
    (first, *_) = power.racks(design.build(spec.read({"environment": text})))
    assert first.liquid_w == pytest.approx(4 * 6600 * 0.94)
    assert first.air_w == pytest.approx(4 * 6600 * 0.06)


def test_power_csv_has_a_line_a_rack(superpod):
    found, fits = superpod
    rows = list(csv.DictReader(power.power_csv(power.racks(found, fits))))
    assert rows[0]["total_w"] == str(4 * 10200 + 240)
    assert [row["rack"] for row in rows] == [row.rack for row in power.racks(found)]


@pytest.mark.parametrize(("needed", "kept"), [(0, 0), (1, 1), (50, 1), (51, 2), (100, 2), (101, 3), (1000, 20)])
def test_two_of_a_hundred_are_kept(needed, kept):
    assert materials.spares(needed) == kept


def test_the_bill_of_a_superpod(superpod):
    found, fits = superpod
    lines = {(row.item, row.length_m): (row.sort, row.needed, row.spares) for row in materials.bill(found, fits)}
    assert lines["dgx-h100", 0] == ("server", 31, 0)
    assert lines["qm9700", 0] == ("switch", 12, 1)
    assert lines["MMA4Z00-NS-FLT", 0] == ("transceiver", 124, 3)
    assert lines["MMA4Z00-NS", 0] == ("transceiver", 8 * 16 + 8 * 16 + 4 * 32, 8)
    assert sum(needed for (item, _), (_, needed, _) in lines.items() if item == "MFP7E10-N") == 248 + 256


def test_a_pool_s_own_spares_are_the_spares_of_its_kind():
    (server, *_) = materials.bill(design.build(spec.read({"environment": large(count=8, spares=1, racks=3)})), ())
    assert (server.item, server.needed, server.spares) == ("lab-gpu8", 8, 1)


def test_materials_csv_adds_up(superpod):
    rows = list(csv.DictReader(materials.materials_csv(materials.bill(*superpod))))
    assert all(int(row["needed"]) + int(row["spares"]) == int(row["total"]) for row in rows)
    assert {row["sort"] for row in rows} == {"server", "switch", "transceiver", "fibre"}


def test_the_summary_says_what_is_plugged_in_drawn_and_not_known(superpod):
    said = dict(reversed(list(physical.facts(superpod[0]))))
    assert said["optics"] == "504 physical cables: 504 x MFP7E10-N, 124 x MMA4Z00-NS-FLT, 384 x MMA4Z00-NS"
    assert said["power"] == "323.8 kW in 9 racks; the fullest, r01, 41.0 of 45 kW"
    assert said[""] == "beside that, what no source says: qm9700"


def test_the_summary_of_kinds_without_cages_counts_their_links():
    said = list(physical.facts(lab()))
    assert said[0][0] == "optics"
    assert said[0][1].endswith("host-leaf links: no source says what cages a lab-gpu8 or a lab-leaf has")


def by_name(found):
    return {(row.domain, row.name): row for row in domains.losses(found)}


def test_a_leaf_cuts_off_one_gpu_of_each_host_and_its_share_of_the_links():
    """31 hosts; 8 leaves with 32 uplinks each, to 4 spines."""
    found = by_name(example("superpod-h100-1su-ib"))
    leaf, spine = found["leaf", "su01-leaf3"], found["spine", "spine02"]
    assert (leaf.hosts, leaf.gpus_lost, leaf.gpus_cut_off, leaf.bisection_lost) == (0, 0, 31, 1 / 8)
    assert (spine.hosts, spine.gpus_lost, spine.gpus_cut_off, spine.bisection_lost) == (0, 0, 0, 1 / 4)


def test_a_rack_takes_its_hosts_and_what_its_switches_carry():
    site = example("superpod-h100-1su-ib")
    found = by_name(site)
    rack = found["rack", "r01"]
    assert (rack.hosts, rack.gpus_lost, rack.gpus_cut_off, rack.bisection_lost) == (4, 32, 0, 0)
    fabric = [found["rack", name] for name in site.environment.fabric.racks if ("rack", name) in found]
    assert sum(row.bisection_lost for row in fabric) >= 1
    assert sum(row.gpus_cut_off for row in fabric) == 31 * 8
    assert sum(row.hosts for (domain, _), row in found.items() if domain == "rack") == 31


def test_a_cooling_unit_takes_the_racks_that_it_cools():
    site = design.build(spec.read({"environment": (ROOT / "tests/errors/cooling-good.yml").read_text()}))
    (unit, *_) = site.cooling
    cooled = [host for host in site.hosts if host.rack in unit.racks]
    row = by_name(site)["cooling", unit.name]
    assert row.hosts == len(cooled) > 0
    assert row.gpus_lost == sum(site.server_kind(host).gpus for host in cooled)


def test_a_feed_takes_the_racks_that_hang_on_it_alone():
    text = large(count=4, spares=0, racks=2)
    text = text.replace("name: r01, units: 48", "name: r01, units: 48, feeds: [a]")
    text = text.replace("name: f1, units: 48", "name: f1, units: 48, feeds: [a, b]")
    site = design.build(spec.read({"environment": text}))
    found = by_name(site)
    here = [host for host in site.hosts if host.rack == "r01"]
    assert found["feed", "a"].hosts == len(here) > 0
    assert found["feed", "a"].bisection_lost == 0
    assert (found["feed", "b"].hosts, found["feed", "b"].bisection_lost) == (0, 0)


def test_domains_csv_has_a_line_a_domain():
    site = lab()
    rows = list(csv.DictReader(domains.domains_csv(domains.losses(site))))
    assert [row["domain"] for row in rows].count("leaf") == sum(switch.tier == "leaf" for switch in site.switches)
    assert LAB.count("name: r0") <= sum(row["domain"] == "rack" for row in rows)
