"""A lab of its own for the tests: the lab environment under another name and /19, in a folder that goes away."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
PLACE = Path("/var/tmp/supernode-tests")
SUPERNODE = Path(sys.executable).with_name("supernode")


@dataclass
class Site:
    root: Path
    name: str

    @property
    def folder(self) -> Path:
        return self.root / "inventories" / self.name

    def environ(self) -> dict[str, str]:
        return {**os.environ, "SUPERNODE_ROOT": str(self.root), "PATH": f"{SUPERNODE.parent}:{os.environ['PATH']}"}

    def call(self, *command: str, timeout: int = 900, **more) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.root,
            env=self.environ(),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            **more,
        )

    def supernode(self, *words: str, expect: int = 0, timeout: int = 900) -> str:
        done = self.call(str(SUPERNODE), *words, timeout=timeout)
        assert done.returncode == expect, (
            f"{words}: exit {done.returncode}\n{done.stdout[-6000:]}\n{done.stderr[-6000:]}"
        )
        return done.stdout

    def json(self, *words: str, expect: int = 0, timeout: int = 900):
        return json.loads(self.supernode(*words, "--json", expect=expect, timeout=timeout))


def last_run(site: Site):
    """Return the record of the environment's newest run."""
    newest = max((site.root / "runs" / site.name).glob("*-*-*/run.json"))
    return json.loads(newest.read_text())


def make(name: str, third_octet: int, like: str = "slim", **changes: str) -> Site:
    """Copy an environment as `name` in 198.18.<third_octet>.0/19; `changes` replaces texts in it.

    `like` is "slim" (tests/lab/slim: machines and fabric alone, for tests of nothing else) or a folder of inventories/.

    The folder is always the same one, so that what a killed run left behind is found and stopped by the next.
    """
    assert third_octet % 32 == 0
    site = Site(PLACE / name, name)
    if site.root.exists():
        forget(site)
    PLACE.mkdir(mode=0o700, exist_ok=True)
    site.folder.mkdir(parents=True)
    root = site.root
    source = CHECKOUT / "tests" / "lab" / "slim" if like == "slim" else CHECKOUT / "inventories" / like
    own = "lab" if like == "slim" else like
    text = (source / "environment.yml").read_text()
    text = re.sub(r"198\.18\.(\d+)\.", lambda m: f"198.18.{int(m[1]) + third_octet}.", text)
    text = text.replace(f"name: {own}\n", f"name: {name}\n")
    for old, new in changes.items():
        assert old in text, old
        text = text.replace(old, new)
    (site.folder / "environment.yml").write_text(text)
    plugin = (CHECKOUT / "inventories" / "lab" / "supernode.yml").read_text()
    (site.folder / "supernode.yml").write_text(plugin.replace("lab", name))
    for shared in ("Pulumi.yaml", "stacks", "playbooks", "templates", "ansible.cfg", "tests", ".venv"):
        (root / shared).symlink_to(CHECKOUT / shared)
    return site


def forget(site: Site) -> None:
    """Stop what was started, and remove the folder."""
    site.call(str(SUPERNODE), "serve", site.name, "--stop", timeout=60)
    site.call(str(SUPERNODE), "lab", "stop", site.name, timeout=120)
    shutil.rmtree(site.root, ignore_errors=True)
