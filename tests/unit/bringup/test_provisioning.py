"""The provisioning stage on a fake engine: fence before takeover, machines.yml first, and every cut is made good."""

import time

import pytest
import straggling
from straggling import DEAD, KilledError, World

from supernode import design as designing
from supernode import spec, workspace
from supernode.bringup import provisioning
from supernode.errors import CouldNotRun


@pytest.fixture
def world(tmp_path, monkeypatch):
    return lambda **how: World(tmp_path, monkeypatch, **how)


def test_nobody_fails_and_one_update_is_all(world):
    site = world(dead=())
    stage, found = site.run()
    assert site.steps == ["up"]
    assert found.design == stage.design.digest
    assert workspace.read_outputs(site.folder) == found


def test_quarantine_is_written_before_the_fence_and_the_fence_is_seen_before_the_takeover(world):
    site = world()
    stage, found = site.run()
    assert site.steps == [
        "up",
        "before writing machines",
        "after writing machines",
        "prepare",
        "revoke gpu-002",
        "revoke gpu-005",
        "fence",
        "look",
        "before writing machines",
        "after writing machines",
        "prepare",
        "up",
    ]
    states = site.states()
    assert (states["gpu-002"][0], states["gpu-005"][0]) == ("quarantined", "quarantined")
    assert states["gpu-009"] == ("new", stage.design.host("gpu-002").slot)
    assert found.design == stage.design.digest == designing.build(site.documents()).digest
    assert workspace.read_outputs(site.folder) == found


def test_what_is_not_fenced_is_not_replaced(world):
    site = world(deaf=["su01-leaf0"])
    site.run()
    assert site.states()["gpu-009"] == ("spare", "")
    site.deaf.clear()
    site.run()
    assert site.states()["gpu-009"][0] == "new"


LEAVES = [f"su01-leaf{rail}" for rail in range(8)]


def came_up_before(site, name="gpu-002"):
    """A site where a slot is quarantined that was fenced, with its spare, by a run of long ago."""
    site.last = straggling.outputs(site.design())
    assert site.states()[name][0] == "quarantined"
    return site


def quarantined_by_hand(world, **how):
    return came_up_before(world(dead=(), gpu_002="quarantined", **how))


def test_before_a_takeover_the_leaves_and_the_spares_are_looked_at_and_nobody_else(world):
    site = quarantined_by_hand(world)
    site.run()
    assert site.steps.index("look") < site.steps.index("before writing machines")
    ((names, until),) = site.looked
    assert names == [*LEAVES, "gpu-009"]
    assert until <= time.time() + provisioning.LOOK_S
    assert site.states()["gpu-009"][0] == "new"


def test_a_leaf_that_does_not_answer_has_not_fenced_whatever_the_state_says_of_it(world):
    """Known bad: the state says ready, with the designed files, of a switch that nobody has reached since."""
    site = quarantined_by_hand(world)
    site.silent = {"su01-leaf3"}
    stage, found = site.run()
    assert site.states()["gpu-009"] == ("spare", "")
    (row,) = [f for f in stage.findings(found) if f.place == "gpu-002"]
    assert "not fenced, so not replaced: su01-leaf3 is late in contact: cannot be read: no login" in row.cause
    assert workspace.read_outputs(site.folder) == found
    site.silent.clear()
    site.run()
    assert site.states()["gpu-009"][0] == "new"


def test_a_spare_that_does_not_answer_takes_over_for_nobody_whatever_the_state_says_of_it(world):
    site = quarantined_by_hand(world)
    site.silent = {"gpu-009"}
    stage, found = site.run()
    assert site.states()["gpu-009"] == ("spare", "")
    causes = {f.place: f.cause for f in stage.findings(found)}
    assert "no spare is ready" in causes["gpu-002"]
    assert "cannot be read" in causes["gpu-009"]


def test_a_leaf_that_was_opened_meanwhile_is_fenced_anew_before_the_takeover(world):
    site = quarantined_by_hand(world)
    site.opened = {"su01-leaf3"}
    site.run()
    assert site.steps.index("look") < site.steps.index("fence") < site.steps.index("before writing machines")
    assert site.states()["gpu-009"][0] == "new"


def test_a_leaf_that_was_opened_and_cannot_be_shut_is_no_fence(world):
    site = quarantined_by_hand(world)
    site.opened = {"su01-leaf3"}

    def fence(_folder, design, _on_event):
        return straggling.outputs(design, deaf=["su01-leaf3"])

    provisioning.provision.fence = fence
    site.run()
    assert site.states()["gpu-009"] == ("spare", "")


def test_all_of_it_has_the_budget_of_the_stage_once(world):
    site = world()
    site.run()
    assert len(site.until) == 2
    assert site.until[0] == site.until[1]


def test_who_missed_the_first_update_is_not_asked_again_in_the_same_run(world):
    site = world(dead=["gpu-002", "gpu-003"], gpu_003="in_service")
    site.run()
    assert site.steps[-1] == "up without gpu-003"
    assert site.states()["gpu-003"] == ("in_service", "")


def test_too_many_failed_and_nothing_is_written(world):
    site = world(dead=[f"gpu-00{n}" for n in range(1, 6)])
    stage, _ = site.run()
    assert site.steps == ["up"]
    assert "it is the site" in stage.site
    assert any("it is the site" in event.detail for event in site.events)


CUTS = range(1, 13)


@pytest.mark.parametrize("cut", CUTS)
def test_a_run_that_is_killed_anywhere_is_finished_by_the_next(world, cut):
    site = world()
    site.cut = cut
    with pytest.raises(KilledError):
        site.run()
    site.run()
    states = site.states()
    quarantined = [name for name, (state, _) in states.items() if state == "quarantined"]
    assert quarantined == list(DEAD)
    assert states["gpu-009"][0] == "new"
    assert [name for name, (_, replaces) in states.items() if replaces] == ["gpu-009"]
    before, site.steps = states, []
    site.run()
    assert (site.states(), site.steps) == (before, [*(f"revoke {name}" for name in DEAD), "up"])


def test_the_cuts_are_all_the_steps_that_there_are(world):
    site = world()
    site.run()
    assert len(site.steps) == CUTS[-1]


def test_a_fence_that_cannot_run_leaves_what_was_written(world, monkeypatch):
    site = world()

    def broken(*_):
        raise CouldNotRun("stack lab", "is locked")

    with monkeypatch.context() as patch:
        patch.setattr(provisioning.provision, "fence", broken)
        with pytest.raises(CouldNotRun):
            site.run()
    assert site.states()["gpu-002"][0] == "quarantined"
    assert site.states()["gpu-009"][0] == "spare"
    site.run()
    assert site.states()["gpu-009"][0] == "new"


def test_what_a_person_writes_meanwhile_stays(world):
    site = world()
    slot = designing.build(site.documents()).host("gpu-002").slot

    def up(folder, design, on_event, **how):
        found = World.up(site, folder, design, on_event, **how)
        if site.steps == ["up"]:
            now = site.documents().machines
            theirs = now.slots[slot].model_copy(update={"state": spec.SlotState.DRAINED, "reason": "smoke"})
            text = spec.machines_text(now.model_copy(update={"slots": {**now.slots, slot: theirs}}))
            site.folder.document("machines").write_text(text)
        return found

    provisioning.provision.up = up
    site.run()
    assert site.states()["gpu-002"] == ("drained", "")
    assert site.states()["gpu-005"][0] == "quarantined"
    assert site.states()["gpu-009"][1] == designing.build(site.documents()).host("gpu-005").slot
