"""Every verb that runs stages, or writes documents or state, is refused while another works on the environment."""

import os
import shutil

import pytest
from typer.testing import CliRunner

from supernode import packaged, workspace
from supernode.bringup import lock
from supernode.cli import main


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The lab environment's documents, in a project of their own."""
    shutil.copytree(packaged.root() / "inventories" / "lab", tmp_path / "inventories" / "lab")
    monkeypatch.setenv("SUPERNODE_ROOT", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    return workspace.find("lab")


VERBS = [
    ["allocate", "lab"],
    ["assign", "lab", "r01u01", "--serial", "SN0042"],
    ["bringup", "lab", "--yes"],
    ["verify", "lab"],
    ["plan", "lab", "--live"],
    ["destroy", "lab", "--yes-destroy", "lab"],
    ["quarantine", "lab", "gpu-001", "--reason", "smoke"],
    ["drain", "lab", "gpu-001", "--reason", "smoke"],
    ["release", "lab", "gpu-001"],
]


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_it_is_refused_and_says_who_works_and_nothing_is_touched(folder, words):
    if words[0] not in ("allocate", "assign"):
        assert CliRunner().invoke(main.app, ["allocate", "lab"]).exit_code == 0
    before = folder.texts()
    with lock.held(folder, "bringup"):
        done = CliRunner().invoke(main.app, words)
    assert done.exit_code == 3, done.output
    assert "is being worked on by" in done.stderr
    assert f"(`supernode bringup`, process {os.getpid()}, since " in done.stderr
    assert folder.texts() == before


@pytest.mark.parametrize(
    "words", [["check", "lab"], ["design", "lab"], ["plan", "lab"], ["allocate", "lab", "--dry-run"]]
)
def test_who_only_looks_is_let_in(folder, words):
    with lock.held(folder, "bringup"):
        done = CliRunner().invoke(main.app, words)
    assert "is being worked on by" not in done.output
