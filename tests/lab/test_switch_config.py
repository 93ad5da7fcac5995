"""SwitchConfig against a real switch: FRR's own parser, reload and running configuration."""

import json
import sys
from pathlib import Path

import pytest
from frr_switch import inside, switch

pytestmark = [pytest.mark.core, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    folder = tmp_path_factory.mktemp("switch")
    with switch(folder):
        printed = inside(sys.executable, str(Path(__file__).parent / "switch_steps.py"), str(folder))
    return json.loads(printed.splitlines()[-1])


def test_the_configuration_is_in_force(seen):
    assert seen["create"] == {"status": "ready", "phase": "", "reason": ""}
    assert "router bgp 65001" in seen["running"]
    assert "198.18.8.0/31" in seen["addresses"]
    assert seen["addresses"].split()[-2:] == ["9000", "1"]
    assert (seen["same"]["drift"], seen["same"]["diff"]) == ([], {})


def test_drift_of_file_and_of_what_runs_is_seen_and_mended(seen):
    assert seen["drifted"]["drift"] == ["+ip route 198.18.77.0/24 blackhole"]
    assert seen["drifted"]["diff"] == {"files[4].content": "update", "files": "update"}
    assert (seen["mended"]["drift"], seen["mended"]["diff"]) == ([], {})


def test_what_frr_does_not_parse_changes_nothing(seen):
    assert (seen["refused"]["status"], seen["refused"]["phase"]) == ("failed", "check")
    assert "garbage" in seen["refused"]["reason"]
    assert seen["after refusal"] == {}


def test_a_change_is_reloaded(seen):
    assert seen["change"] == "ready"
    assert "timers bgp 2 6" in seen["timers"]


def test_delete_gives_the_factory_s_state_back(seen):
    assert "router bgp" not in seen["deleted"]
    assert "198.18.8.0" not in seen["deleted"]
    assert "supernode.conf" not in seen["deleted"]
