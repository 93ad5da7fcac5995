"""Faults by name: checked before anything is touched, and remembered for the next start."""

import json

import pytest

from supernode.errors import CouldNotRun
from supernode.lab import faults, inject
from supernode.lab.faults import Standing


def test_defaults_fill_what_is_not_given():
    assert faults.checked("slow-link", ["C00001"], {}).arguments == {"factor": 0.25}
    assert faults.checked("slow-link", ["C00001"], {"factor": "0.5"}).arguments == {"factor": 0.5}
    assert faults.checked("bmc-503", ["gpu-001"], {"rate": 0.3}).arguments["rate"] == 0.3


@pytest.mark.parametrize(
    ("name", "targets", "arguments", "said"),
    [
        ("meteor", ["gpu-001"], {}, "is no fault"),
        ("swap-cable", ["C00001"], {}, "takes CABLE CABLE"),
        ("bmc-dead", [], {}, "takes SERVER"),
        ("slow-link", ["C00001"], {"factor": "much"}, "cannot take factor"),
        ("slow-link", ["C00001"], {"colour": 1}, "takes no argument 'colour'"),
    ],
)
def test_what_cannot_be_is_refused(name, targets, arguments, said):
    with pytest.raises(CouldNotRun, match=said):
        faults.checked(name, targets, arguments)


def test_a_second_fault_in_the_same_place_replaces_the_first(tmp_path):
    standing = Standing(tmp_path / "faults.json")
    standing.add(faults.checked("slow-link", ["C00001"], {"factor": 0.5}))
    standing.add(faults.checked("slow-link", ["C00002"], {}))
    standing.add(faults.checked("slow-link", ["C00001"], {"factor": 0.1}))
    assert [(f.targets, f.arguments["factor"]) for f in standing.read()] == [(("C00002",), 0.25), (("C00001",), 0.1)]


def test_an_exchange_is_the_same_from_both_sides(tmp_path):
    standing = Standing(tmp_path / "faults.json")
    standing.add(faults.checked("swap-cable", ["C00001", "C00002"], {}))
    assert standing.remove(faults.checked("swap-cable", ["C00002", "C00001"], {}))
    assert standing.read() == ()


@pytest.fixture
def no_lab(tmp_path, monkeypatch):
    monkeypatch.setenv("SUPERNODE_LAB_ROOT", str(tmp_path))
    monkeypatch.setattr(inject.cgroups, "top", lambda: tmp_path / "cgroup")
    return tmp_path


def test_without_a_lab_a_fault_waits_for_the_start(no_lab):
    stand = inject.inject("lab", faults.checked("missing-cable", ["C00001"], {}))
    assert [row["name"] for row in stand] == ["missing-cable"]
    assert json.loads((no_lab / "lab" / "faults.json").read_text())[0]["targets"] == ["C00001"]
    assert inject.clear("lab", faults.checked("missing-cable", ["C00001"], {})) == []


def test_without_a_lab_nothing_can_hang(no_lab):
    with pytest.raises(CouldNotRun, match="no lab runs"):
        inject.inject("lab", faults.checked("host-hung", ["gpu-001"], {}))


def test_clearing_what_does_not_stand_says_so(no_lab):
    with pytest.raises(CouldNotRun, match="has no fault"):
        inject.clear("lab", faults.checked("missing-cable", ["C00001"], {}))
