"""A support bundle holds what it should; one secret anywhere in it, in any dress, and there is none."""

import base64
import hashlib
import json
import re
import stat
import tarfile

import pytest
from typer.testing import CliRunner

from supernode import design, packaged, spec
from supernode.boot import tls
from supernode.boot.enrolment import Enrolment
from supernode.boot.sshkey import ensure
from supernode.bringup import bundle
from supernode.bringup.bundle import contents, looked_for
from supernode.cli.main import app
from supernode.errors import CouldNotRun
from supernode.workspace import EnvironmentFolder

LAB = (packaged.root() / "tests" / "lab" / "slim" / "environment.yml").read_text()
PASSWORD, PASSPHRASE = "bmc-Passw0rd/of+the=site", "kD93-passphrase-of-the-state"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    place = tmp_path / "inventories" / "lab"
    (place / "delivery").mkdir(parents=True)
    (place / "environment.yml").write_text(LAB)
    for path, text in ((place / "secrets/bmc/r01u01", PASSWORD), (tmp_path / ".supernode/passphrase", PASSPHRASE)):
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text + "\n")
        path.chmod(0o600)
    found = EnvironmentFolder("lab", place, tmp_path)
    for number in range(7):
        run = found.runs / f"20261130-18450{number}-aaaa"
        run.mkdir(parents=True)
        (run / "run.json").write_text('{"id": "x"}')
        (run / "ansible.log").write_text("PLAY RECAP\n")
    (found.state / "outputs.json").write_text("{}")
    ensure(found)
    monkeypatch.setenv("SUPERNODE_ROOT", str(tmp_path))
    monkeypatch.setenv("SUPERNODE_LAB_ROOT", str(tmp_path / "labs"))
    monkeypatch.setattr(contents.engines, "find", lambda: None)
    return found


def newest(folder):
    return max(folder.runs.glob("*/ansible.log"))


def run(folder, *words):
    return CliRunner().invoke(app, ["bundle", "lab", "--out", str(folder.root / "out" / "b.tar.gz"), *words])


def test_a_clean_one_is_written(folder):
    told = run(folder, "--json", "--last", "2")
    assert told.exit_code == 0, told.output
    path = folder.root / "out" / "b.tar.gz"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with tarfile.open(path) as archive:
        names = archive.getnames()
        listing = json.load(archive.extractfile("lab/contents.json"))
    assert {"lab/documents/environment.yml", "lab/state/outputs.json", "lab/machine.json", "lab/plan.json"} <= set(
        names
    )
    assert [n.split("/")[2] for n in names if n.endswith("ansible.log")] == [
        "20261130-184505-aaaa",
        "20261130-184506-aaaa",
    ]
    assert not any("ed25519" in n or "passphrase" in n or "delivery" in n for n in names)
    assert "file:secrets/bmc/r01u01" in listing["searched_for"]
    assert ".supernode/passphrase" in listing["searched_for"]
    assert "inventories/lab/secrets/ssh_id_ed25519" in listing["searched_for"]
    assert listing["not_searched_for"] == {}
    assert listing["files"]["stacks"]["note"].startswith("not exported")


def private_line(folder):
    return folder.ssh_key_file.read_text().splitlines()[2]


PLANTED = {
    "password": (lambda f: PASSWORD, "file:secrets/bmc/r01u01"),
    "basic": (lambda f: base64.b64encode(f"admin:{PASSWORD}".encode()).decode(), "file:secrets/bmc/r01u01"),
    "passphrase": (lambda f: PASSPHRASE, ".supernode/passphrase"),
    "key": (private_line, "inventories/lab/secrets/ssh_id_ed25519"),
    "token": (lambda f: Enrolment(f.state).issue("gpu-003"), "the token of gpu-003"),
}


@pytest.mark.parametrize("which", PLANTED)
def test_one_with_a_secret_is_refused(folder, which):
    make, name = PLANTED[which]
    secret = make(folder)
    newest(folder).write_text(f"PLAY RECAP\nsent {secret} to nobody\n")
    told = run(folder)
    assert told.exit_code == 3
    assert f"runs/20261130-184506-aaaa/ansible.log holds {name}" in told.stderr
    assert secret not in told.output + told.stderr
    assert list((folder.root / "out").glob("*")) == [] if (folder.root / "out").exists() else True


def test_a_variable_with_a_telling_name_is_looked_for(folder, monkeypatch):
    monkeypatch.setenv("PULUMI_ACCESS_TOKEN", "pul-0123456789abcdef")
    newest(folder).write_text("pul-0123456789abcdef")
    assert "holds $PULUMI_ACCESS_TOKEN" in run(folder).stderr


