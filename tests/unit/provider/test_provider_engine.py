"""The provider under the real engine: up, preview, drift on refresh, mended, refused, imported, kill -9, destroyed."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import yaml
from rack import IMAGE, NAME, OTHER_IMAGE, PASSWORD, SLOT, rack

from supernode import engine as engines

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

PROGRAM = """
import json, pathlib
from supernode.components.sdk import Machine
inputs = json.loads((pathlib.Path(__file__).parent / "inputs.json").read_text())
Machine(inputs["name"], inputs)
"""


class Stand:
    """A rack on a loop in a thread, and a Pulumi project that declares its machine."""

    def __init__(self, folder: Path) -> None:
        engine = engines.find()
        if engine is None:
            pytest.skip("no Pulumi engine at hand (`make engine` gets one)")
        self.folder, self.project = folder / "rack", folder / "project"
        self.folder.mkdir()
        self._project()
        self.env = self._environment(folder, engine)
        self.loop = asyncio.new_event_loop()
        self._ready, self._stop = threading.Event(), None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._ready.wait(30)
        self.declare()
        self.pulumi("stack", "init", "lab")
        self.pulumi("config", "set", "supernode:folder", str(self.folder))

    def _environment(self, folder, engine):
        (folder / "state").mkdir()
        (folder / "passphrase").write_text("of a test")
        return {
            **os.environ,
            "PATH": f"{engine.path.parent}{os.pathsep}{os.environ['PATH']}",
            "PULUMI_HOME": str(folder / "home"),
            "PULUMI_BACKEND_URL": f"file://{folder / 'state'}",
            "PULUMI_CONFIG_PASSPHRASE_FILE": str(folder / "passphrase"),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "SUPERNODE_PYTHON": sys.executable,
        }

    def _project(self):
        self.project.mkdir()
        document = {
            "name": "supernode",
            "runtime": {"name": "python", "options": {"virtualenv": sys.prefix}},
            "plugins": {"providers": [{"name": "supernode", "path": str(Path(sys.prefix) / "bin")}]},
        }
        (self.project / "Pulumi.yaml").write_text(yaml.safe_dump(document))
        (self.project / "__main__.py").write_text(PROGRAM)

    def _run(self):
        async def live():
            self._stop = asyncio.Event()
            async with rack(self.folder) as stand:
                self.rack = stand
                self._ready.set()
                await self._stop.wait()

        self.loop.run_until_complete(live())

    def close(self):
        self.loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(20)

    def do(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(30)

    def declare(self, **changes):
        (self.project / "inputs.json").write_text(json.dumps({**self.rack.inputs, **changes}))

    def pulumi(self, *words, check=True):
        done = subprocess.run(
            ["pulumi", *words, "--non-interactive"],
            cwd=self.project,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def start(self, *words):
        return subprocess.Popen(
            ["pulumi", *words, "--non-interactive"], cwd=self.project, env=self.env, stdout=subprocess.DEVNULL
        )

    def outputs(self):
        state = json.loads(self.pulumi("stack", "export"))
        return next(r for r in state["deployment"]["resources"] if r["type"] == "supernode:index:Machine")


@pytest.fixture
def stand(tmp_path):
    made = Stand(tmp_path)
    try:
        yield made
    finally:
        made.close()


def up(stand, **changes):
    stand.declare(**changes)
    return stand.pulumi("up", "--yes", "--skip-preview")


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
