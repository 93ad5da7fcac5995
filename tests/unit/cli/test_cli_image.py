"""`supernode image` before a vendor's key has come: what can be built is built."""

import json
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from supernode.boot import facts, image, iso, mirror, vendor
from supernode.bringup import prepare
from supernode.cli.main import app
from supernode.errors import CouldNotRun


@pytest.fixture
def made(monkeypatch, tmp_path):
    """The steps that need root and minutes; the names of those that were taken."""
    steps = []
    ref = SimpleNamespace(digest="d" * 64, path=tmp_path / "image", size=1 << 20, lock=tmp_path / "lock")

    def step(name, answer):
        return lambda *_told, **_how: steps.append(name) or answer

    monkeypatch.setattr(image, "ensure", step("image", ref))
    monkeypatch.setattr(iso, "base", step("medium", None))
    monkeypatch.setattr(facts, "write", step("facts", SimpleNamespace(isos={"r01u01": "a.iso"})))
    monkeypatch.setattr(mirror, "ensure", step("mirror", mirror.MirrorRef(tmp_path / "mirror", {"chrony": "4.3"})))
    monkeypatch.setattr(vendor, "of", lambda *_told: (row,))
    row = vendor.Vendor("gpu_driver.source", "https://x", tmp_path / "key.asc", "", "./", (), ())
    return steps


def test_without_the_key_all_but_the_mirror_is_built(made):
    done = CliRunner().invoke(app, ["image", "lab", "--json"])
    assert done.exit_code == 0
    assert made == ["image", "medium", "facts"]
    found = json.loads(done.stdout)
    assert (found["mirror"], found["mirrored"], found["media"]) == (None, {}, {"r01u01": "a.iso"})
    said = " ".join(done.stderr.split())
    assert "no mirror yet:" in said
    assert "the key of gpu_driver.source is not there" in said
    assert "supernode lab start" in said


def test_with_the_key_the_mirror_is_made(made, monkeypatch):
    monkeypatch.setattr(vendor, "of", lambda *_told: ())
    assert json.loads(CliRunner().invoke(app, ["image", "lab", "--json"]).stdout)["mirrored"] == {"chrony": "4.3"}
    assert made == ["image", "mirror", "medium", "facts"]


def test_a_run_asks_for_the_key_before_it_builds_an_image(made, tmp_path):
    folder = SimpleNamespace(folder=tmp_path, secrets=tmp_path)
    design = SimpleNamespace(software=lambda: None, environment=SimpleNamespace(scheduler=None))
    with pytest.raises(CouldNotRun, match=r"the key of gpu_driver\.source is not there"):
        prepare.prepare(folder, design, lambda _event: None)
    assert made == []
