import stat
from pathlib import Path

import pytest

from supernode import engine
from supernode.engine import Engine, settings
from supernode.workspace import EnvironmentFolder


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in ("PULUMI_BACKEND_URL", "PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE"):
        monkeypatch.delenv(name, raising=False)
    return EnvironmentFolder("lab", tmp_path / "inventories" / "lab", tmp_path)


ENGINE = Engine(Path("/opt/x/bin/pulumi"), "3.274.1", "cache", "")


def test_state_and_passphrase_lie_under_the_project_by_default(folder):
    found = engine.environment(folder, ENGINE)
    assert found["PULUMI_BACKEND_URL"] == f"file://{folder.root}/.supernode/pulumi?metadata=skip"
    passphrase = Path(found["PULUMI_CONFIG_PASSPHRASE_FILE"])
    assert stat.S_IMODE(passphrase.stat().st_mode) == 0o600
    assert len(passphrase.read_text().strip()) >= 32
    assert found["PATH"].split(":")[0] == "/opt/x/bin"


def test_the_passphrase_is_made_once_and_is_no_variable(folder):
    first = engine.environment(folder, ENGINE)
    text = Path(first["PULUMI_CONFIG_PASSPHRASE_FILE"]).read_text()
    second = engine.environment(folder, ENGINE)
    assert Path(second["PULUMI_CONFIG_PASSPHRASE_FILE"]).read_text() == text
    assert not any(text.strip() in value for value in second.values())


def test_two_first_runs_at_once_have_one_passphrase(folder, monkeypatch):
    """Known bad: both see none, and the second one's takes the place of that which has locked the first one's state."""
    path, make = folder.root / ".supernode" / "passphrase", settings.secrets.token_urlsafe

    def other_run_is_faster(length):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("theirs\n")
        return make(length)

    monkeypatch.setattr(settings.secrets, "token_urlsafe", other_run_is_faster)
    found = engine.environment(folder, ENGINE)
    assert Path(found["PULUMI_CONFIG_PASSPHRASE_FILE"]).read_text() == "theirs\n"
    assert [left.name for left in path.parent.iterdir() if left.is_file()] == ["passphrase"]


def test_nothing_is_fetched_by_the_engine_itself(folder):
    found = engine.environment(folder, ENGINE)
    assert found["PULUMI_SKIP_UPDATE_CHECK"] == "true"
    assert found["PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"] == "true"


def test_a_backend_and_a_passphrase_of_the_team_stay(folder, monkeypatch):
    monkeypatch.setenv("PULUMI_BACKEND_URL", "postgres://state.example/pulumi")
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE_FILE", "/run/keys/team")
    found = engine.environment(folder, ENGINE)
    assert found["PULUMI_BACKEND_URL"] == "postgres://state.example/pulumi"
    assert "PULUMI_CONFIG_PASSPHRASE_FILE" not in found
    assert not (folder.root / ".supernode").exists()


def test_a_wrong_passphrase_names_file_stack_and_the_way_out(folder):
    found = engine.environment(folder, ENGINE)
    error = engine.wrong_passphrase("error: getting secrets manager: incorrect passphrase", "lab-su2", found)
    assert error.where == found["PULUMI_CONFIG_PASSPHRASE_FILE"]
    assert "lab-su2" in error.what
    assert "change-secrets-provider passphrase -s lab-su2" in error.hint
    assert engine.wrong_passphrase("error: something else", "lab", found) is None


def test_an_encrypted_value_keeps_its_salt_when_the_passphrase_is_gone(folder, tmp_path, monkeypatch):
    plain = "encryptionsalt: v1:abc\nconfig:\n  supernode:folder: inventories/lab\n"
    stacks = tmp_path / "stacks"
    stacks.mkdir()
    (stacks / "Pulumi.lab.yaml").write_text(plain)
    (stacks / "Pulumi.mine.yaml").write_text(plain + "  mine:token:\n    secure: v1:xyz\n")
    assert engine.renew_passphrase(folder, stacks) == ["lab"]
    assert (stacks / "Pulumi.lab.yaml").read_text() == plain.partition("\n")[2]
    assert "encryptionsalt" in (stacks / "Pulumi.mine.yaml").read_text()
    (stacks / "Pulumi.lab.yaml").write_text(plain)
    assert engine.renew_passphrase(folder, stacks) == []  # known bad: a passphrase that is there is never given up
    (tmp_path / ".supernode" / "passphrase").unlink()
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "a team's")
    assert engine.renew_passphrase(folder, stacks) == []


def test_half_a_sidecar_is_removed_and_a_whole_one_stays(folder):
    stacks = folder.root / ".supernode" / "pulumi" / ".pulumi" / "stacks" / "supernode"
    stacks.mkdir(parents=True)
    texts = {"lab.json": "{}", "lab.json.attrs": "", "su2.json.attrs": '{"user', "su3.json.attrs": "{}"}
    for name, text in texts.items():
        (stacks / name).write_text(text)
    engine.environment(folder, ENGINE)
    assert {path.name for path in stacks.iterdir()} == {"lab.json", "su3.json.attrs"}
