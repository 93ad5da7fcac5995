"""The module that places a role's whole set of files."""

import importlib.util
import json
import pwd
from os import getuid

import pytest
from ansible.module_utils.testing import patch_module_args

from supernode import packaged

ME = pwd.getpwuid(getuid()).pw_name


@pytest.fixture
def module(tmp_path, monkeypatch):
    place = packaged.root() / "playbooks" / "plugins" / "modules" / "supernode_files.py"
    found = importlib.util.spec_from_file_location("supernode_files", place)
    loaded = importlib.util.module_from_spec(found)
    found.loader.exec_module(loaded)
    monkeypatch.setattr(loaded, "RECORDS", tmp_path / "records")
    return loaded


@pytest.fixture
def call(module, capsys):
    """Run the module with arguments and return what it answered."""

    def run(check=False, **arguments):
        arguments = {"role": "rails", "_ansible_check_mode": check, "_ansible_diff": True, **arguments}
        with patch_module_args(arguments), pytest.raises(SystemExit):
            module.main()
        return json.loads(capsys.readouterr().out)

    return run


def entry(path, content="text\n", mode="0644"):
    return {"path": str(path), "content": content, "mode": mode, "owner": ME}


def test_a_set_is_placed_applied_and_then_left_alone(tmp_path, call):
    wanted = [entry(tmp_path / "deep" / "a"), entry(tmp_path / "b", "other\n", "0600")]
    first = call(files=wanted)
    assert first["changed"]
    assert first["placed"] == [f["path"] for f in wanted]
    assert (tmp_path / "deep" / "a").read_text() == "text\n"
    assert (tmp_path / "b").stat().st_mode & 0o7777 == 0o600
    assert call(state="applied")["changed"]
    assert not call(files=wanted)["changed"]
    assert not call(state="applied")["changed"]


def test_a_run_that_died_before_applying_is_taken_up(tmp_path, call):
    wanted = [entry(tmp_path / "a")]
    call(files=wanted)
    second = call(files=wanted)
    assert second["changed"]
    assert second["pending"]
    assert second["placed"] == []


def test_what_left_the_set_is_removed_and_nothing_else(tmp_path, call):
    (tmp_path / "foreign").write_text("not ours\n")
    call(files=[entry(tmp_path / "a"), entry(tmp_path / "b")])
    call(state="applied")
    answer = call(files=[entry(tmp_path / "a")])
    assert answer["removed"] == [str(tmp_path / "b")]
    assert not (tmp_path / "b").exists()
    assert (tmp_path / "foreign").exists()


def test_what_another_role_placed_stays(tmp_path, call):
    call(role="time_synced", files=[entry(tmp_path / "clock")])
    call(role="rails", files=[entry(tmp_path / "a")])
    call(role="rails", files=[])
    assert (tmp_path / "clock").exists()
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("spoil", ["content", "mode", "removal", "symlink"])
def test_drift_is_mended(tmp_path, call, spoil):
    path = tmp_path / "a"
    call(files=[entry(path)])
    call(state="applied")
    if spoil == "content":
        path.write_text("edited\n")
    elif spoil == "mode":
        path.chmod(0o666)
    else:
        path.unlink()
    if spoil == "symlink":
        (tmp_path / "elsewhere").write_text("text\n")
        path.symlink_to(tmp_path / "elsewhere")
    answer = call(files=[entry(path)])
    assert answer["changed"]
    assert answer["diff"][0]["before"] != answer["diff"][0]["after"]
    assert not path.is_symlink()
    assert (path.read_text(), path.stat().st_mode & 0o7777) == ("text\n", 0o644)


def test_a_check_run_says_the_same_and_touches_nothing(tmp_path, call):
    path = tmp_path / "a"
    dry = call(check=True, files=[entry(path)])
    assert dry["changed"]
    assert dry["diff"][0]["after"] == "text\n"
    assert list(tmp_path.iterdir()) == []
    assert call(files=[entry(path)])["placed"] == dry["placed"]


@pytest.mark.parametrize("path", ["relative/a", "/a/../b", "/tmp"])
def test_what_is_no_file_by_an_absolute_path_is_refused(call, path):
    assert "not the absolute path of a file" in call(files=[entry(path)])["msg"]


def test_a_file_named_twice_is_refused(tmp_path, call):
    answer = call(files=[entry(tmp_path / "a"), entry(tmp_path / "a", "other\n")])
    assert answer["failed"]
    assert not (tmp_path / "a").exists()


def test_half_a_file_never_takes_the_name(tmp_path, module, monkeypatch):
    path = tmp_path / "a"
    path.write_text("old\n")
    monkeypatch.setattr(module.os, "fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        module.write(path, "new\n", 0o644, getuid())
    assert path.read_text() == "old\n"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
