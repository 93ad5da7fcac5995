"""Whoever reads an environment from its folder refuses one called otherwise: a copy must not drive the original."""

import importlib.util
import shutil
from pathlib import Path

import pytest

from supernode import packaged, workspace
from supernode.boot import server
from supernode.boot.site import Site
from supernode.bringup import inventory_source
from supernode.cli import inputs
from supernode.errors import Refusal, SupernodeError
from supernode.provider import importing
from supernode.verify import run as verifying

LAB = packaged.root() / "inventories" / "lab" / "environment.yml"


@pytest.fixture
def copy(tmp_path, monkeypatch):
    monkeypatch.setenv("SUPERNODE_ROOT", str(tmp_path))
    place = tmp_path / "inventories" / "copy"
    place.mkdir(parents=True)
    shutil.copy(LAB, place / "environment.yml")
    return workspace.find("copy")


def stack_program(monkeypatch):
    import pulumi

    monkeypatch.setattr(pulumi, "get_stack", lambda: "copy")
    said = []
    monkeypatch.setattr(pulumi.log, "error", said.append)
    path = packaged.root() / "stacks" / "__main__.py"
    program = importlib.util.module_from_spec(importlib.util.spec_from_file_location("stack_program", path))
    with pytest.raises(SystemExit) as ended:
        program.__spec__.loader.exec_module(program)
    return ended.value.code, said


@pytest.mark.parametrize(
    "read",
    [
        inputs.read,
        inventory_source.load,
        lambda folder: verifying.load("copy"),
        lambda folder: Site(folder).design(),
        lambda folder: Site(folder).known(),
        server.run,
        server.ensure_running,
        lambda folder: importing._load(folder.folder),
    ],
    ids=["cli", "inventory", "verify", "served design", "served image", "server", "ensure running", "import"],
)
def test_every_reader_refuses(copy, read):
    with pytest.raises(SupernodeError, match="is called lab and lies in the folder copy"):
        read(copy)


def test_the_refusal_is_wrong_input(copy):
    with pytest.raises(Refusal) as refused:
        inputs.design(copy)
    assert inputs.locator(copy)(refused.value.problems[0]).startswith("inventories/copy/environment.yml:")
    assert Path(copy.root, ".supernode").exists() is False


def test_the_stack_program_refuses(copy, monkeypatch):
    code, said = stack_program(monkeypatch)
    assert code == 32
    assert "is called lab and lies in the folder copy" in said[0]
