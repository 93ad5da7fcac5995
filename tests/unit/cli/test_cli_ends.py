"""How the command line ends: wrong input with 2, what could not run with 3, and never with 1 by accident."""

import json
import os
import socket
import sys

import pytest
from typer.testing import CliRunner

from supernode.cli import inputs, main
from supernode.errors import CouldNotRun, WrongInput
from supernode.lab import artefacts, control, faults, inject, places


@pytest.fixture(autouse=True)
def labs(tmp_path, monkeypatch):
    monkeypatch.setenv("SUPERNODE_LAB_ROOT", str(tmp_path / "labs"))
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path / "labs"


def call(*words):
    return CliRunner().invoke(main.app, list(words))


def ends(monkeypatch, capsys, error):
    """Run main() over an app that ends with the error; return the exit code and what it said."""

    def app():
        raise error

    monkeypatch.setattr(main, "app", app)
    with pytest.raises(SystemExit) as ended:
        main.main()
    return ended.value.code, capsys.readouterr().err


def test_an_error_that_nobody_foresaw_ends_with_3_and_without_a_traceback(monkeypatch, capsys):
    monkeypatch.delenv("SUPERNODE_TRACEBACK", raising=False)
    code, said = ends(monkeypatch, capsys, KeyError("slot"))
    assert code == 3
    assert said.startswith("error: KeyError: 'slot'\n\nhint: ")
    assert "SUPERNODE_TRACEBACK=1" in said
    assert "Traceback" not in said


def test_its_traceback_is_there_for_who_asks(monkeypatch, capsys):
    monkeypatch.setenv("SUPERNODE_TRACEBACK", "1")
    code, said = ends(monkeypatch, capsys, KeyError("slot"))
    assert code == 3
    assert "Traceback" in said
    assert "error: KeyError: 'slot'" in said


@pytest.mark.parametrize(("kind", "wanted"), [(CouldNotRun, 3), (WrongInput, 2)])
def test_an_error_of_ours_keeps_its_words_and_code(monkeypatch, capsys, kind, wanted):
    code, said = ends(monkeypatch, capsys, kind("gpu-001", "is off", "power it on"))
    assert (code, said) == (wanted, "error: gpu-001: is off\n\nhint: power it on\n")


def test_an_exit_code_of_a_verb_passes(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["supernode", "check", "nowhere-at-all"])
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 2


@pytest.mark.parametrize(
    "words",
    [
        ["check", "nowhere-at-all"],
        ["show", "lab", "gpu-999"],
        ["show", "lab", "~"],
        ["show", "lab", "gpu-001", "--file", "/nothing"],
        ["assign", "lab"],
        ["assign", "lab", "--sheet", "/nowhere-at-all"],
        ["assign", "lab", "--sheet", "/tmp", "--serial", "7"],
        ["lab", "console", "No!", "gpu-001"],
        ["lab", "fault", "lab", "meteor", "gpu-001"],
        ["lab", "fault", "lab", "swap-cable", "C00001"],
        ["lab", "fault", "lab", "slow-link", "C00001", "--set", "factor"],
        ["lab", "fault", "lab", "slow-link", "C00001", "--set", "factor=much"],
    ],
    ids=" ".join,
)
def test_wrong_input_ends_with_2_and_a_hint(words):
    done = call(*words)
    assert done.exit_code == 2, done.output
    assert done.stderr.startswith("error: ")
    assert "\nhint: " in done.stderr


def test_a_run_that_is_not_there_is_wrong_input_and_none_yet_could_not_run(tmp_path, monkeypatch):
    folder, _ = inputs.find("lab")
    monkeypatch.setattr(type(folder), "runs", tmp_path)
    none_yet = call("report", "lab")
    assert none_yet.exit_code == 3
    assert "supernode bringup lab" in none_yet.stderr
    (tmp_path / "20261130-1").mkdir()
    (tmp_path / "20261130-1" / "run.json").write_text("{}")
    other = call("report", "lab", "20250101")
    assert other.exit_code == 2
    assert "`supernode runs lab` lists them" in other.stderr


def test_a_request_that_was_wrong_stays_wrong_over_the_socket(monkeypatch):
    ours, theirs = socket.socketpair()
    reply = {"ok": False, "where": "C9", "what": "is no cable of this lab", "hint": "name it", "wrong": True}
    theirs.sendall(json.dumps(reply).encode() + b"\n")

    class Connected(socket.socket):
        def __init__(self, *_):
            super().__init__(fileno=ours.detach())

        def connect(self, address):
            pass

    monkeypatch.setattr(control.socket, "socket", Connected)
    with pytest.raises(WrongInput, match="is no cable"):
        control.ask(places.labs_root() / "lab" / "control.sock", {"do": "fault"})
    theirs.close()


@pytest.fixture
def another_s(labs):
    """A lab's folder that this process may not enter; root gives up its rights for the test."""
    folder = labs / "lab"
    folder.mkdir(parents=True)
    (folder / "faults.json").write_text("[]")
    folder.chmod(0)
    call("lab", "status", "none-such")  # imports what it needs while this process may read it
    was = os.geteuid()
    if was == 0:
        os.seteuid(65534)
    yield folder
    if was == 0:
        os.seteuid(0)
    folder.chmod(0o700)


@pytest.mark.parametrize(
    "reach",
    [
        lambda folder: control.ask(folder / "control.sock", {"do": "status"}),
        lambda folder: faults.Standing(folder / "faults.json").read(),
        lambda folder: faults.Standing(folder / "faults.json").add(faults.checked("slow-link", ["C00001"], {})),
        lambda folder: artefacts.read(folder / "artefacts"),
        lambda folder: inject.standing("lab"),
    ],
    ids=["status", "faults", "fault", "artefacts", "standing"],
)
def test_without_root_a_lab_says_that_it_needs_root(another_s, reach):
    with pytest.raises(CouldNotRun, match=r"^lab: needs root$") as refused:
        reach(another_s)
    assert refused.value.hint == "sudo supernode lab …"


@pytest.mark.parametrize(
    "words", [["lab", "status", "lab"], ["lab", "fault", "lab"], ["lab", "console", "lab", "gpu-001"]], ids=" ".join
)
def test_the_lab_s_verbs_end_with_3_without_root(words, another_s):
    done = call(*words)
    assert done.exit_code == 3, done.output
    assert done.stderr == "error: lab: needs root\n\nhint: sudo supernode lab …\n"
