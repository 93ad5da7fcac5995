"""The interlock under the real engine: plain `pulumi up` is held and names the sensor; an override is recorded."""

import functools
import re

import pytest
from cooled_rack import cooled
from engine_stand import Stand, up

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

UNIT = "cdu2"  # speaks Redfish, with a password to keep; test_provider_interlock.py has each fault at either kind


@pytest.fixture
def stand(tmp_path):
    made = Stand(tmp_path, functools.partial(cooled, kind=UNIT))
    try:
        yield made
    finally:
        made.close()


async def called(work, *arguments):
    """Do it in the loop of the rack."""
    return work(*arguments)


def test_up_is_held_by_a_wet_a_silent_and_a_frozen_unit_and_goes_on_when_told_why(stand):
    hall = stand.rack.hall
    said = {
        "leak": f"leak detector {UNIT}:tray is critical: wet; not switched on",
        "cdu-silent": f"{UNIT} cannot be read: ",
        "freeze-cdu": f"{UNIT} is stale: it answers, and its values stand still",
    }
    arguments = {"leak": {"state": "critical"}}
    for fault, words in said.items():
        stand.do(called(hall.set_fault, fault, "r01", arguments.get(fault, {})))
        text = up(stand, bios={})
        assert re.search(r"gpu-001: failed in phase (boot|power): interlock: ", text), text
        assert words in text
        found = stand.outputs()["outputs"]
        assert (found["status"], found["cooling"]["verdict"]) == ("failed", "held")
        assert words in found["reason"]
        stand.do(called(hall.clear_fault, fault, "r01"))
    assert stand.rack.resets() == []
    assert stand.rack.host.deploys == 0

    stand.do(called(hall.set_fault, "leak", "r01", {"state": "critical"}))
    reason = "wet since the flush, seen dry by hand"
    text = up(stand, bios={}, interlock={**stand.rack.inputs["interlock"], "override": reason})
    assert f"overridden: {reason}" in text
    found = stand.outputs()["outputs"]
    assert (found["status"], found["cooling"]["verdict"]) == ("ready", "overridden")
    assert found["cooling"]["override"] == reason
    assert (stand.folder / "cdu-password").read_text() not in stand.pulumi("stack", "export")