def test_the_vault_s_token_is_looked_for(folder, monkeypatch, tmp_path):
    """Known bad: where the vault's own client leaves it, nobody looked."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".vault-token").write_text("hvs.0123456789abcdefgh\n")
    newest(folder).write_text("X-Vault-Token: hvs.0123456789abcdefgh")
    told = run(folder)
    assert told.exit_code == 3
    assert "ansible.log holds .vault-token" in told.stderr


def test_the_certificate_that_machines_trust_is_in_it_and_its_key_is_not(folder):
    """Known bad: the bundle named the place where the certificate lay in former times."""
    tls.ensure(folder, "127.0.0.1")
    told = run(folder, "--json")
    assert told.exit_code == 0, told.output
    names = [row["name"] for row in json.loads(told.stdout)["files"]]
    assert "state/serve-ca.pem" in names
    assert not any(name.endswith(".key") for name in names)


def test_what_cannot_be_looked_for_is_said(folder):
    text = re.sub(r"\n  factory: .*", "", LAB.replace("file:secrets/bmc/{slot}", "exec:false"))
    (folder.folder / "environment.yml").write_text(text)
    told = run(folder, "--json")
    assert told.exit_code == 0
    assert json.loads(told.stdout)["not_searched_for"] == {"exec:false": "ended with status 1"}
    assert "warning: not searched for exec:false" in told.stderr


def test_wrong_documents_are_what_a_bundle_is_for(folder):
    (folder.folder / "environment.yml").write_text("name: [\n")
    told = run(folder, "--json")
    assert told.exit_code == 0
    assert "documents/environment.yml" in [row["name"] for row in json.loads(told.stdout)["files"]]


def test_a_reference_by_slot_stands_for_each_slot():
    computed = design.build(spec.read({"environment": LAB}))
    places = ("secrets/bmc", "delivery/bmc-factory")
    assert looked_for.references(computed) == [f"file:{p}/{host.slot}" for p in places for host in computed.hosts]


def test_a_long_log_keeps_its_end(folder, monkeypatch):
    monkeypatch.setattr(contents, "LONGEST", 16)
    newest(folder).write_text("x" * 100 + "the end of it all")
    item = next(i for i in bundle.gather(folder, None, 1) if i.name.endswith("ansible.log"))
    assert item.data == b"he end of it all"
    assert "of 117 bytes" in item.note


def test_a_digest_is_no_token(folder):
    Enrolment(folder.state).issue("gpu-001")
    digest = base64.urlsafe_b64encode(hashlib.sha256(b"x").digest()).decode().rstrip("=")
    newest(folder).write_text(digest)
    assert run(folder).exit_code == 0


def test_a_value_that_only_looks_like_a_reference_is_not_run(folder):
    """A survey copies what controllers say into such places, and `exec:` runs a command."""
    text = LAB.replace("\nmachines:\n", f"\nmachines:\n  firmware: {{BIOS: 'exec:touch {folder.root}/ran'}}\n", 1)
    assert "exec:touch" in text
    computed = design.build(spec.read({"environment": text}))
    assert not any("touch" in ref for ref in looked_for.references(computed))
    (folder.folder / "environment.yml").write_text(text)
    run(folder)
    assert not (folder.root / "ran").exists()


def test_a_private_key_beside_its_certificate_is_looked_for(folder):
    (folder.secrets / "vpn.pem").write_text("-----BEGIN CERTIFICATE-----\nMIIB\n" + folder.ssh_key_file.read_text())
    newest(folder).write_text(private_line(folder))
    assert "secrets/vpn.pem" in run(folder).stderr


def test_a_secret_that_cannot_be_read_is_said(folder):
    (folder.secrets / "sealed").write_bytes(b"\xff\xfe\x00binary")
    told = run(folder, "--json")
    assert json.loads(told.stdout)["not_searched_for"] == {"inventories/lab/secrets/sealed": "cannot be read as text"}


def test_notes_are_searched_too(folder):
    known = bundle.known(folder, design.build(spec.read({"environment": LAB})))
    items = [bundle.Item("journals/x.log", b"", f"not read: {PASSWORD}")]
    with pytest.raises(CouldNotRun, match=r"contents\.json holds file:secrets/bmc/r01u01"):
        bundle.write(folder.root / "b.tar.gz", "lab", items, known, folder.state)
