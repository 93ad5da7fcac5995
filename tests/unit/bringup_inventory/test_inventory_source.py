"""Where the inventory's halves are read from."""

import json
import shutil

import pytest

from supernode import design, packaged, spec, workspace
from supernode.bringup import inventory_source, provision
from supernode.errors import CouldNotRun
from supernode.records import DeviceOutput, Outputs

LAB = packaged.root() / "tests" / "lab" / "slim" / "environment.yml"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv("SUPERNODE_ROOT", raising=False)
    place = tmp_path / "inventories" / "lab"
    place.mkdir(parents=True)
    shutil.copy(LAB, place / "environment.yml")
    return inventory_source.environment_of(place / "supernode.yml")


def outputs(folder):
    lab = design.build(spec.read(folder.texts()))
    devices = [(h, "machine") for h in lab.hosts] + [(s, "switch") for s in lab.switches]
    rows = {
        d.name: DeviceOutput(d.name, kind, d.slot, str(d.management.ip), host_keys=("ssh-ed25519 AAAA",))
        for d, kind in devices
    }
    return Outputs("lab", lab.digest, rows)


def test_the_root_is_that_of_the_file_wherever_the_process_was_started(folder, tmp_path):
    assert (folder.name, folder.root) == ("lab", tmp_path)


def test_a_named_root_wins(tmp_path, monkeypatch):
    monkeypatch.setenv("SUPERNODE_ROOT", str(tmp_path / "elsewhere"))
    assert inventory_source.environment_of(tmp_path / "lab" / "supernode.yml").root == tmp_path / "elsewhere"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "nothing was provisioned"),
        ("{", "cannot be read"),
        ('{"schema": 99}', "schema 99"),
        ("[]", "cannot be read"),
    ],
)
def test_outputs_that_are_not_there_are_said(folder, text, said):
    if text is not None:
        (folder.state / "outputs.json").write_text(text)
    with pytest.raises(CouldNotRun, match=said) as refused:
        workspace.read_outputs(folder)
    assert "supernode bringup lab --only provision" in refused.value.hint


def test_known_hosts_is_written_when_it_is_missing_or_old_and_left_alone_otherwise(folder):
    found = outputs(folder)
    path = inventory_source.pin(folder, found)
    first = path.stat().st_ino
    assert inventory_source.pin(folder, found).stat().st_ino == first
    path.write_text("198.18.0.11 ssh-ed25519 WRONG\n")
    inventory_source.pin(folder, found)
    assert "WRONG" not in path.read_text()


def test_the_two_sources_give_the_same_inventory(folder, monkeypatch):
    found = outputs(folder)
    (folder.state / "outputs.json").write_text(json.dumps(found.to_json()))
    recorded = inventory_source.load(folder)
    (folder.state / "outputs.json").unlink()
    monkeypatch.setattr(provision, "outputs", lambda asked: found if asked == folder else None)
    assert inventory_source.load(folder, "stack") == recorded
