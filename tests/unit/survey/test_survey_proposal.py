"""From what a cluster shows to the documents that describe it, and to what is wrong with it."""

import asyncio
from dataclasses import replace

import pytest
import seen_lab
import sites
import yaml
from seen_lab import Seen

from supernode import catalog, spec
from supernode.bringup.survey import compare, run
from supernode.bringup.survey.conclude import conclude
from supernode.bringup.survey.observed import ControllerSeen, Placement, SwitchSeen


@pytest.fixture
def lab():
    return sites.lab()


@pytest.fixture
def seen(lab):
    return Seen(lab)


def surveyed(seen, **texts):
    return conclude(seen.observations(), {"environment": sites.LAB, **texts})


def causes(found):
    return sorted({row.cause or row.found for row in found.findings})


def origins(found):
    return {row.path: row.origin for row in found.proposal.sources}


def test_the_proposal_of_a_healthy_cluster_is_its_own_design_and_nothing_is_wrong(lab, seen):
    found = surveyed(seen)
    assert causes(found) == []
    assert compare.differences(found.design, lab) == ()
    own = sites.lab(machines=spec.machines_text(found.machines))
    assert found.design.digest == own.digest


def test_what_shows_is_observed_and_what_does_not_is_named(seen):
    origin = origins(surveyed(seen))
    for path in (
        "site.domain", "site.networks.management.cidr", "site.networks.management.gateway", "site.networks.bmc.cidr",
        "site.networks.loopbacks.cidr", "site.networks.rails.cidr", "site.time_servers", "site.serve.address",
        "racks.r01", "fabric.leaf", "fabric.spine",
        "pools.gpu.kind", "pools.gpu.count", "pools.gpu.racks", "fabric.spines", "fabric.mtu",
        "software.suite", "software.kernel", "software.packages", "machines.bios",
    ):  # fmt: skip
        assert origin[path] == "observed", path
    for path in ("site.name", "pools.gpu.spares", "fabric.rates.uplink", "fabric.oversubscription", "verify.rate_floor",
                 "machines.deadline_s", "racks.r01.units", "racks.r03"):  # fmt: skip
        assert origin[path] == "document", path


def test_it_is_observed_and_not_copied(seen):
    """With a document that says otherwise, what shows wins and the rest follows the document."""
    other = sites.LAB
    for old, new in (
        ("198.18.0.1]", "198.18.0.9]"),
        ("domain: lab.internal", "domain: elsewhere.internal"),
        ("mtu: 9000", "mtu: 1500"),
        ("spines: 2", "spines: 1"),
        ("count: 8", "count: 4"),
        ("SriovEnable: Enabled, ", ""),
        ("suite: bookworm", "suite: trixie"),
        ("198.18.8.0/21", "198.18.16.0/21"),
        ("port: 8443", "port: 8444"),
        ("rate_floor: 0.9", "rate_floor: 0.8"),
    ):
        assert old in other, old
        other = other.replace(old, new)
    found = conclude(seen.observations(), {"environment": other})
    wrote = yaml.safe_load(found.documents()["environment"])
    assert wrote["site"]["time_servers"] == ["198.18.0.1"]
    assert wrote["site"]["domain"] == "lab.internal"
    assert wrote["site"]["networks"]["rails"]["cidr"] == "198.18.8.0/21"
    assert wrote["site"]["serve"]["port"] == 8443
    assert wrote["fabric"] | {"mtu": 9000, "spines": 2} == wrote["fabric"]
    assert wrote["machines"]["bios"]["SriovEnable"] == "Enabled"
    assert wrote["software"]["suite"] == "bookworm"
    assert wrote["pools"][0]["count"] + wrote["pools"][0]["spares"] == 9
    assert wrote["verify"]["rate_floor"] == 0.8
    assert any("asked to have 5 machines" in cause for cause in causes(found))


def test_without_a_document_it_says_what_has_to_be_filled_in(seen):
    found = conclude(seen.observations(), name="hall")
    assert found.design is None
    assert {"fabric.racks", "fabric.rates.uplink"} <= set(found.proposal.lacking)
    assert "# not observed: fabric.racks: nobody says it: fill it in" in found.proposal.text()
    assert any("fabric" in row.cause for row in found.findings if row.check == "proposal")
    assert len(found.machines.slots) == 9


