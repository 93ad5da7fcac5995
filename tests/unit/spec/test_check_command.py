"""`supernode check`: five mistakes, five messages, exit 2, at once, nothing touched."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
LAB = (ROOT / "tests/lab/slim/environment.yml").read_text().replace("name: lab\n", "name: site\n")
MISTAKES = (
    ("cidr: 198.18.4.0/24", "cidr: 198.18.0.128/25"),
    ("user: supernode", "usr: supernode"),
    ("spares: 1", "spares: -1"),
    ("racks: [r03]", "racks: [r04]"),
    ("rail: 10 Mbit/s", "rail: 10"),
)


def check(folder, name):
    command = [sys.executable, "-c", "from supernode.cli.main import main; main()", "check", name]
    environment = {**os.environ, "SUPERNODE_ROOT": str(folder), "NO_COLOR": "1"}
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)


def test_five_mistakes(tmp_path):
    text = LAB
    for right, wrong in MISTAKES:
        assert right in text
        text = text.replace(right, wrong)
    document = tmp_path / "inventories/site/environment.yml"
    document.parent.mkdir(parents=True)
    document.write_text(text)
    done = check(tmp_path, "site")
    lines = [
        int(n) for n in re.findall(r"^error: inventories/site/environment\.yml:(\d+): ", done.stderr, re.MULTILINE)
    ]
    assert done.returncode == 2
    assert lines == [1 + text[: text.index(wrong)].count("\n") for _, wrong in MISTAKES]
    assert done.stdout == ""
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [document]


def test_a_good_environment_exits_with_0(tmp_path):
    document = tmp_path / "inventories/site/environment.yml"
    document.parent.mkdir(parents=True)
    document.write_text(LAB)
    done = check(tmp_path, "site")
    assert (done.returncode, done.stderr) == (0, "")
    assert "9 hosts, 10 switches, 88 cables" in done.stdout


def test_a_copy_that_kept_its_name_is_refused(tmp_path):
    """Stacks are called by the name, state and runs by the folder: a copy must not drive the original's stacks."""
    document = tmp_path / "inventories/copy/environment.yml"
    document.parent.mkdir(parents=True)
    document.write_text(LAB)
    done = check(tmp_path, "copy")
    line = LAB[: LAB.index("name: site")].count("\n") + 1
    assert done.returncode == 2
    assert f"error: inventories/copy/environment.yml:{line}: the environment is called site" in done.stderr
    assert "hint: write `name: copy`" in done.stderr
