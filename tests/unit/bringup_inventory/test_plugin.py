"""The inventory plugin as Ansible runs it: `ansible-inventory -i inventories/<env>/supernode.yml`."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from supernode import design, packaged, spec
from supernode.records import DeviceOutput, Outputs

ROOT = packaged.root()
LAB = ROOT / "inventories" / "lab"


@pytest.fixture
def project(tmp_path):
    """A project of its own, provisioned as far as its files say."""
    folder = tmp_path / "inventories" / "lab"
    folder.mkdir(parents=True)
    shutil.copy(LAB / "supernode.yml", folder / "supernode.yml")
    shutil.copy(ROOT / "tests" / "lab" / "slim" / "environment.yml", folder / "environment.yml")
    lab = design.build(spec.read({"environment": (folder / "environment.yml").read_text()}))
    devices = {
        d.name: DeviceOutput(d.name, kind, d.slot, str(d.management.ip), host_keys=("ssh-ed25519 AAAA",))
        for kind, row in (("machine", lab.hosts), ("switch", lab.switches))
        for d in row
    }
    state = tmp_path / ".supernode" / "lab"
    state.mkdir(parents=True)
    (state / "outputs.json").write_text(json.dumps(Outputs("lab", lab.digest, devices).to_json()))
    return tmp_path


def ansible(tool, project, *arguments):
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(project),
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "LC_ALL": "C.UTF-8",
    }
    command = [tool, "-i", str(project / "inventories" / "lab" / "supernode.yml"), *arguments]
    return subprocess.run(
        command, cwd=project.parent, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def test_the_hosts_are_listed_and_their_keys_pinned(project):
    said = ansible("ansible-inventory", project, "--list")
    assert said.returncode == 0, said.stderr
    document = json.loads(said.stdout)
    assert len(document["nodes"]["hosts"]) == 9
    assert document["_meta"]["hostvars"]["gpu-001"]["rails_files"]
    assert (project / ".supernode/lab/known_hosts").read_text().count("ssh-ed25519 AAAA") == 19


def test_without_outputs_it_fails_and_says_what_to_run(project):
    (project / ".supernode/lab/outputs.json").unlink()
    said = ansible("ansible-playbook", project, str(ROOT / "playbooks" / "site.yml"), "--list-hosts")
    assert said.returncode != 0
    assert "nothing was provisioned yet" in said.stderr
    assert "supernode bringup lab --only provision" in said.stderr


def test_a_mistake_in_the_environment_is_named_by_its_line(project):
    path = project / "inventories/lab/environment.yml"
    lines = path.read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if "count: 8" in line)
    lines[at] = lines[at].replace("8", "-1")
    path.write_text("\n".join(lines) + "\n")
    said = ansible("ansible-inventory", project, "--list")
    assert said.returncode != 0
    assert f"inventories/lab/environment.yml:{at + 1}" in said.stderr


def test_another_environment_s_name_is_refused(project):
    path = project / "inventories/lab/supernode.yml"
    path.write_text(path.read_text().replace("environment: lab", "environment: prod"))
    said = ansible("ansible-inventory", project, "--list")
    assert said.returncode != 0
    assert "'prod'" in said.stderr
    assert "write `environment: lab`" in said.stderr