@pytest.mark.parametrize(
    ("one", "other"),
    [("C00010", "C00014"), ("C00001", "C00009"), ("C00073", "C00081")],
    ids=["host", "leaf", "uplinks"],
)
def test_an_exchanged_cable_bends_no_document_and_is_listed_by_both_ends(lab, seen, one, other):
    seen.exchange(one, other)
    found = surveyed(seen)
    assert compare.differences(found.design, lab) == ()
    rows = [row for row in found.findings if row.check == "cabling" and row.verdict == "fail"]
    assert {row.place for row in rows} == {one, other}
    links = {link.cable: link for link in lab.links}
    for cable in (one, other):
        assert cable in rows[0].cause
        assert f"{links[cable].a_device}:{links[cable].a_port}" in " ".join((rows[0].cause, *rows[0].evidence))
        assert f"{links[cable].b_device}:{links[cable].b_port}" in " ".join((rows[0].cause, *rows[0].evidence))


def test_a_dead_controller_is_listed_and_the_design_stays(lab, seen):
    address = seen.controllers["gpu-005"].address
    seen.controllers["gpu-005"] = ControllerSeen(address, why="no answer in 3 tries")
    found = surveyed(seen)
    assert compare.differences(found.design, lab) == ()
    assert any(address in cause and "no answer in 3 tries" in cause for cause in causes(found))
    assert any("no controller" in cause and "gpu-005" in cause for cause in causes(found))
    assert len(causes(found)) == 2
    assert found.machines.slots["r01u33"].identity.system_serial == seen_lab.serial("r01u33")
    assert any("that gpu-005 stands there is taken from its name" in note for note in found.notes)


def test_switches_that_do_not_say_their_model_are_of_the_documents_kinds_and_show_no_serial_number(lab, seen):
    """A white box has another maker's board, and many of those share one serial number."""
    for name, row in seen.switches.items():
        seen.switches[name] = replace(row, vendor="Board Maker", model="ACME-1", serial="SN7")
    found = surveyed(seen)
    assert causes(found) == []
    assert origins(found)["fabric.leaf"] == "document"
    assert {str(r.identity.system_serial) for s, r in found.machines.slots.items() if s.startswith("r03")} == {""}
    assert surveyed(Seen(lab)).machines.slots["r03u01"].identity.system_serial == "SW0020"


def test_a_host_that_does_not_answer_is_listed_once_and_by_name(lab, seen):
    seen.hosts["gpu-009"] = seen_lab.lacking(seen.hosts["gpu-009"].address)
    found = surveyed(seen)
    assert compare.differences(found.design, lab) == ()
    heads = [row for row in found.findings if row.check == "reach"]
    assert [row.place for row in heads] == ["gpu-009"]


def test_a_switch_that_does_not_answer_is_still_counted(lab, seen):
    address = seen.switches["spine02"].address
    seen.switches["spine02"] = seen_lab.lacking(address, kind=SwitchSeen)
    found = surveyed(seen)
    assert compare.differences(found.design, lab) == ()
    assert [row.place for row in found.findings if row.check == "reach"] == ["spine02"]


def test_a_serial_number_that_two_show_and_one_that_nobody_filled_in_are_listed(seen):
    one, other, third = (seen.controllers[n] for n in ("gpu-001", "gpu-002", "gpu-003"))
    twice = {**other.identity, "bmc_mac": one.identity["bmc_mac"]}
    seen.controllers["gpu-002"] = replace(other, identity=twice)
    blank = {**third.identity, "board_serial": "To be filled by O.E.M."}
    seen.controllers["gpu-003"] = replace(third, identity=blank)
    found = surveyed(seen)
    assert any("both show bmc_mac" in cause and "gpu-002" in cause for cause in causes(found))
    assert any("'To be filled by O.E.M.' is a placeholder" in cause for cause in causes(found))
    assert all(not record.identity.board_serial for record in found.machines.slots.values())


def test_a_placeholder_pairs_nothing(seen):
    """All boards with one placeholder serial are told apart by their UUIDs."""
    for name in seen.controllers:
        row, host = seen.controllers[name], seen.hosts[name]
        seen.controllers[name] = replace(row, identity={**row.identity, "system_serial": "0123456789"})
        seen.hosts[name] = replace(host, serial="0123456789")
    found = surveyed(seen)
    assert [m.name for m in found.proposal.machines] == [f"gpu-{n:03d}" for n in range(1, 10)]
    assert {row.check for row in found.findings} == {"identity"}


def test_one_that_is_set_otherwise_is_listed_and_does_not_win(lab, seen):
    row, host = seen.controllers["gpu-004"], seen.hosts["gpu-004"]
    seen.controllers["gpu-004"] = replace(
        row, bios={**row.bios, "WorkloadProfile": "General"}, firmware={"BMC": "1.3.0"}
    )
    seen.hosts["gpu-004"] = replace(host, time_servers=("192.0.2.1",), suite="trixie")
    found = surveyed(seen)
    assert compare.differences(found.design, lab) == ()
    told = [row.cause for row in found.findings if row.check == "alike"]
    assert len(told) == 4
    assert all(cause.startswith("gpu-004 has another ") for cause in told)


