"""The provider under the real engine: up, preview, drift on refresh, mended, refused, imported, kill -9, destroyed."""

import signal
import time
from pathlib import Path

import pytest
from engine_stand import Stand, up
from rack import IMAGE, NAME, OTHER_IMAGE, PASSWORD, SLOT

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]


@pytest.fixture
def stand(tmp_path):
    made = Stand(tmp_path)
    try:
        yield made
    finally:
        made.close()


def test_a_machine_s_life_under_the_engine(stand):
    preview = stand.pulumi("preview")
    assert "supernode:index:Machine gpu-001 create" in preview
    assert stand.rack.bmc.state.log == []

    up(stand)
    resource = stand.outputs()
    assert resource["id"] == SLOT
    assert resource["outputs"]["status"] == "ready"
    assert resource["outputs"]["installedImage"] == IMAGE
    assert "unchanged" in stand.pulumi("preview", "--expect-no-changes")

    stand.do(stand.rack.machine.power_off(hard=True))
    shown = stand.pulumi("refresh", "--yes", "--diff")
    assert 'power: "On" => "Off"' in shown
    assert 'power: "Off" => "On"' in stand.pulumi("preview", "--diff")
    up(stand)
    assert stand.outputs()["outputs"]["powerState"] == "On"
    assert stand.rack.host.deploys == 1
    stand.pulumi("preview", "--refresh", "--expect-no-changes")

    text = up(stand, inService=True, image=OTHER_IMAGE)
    assert "left as it is" in text
    assert stand.rack.host.deploys == 1
    stand.rack.host.lies = OTHER_IMAGE
    stand.pulumi("config", "set", "supernode:reinstall", f'["{SLOT}"]')
    stand.pulumi("config", "set", "supernode:plan", "0123456789abcdef")
    stand.pulumi("config", "set", "supernode:until", str(int(time.time()) + 300))
    up(stand, inService=True, image=OTHER_IMAGE)
    assert stand.outputs()["outputs"]["installedImage"] == OTHER_IMAGE
    assert stand.rack.host.deploys == 2
    stand.pulumi("config", "rm", "supernode:reinstall")
    assert "unchanged" in stand.pulumi("preview", "--expect-no-changes")

    state = stand.pulumi("stack", "export")
    assert PASSWORD not in state
    stand.pulumi("destroy", "--yes", "--skip-preview")
    assert stand.rack.machine.power_state() == "On"


def test_a_machine_that_is_late_does_not_fail_the_stack(stand):
    stand.rack.fleet.set_fault(SLOT, "host-never-boots")
    text = up(stand, bios={}, deadlineS=5)
    assert "late in phase deploy" in text
    assert stand.outputs()["outputs"]["status"] == "late"
    assert "supernode:index:Machine gpu-001 update" in stand.pulumi("preview")
    stand.rack.fleet.clear_fault(SLOT)
    up(stand, bios={})
    assert stand.outputs()["outputs"]["status"] == "ready"


def test_strict_fails_the_stack_and_keeps_the_machine(stand):
    stand.declare(bios={}, firmware={"BIOS": "9"}, strict=True)
    text = stand.pulumi("up", "--yes", "--skip-preview", check=False)
    assert "BIOS: baseline 9, found 2.1.3" in text
    assert "Traceback" not in text
    assert stand.outputs()["outputs"]["phase"] == "firmware"
    up(stand, bios={})
    assert stand.outputs()["outputs"]["status"] == "ready"


def children(pid):
    """Return the children of all its threads: the engine starts them from any."""
    listed = [p.read_text().split() for p in Path(f"/proc/{pid}/task").glob("*/children")]
    return [int(child) for words in listed for child in words]


def test_kill_9_of_the_engine_ends_the_provider_and_the_next_up_adopts(stand):
    stand.rack.host.mute = True
    process = stand.start("up", "--yes", "--skip-preview")
    end = time.monotonic() + 60
    while stand.rack.host.boots == 0 and time.monotonic() < end:
        time.sleep(0.1)
    below = children(process.pid)
    assert below
    process.send_signal(signal.SIGKILL)
    process.wait()
    end = time.monotonic() + 15
    while any(Path(f"/proc/{pid}").exists() for pid in below) and time.monotonic() < end:
        time.sleep(0.2)
    assert [pid for pid in below if Path(f"/proc/{pid}").exists()] == []
    assert stand.rack.bmc.access.sessions() == []
    stand.rack.host.mute = False
    stand.do(stand.rack.machine.reset(hard=True))
    end = time.monotonic() + 10
    while stand.rack.records.get(NAME, {}).get("phase") != "firstboot" and time.monotonic() < end:
        time.sleep(0.1)
    stand.pulumi("cancel", "--yes")
    up(stand)
    assert stand.outputs()["outputs"]["status"] == "ready"
    assert stand.rack.host.deploys == 1
