"""What `lab up` forgets when the machines are new."""

import pytest

from supernode import packaged
from supernode.cli import lab_up
from supernode.workspace import EnvironmentFolder

LAB = (packaged.root() / "tests" / "lab" / "slim" / "environment.yml").read_text()
BMC = LAB[LAB.index("bmc:\n") : LAB.index("access:")]


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "inventories" / "lab"
    (place / "secrets" / "bmc").mkdir(parents=True)
    (place / "environment.yml").write_text(LAB)
    for path in ("bmc/r01u01", "bmc/r09u99", "ssh_id_ed25519", "bmc-password"):
        (place / "secrets" / path).write_text("secret")
    return EnvironmentFolder("lab", place, tmp_path)


def left(folder):
    secrets = folder.folder / "secrets"
    return sorted(str(path.relative_to(secrets)) for path in secrets.rglob("*") if path.is_file())


def test_passwords_that_were_given_to_the_machines_before_are_forgotten(folder):
    for _ in range(2):
        lab_up._forget_passwords(folder)
    assert left(folder) == ["bmc-password", "bmc/r09u99", "ssh_id_ed25519"]


def test_a_password_that_a_person_keeps_is_not(folder):
    plain = 'bmc: {username: admin, password: "file:secrets/bmc-password", ca: ca.pem}\n\n'
    folder.document("environment").write_text(LAB.replace(BMC, plain))
    lab_up._forget_passwords(folder)
    assert len(left(folder)) == 4
