"""The Design's role variables and the roles' argument specs, held against each other by Ansible's own validator."""

import copy

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from supernode import design, packaged, spec
from supernode.design import hostvars

PLAYBOOKS = packaged.root() / "playbooks"
LAB = packaged.root() / "inventories" / "lab" / "environment.yml"


@pytest.fixture(scope="module")
def lab():
    return design.build(spec.read({"environment": LAB.read_text()}))


def errors(specs, variables):
    """What the validator says of one host's variables, over all roles; a key that belongs to no role is unsupported."""
    found, left = [], dict(variables)
    for role, options in specs.items():
        mine = {name: left.pop(name) for name in list(left) if name.startswith(f"{role}_")}
        found += ArgumentSpecValidator(options).validate(copy.deepcopy(mine)).error_messages
    return found + [f"{name} belongs to no role" for name in left]


def test_every_host_of_the_lab_fits_every_role(lab, specs):
    assert {host.name: errors(specs, hostvars.build(lab, host.name)) for host in lab.hosts} == {
        host.name: [] for host in lab.hosts
    }


def test_a_misspelt_variable_is_refused(lab, specs):
    variables = hostvars.build(lab, "gpu-001")
    variables["rails_flies"] = variables.pop("rails_files")
    said = " ".join(errors(specs, variables))
    assert "rails_flies" in said
    assert "missing required arguments: rails_files" in said


def test_a_misspelt_key_within_a_file_is_refused(lab, specs):
    variables = hostvars.build(lab, "gpu-001")
    variables["rails_files"][0]["contents"] = variables["rails_files"][0].pop("content")
    said = " ".join(errors(specs, variables))
    assert "contents" in said
    assert "missing required arguments: content" in said


def test_a_variable_of_no_role_is_refused(lab, specs):
    assert errors(specs, {**hostvars.build(lab, "gpu-001"), "railz_files": []}) == ["railz_files belongs to no role"]


def test_every_rendered_file_reaches_a_role(lab):
    for host in lab.hosts:
        variables = hostvars.build(lab, host.name)
        carried = {entry["path"] for name, value in variables.items() if name.endswith("_files") for entry in value}
        assert carried == {file.path for file in lab.files(host.name)}
        assert carried


def test_every_role_is_played_and_names_its_variables_after_itself(specs):
    plays = [yaml.safe_load((PLAYBOOKS / f"{role}.yml").read_text())[0] for role in specs]
    site = yaml.safe_load((PLAYBOOKS / "site.yml").read_text())
    assert {play["ansible.builtin.import_playbook"] for play in site} == {f"{role}.yml" for role in specs}
    assert all(play["roles"] and "tasks" not in play for play in plays)
    assert [name for role, options in specs.items() for name in options if not name.startswith(f"{role}_")] == []
