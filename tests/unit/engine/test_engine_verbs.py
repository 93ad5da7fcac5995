"""The verbs engine, shell and destroy, as typed."""

import json
import subprocess
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from supernode.bringup import provision
from supernode.cli import destroy as destroying
from supernode.cli import shell as shelling
from supernode.cli.destroy import destroy
from supernode.cli.engine import engine


def run(verb, *words, **how):
    app = typer.Typer()
    app.command()(verb)
    return CliRunner().invoke(app, list(words), **how)


def test_engine_says_which_and_why(put_on_path):
    path = put_on_path("v3.280.0")
    found = json.loads(run(engine, "--json").stdout)
    assert (found["path"], found["version"], found["source"]) == (str(path), "3.280.0", "path")
    assert "new enough" in run(engine).stdout


def test_engine_that_may_only_look_ends_with_3_where_there_is_none(machine):
    result = run(engine, "--find")
    assert result.exit_code == 3
    assert "supernode engine" in result.stderr


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """A project with one environment, and a destroy that only writes down that it was called."""
    folder = tmp_path / "inventories" / "lab"
    folder.mkdir(parents=True)
    (folder / "environment.yml").write_text("schema: 1\n")
    monkeypatch.setenv("SUPERNODE_ROOT", str(tmp_path))
    called = []
    monkeypatch.setattr(provision, "destroy", lambda *_, **how: called.append(how) or ["lab"])
    return called


@pytest.mark.parametrize("words", [[], ["--yes-destroy", "other"]])
def test_destroy_touches_nothing_without_the_name(lab, words):
    result = run(destroy, "lab", *words)
    assert result.exit_code == 2
    assert lab == []


def test_destroy_takes_the_name_for_scripts_and_drops_the_outputs(lab, tmp_path):
    outputs = tmp_path / ".supernode" / "lab" / "outputs.json"
    outputs.parent.mkdir(parents=True)
    outputs.write_text("{}")
    result = run(destroy, "lab", "--yes-destroy", "lab", "--json")
    assert json.loads(result.stdout) == {"destroyed": ["lab"]}
    assert lab == [{"stacks": ()}]
    assert not outputs.exists()


def test_destroy_asks_a_person_for_the_name(lab, monkeypatch):
    monkeypatch.setattr(destroying.sys.stdin.__class__, "isatty", lambda _self: True, raising=False)
    monkeypatch.setattr(destroying.typer, "prompt", lambda *_, **__: "lab")
    destroying._confirm("lab", "")
    monkeypatch.setattr(destroying.typer, "prompt", lambda *_, **__: "la")
    with pytest.raises(typer.BadParameter, match="nothing was destroyed"):
        destroying._confirm("lab", "")


def test_the_lines_for_eval_survive_a_shell(tmp_path):
    place = tmp_path / "a folder's"
    place.mkdir()
    lines = shelling._lines(Path(place), {"ODD": "it's $HOME; `x` " + "y" * 300})
    shown = subprocess.run(
        ["sh", "-c", f'{lines}\nprintf "%s|%s" "$ODD" "$PWD"'], capture_output=True, text=True, check=True
    ).stdout
    assert shown == "it's $HOME; `x` " + "y" * 300 + f"|{place}"
