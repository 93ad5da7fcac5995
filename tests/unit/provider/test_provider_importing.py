"""An import starts from an id and the environment's documents, and ends at the inputs that the program would give."""

import json
import shutil
from pathlib import Path

import pytest

from supernode import design, spec, workspace
from supernode.boot import facts
from supernode.errors import CouldNotRun
from supernode.plan import resources as program
from supernode.provider import importing

LAB = Path(__file__).parents[3] / "tests" / "lab" / "slim" / "environment.yml"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SUPERNODE_ROOT", str(tmp_path))
    place = tmp_path / "inventories" / "lab"
    place.mkdir(parents=True)
    shutil.copy(LAB, place / "environment.yml")
    found = workspace.find("lab")
    designed = design.build(spec.read(found.texts()))
    isos = {host.name: "1" * 64 for host in designed.hosts}
    document = {"schema": 1, "design": designed.digest, "image": "a" * 64, "ca": "../../ca.pem", "isos": isos}
    (found.state / "boot.json").write_text(json.dumps(document))
    return found, designed


def test_a_machine_by_slot_or_controller_s_address(folder):
    found, designed = folder
    host = designed.hosts[2]
    wanted = program.machine(designed, host, facts.read(found), found.ssh_key)
    for resource_id in (host.slot, str(host.bmc)):
        assert importing._machine(found.folder, resource_id) == wanted


def test_a_switch_by_slot(folder):
    found, designed = folder
    switch = designed.switches[0]
    wanted = program.switch_config(designed, switch, found.ssh_key)
    read = importing._switch(found.folder, switch.slot)
    assert [f["path"] for f in read["files"]] == [f["path"] for f in wanted["files"]]
    assert {k: v for k, v in read.items() if k not in ("files",)} == {
        k: v for k, v in wanted.items() if k not in ("files",)
    }


@pytest.mark.parametrize("resource_id", ["r09u99", "10.0.0.1", ""])
def test_what_the_design_does_not_know_is_refused(folder, resource_id):
    found, _ = folder
    with pytest.raises(CouldNotRun, match="neither a slot"):
        importing._machine(found.folder, resource_id)