def test_two_that_stand_in_each_others_place_are_listed(seen):
    one, other = seen.controllers["gpu-001"], seen.controllers["gpu-002"]
    seen.controllers["gpu-001"] = replace(one, placement=other.placement)
    seen.controllers["gpu-002"] = replace(other, placement=one.placement)
    told = causes(surveyed(seen))
    assert any(c.startswith("gpu-002 stands in r01u01") for c in told)
    assert any(c.startswith("gpu-001 stands in r01u09") for c in told)


def test_a_chassis_that_does_not_say_where_it_stands_is_listed(seen):
    seen.controllers["gpu-006"] = replace(seen.controllers["gpu-006"], placement=Placement())
    assert any("does not say where it stands" in cause for cause in causes(surveyed(seen)))


def test_a_machine_of_no_known_kind_is_listed(seen):
    seen.controllers["gpu-003"] = replace(seen.controllers["gpu-003"], vendor="Acme", model="X", gpus=5)
    seen.hosts["gpu-003"] = replace(seen.hosts["gpu-003"], vendor="Acme", model="X")
    assert any("gpu-003 is of no known kind: Acme X" in cause for cause in causes(surveyed(seen)))


def test_a_kind_is_found_by_gpus_and_ports_where_the_model_is_not_known(seen):
    """Several kinds have the same shape, and then nobody guesses."""
    controller, host = seen.controllers["gpu-001"], seen.hosts["gpu-001"]
    from supernode.bringup.survey import pairing

    alone, host = replace(controller, vendor="", model=""), replace(host, vendor="", model="")
    shapes = [k for k in catalog.server_kinds() if catalog.server(k).gpus == 8 and catalog.server(k).cloud is None]
    assert len(shapes) > 1
    assert pairing._kind(alone, host) == ""
    assert pairing._kind(controller, host) == "lab-gpu8"


def test_uplinks_that_are_there_overrule_a_policy_that_does_not_give_them(seen):
    other = sites.LAB.replace("oversubscription: 1.0", "oversubscription: 0.25")
    found = conclude(seen.observations(), {"environment": other})
    assert origins(found)["fabric.oversubscription"] == "observed"
    assert spec.read({"environment": found.documents()["environment"]}).environment.fabric.oversubscription == 0.9


def test_numbers_that_were_given_before_are_kept_where_the_machines_bear_them():
    """A cluster that grew has addresses that a fresh allocation would not give."""
    from supernode import design as designing
    from supernode.design import allocating

    small = spec.read({"environment": sites.large(count=3, spares=1)})
    saved = allocating.extend(small.environment, None)
    grown = sites.large(count=6, spares=1)
    texts = {"environment": grown}
    texts["allocation"] = spec.allocation_text(allocating.extend(spec.read(texts).environment, saved))
    design = designing.build(spec.read(texts))
    found = conclude(Seen(design).observations(), texts)
    assert causes(found) == []
    assert found.allocation is not None
    assert compare.differences(found.design, design) == ()
    assert conclude(Seen(design).observations(), {"environment": grown}).findings != ()


def test_states_of_machines_are_what_shows_or_come_from_the_record(lab, seen):
    first = surveyed(seen)
    states = {slot: str(r.state) for slot, r in first.machines.slots.items() if slot.startswith(("r01", "r02"))}
    assert list(states.values()).count("in_service") == 8
    assert list(states.values()).count("spare") == 1
    slots = dict(first.machines.slots)
    slots["r01u17"] = slots["r01u17"].model_copy(update={"state": spec.SlotState.QUARANTINED, "reason": "ECC"})
    again = surveyed(seen, machines=spec.machines_text(first.machines.model_copy(update={"slots": slots})))
    assert str(again.machines.slots["r01u17"].state) == "quarantined"
    assert any("r01u17: state quarantined is taken from" in note for note in again.notes)


@pytest.mark.parametrize(
    ("later", "looks", "wrong"),
    [((True,), 2, True), ((False,), 2, False), ((None, True, True), 4, True), ((None, True, None, True), 4, True)],
    ids=["stands", "was old news", "settles", "never settles"],
)
def test_a_cable_is_believed_to_be_wrong_when_two_looks_agree(lab, later, looks, wrong):
    """What LLDP heard before a plug moved lingers: None is a look that sees half of it."""

    def look(state):
        seen = Seen(lab)
        if state is not False:
            seen.exchange("C00010", "C00014")
        found = seen.observations()
        if state is None:
            stale = Seen(lab).observations().switches
            found = replace(found, switches=stale)
        return found

    answers = iter(later)

    async def again(_before):
        return look(next(answers))

    found, looked = asyncio.run(run.agreed(look(True), again, {"environment": sites.LAB}))
    assert looked == looks
    assert any(row.check == "cabling" for row in found.findings) == wrong
