"""A Pulumi project that declares one machine, under the real engine, and the rack that it stands in."""

import asyncio
import gc
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import yaml
from rack import rack

from supernode import engine as engines

PROGRAM = """
import json, pathlib
from supernode.components.sdk import Machine
inputs = json.loads((pathlib.Path(__file__).parent / "inputs.json").read_text())
Machine(inputs["name"], inputs)
"""


class Stand:
    """A rack on a loop in a thread, and a Pulumi project that declares its machine."""

    def __init__(self, folder: Path, made=rack) -> None:
        engine = engines.find()
        if engine is None:
            pytest.skip("no Pulumi engine at hand (`make engine` gets one)")
        self.folder, self.project, self._made = folder / "rack", folder / "project", made
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
            async with self._made(self.folder) as stand:
                self.rack = stand
                self._ready.set()
                await self._stop.wait()

        self.loop.run_until_complete(live())

    def close(self):
        self.loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(20)
        assert not self._thread.is_alive()
        self.loop.close()
        gc.collect()  # what warns when it is collected does so here, not while something else is being imported

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


def up(stand, **changes):
    stand.declare(**changes)
    return stand.pulumi("up", "--yes", "--skip-preview")
