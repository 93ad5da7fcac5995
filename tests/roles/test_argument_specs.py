"""The Design's role variables and the roles' argument specs, held against each other by Ansible's own validator."""

import copy

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from supernode import design, packaged, spec
from supernode.design import hostvars, roles

PLAYBOOKS = packaged.root() / "playbooks"
LAB = packaged.root() / "inventories" / "lab" / "environment.yml"


@pytest.fixture(scope="module")
def lab():
    return design.build(spec.read({"environment": LAB.read_text()}))


CONCERNED = ("base_system", "time_synced", "rails", "gpu_driver", "collectives", "node_exporter", "slurm_node")


def errors(specs, variables, concerned=CONCERNED):
    """What the validator says of a host's variables, over its roles; a key of no role is unsupported."""
    found, left = [], dict(variables)
    for role in concerned:
        options = specs[role]
        mine = {name: left.pop(name) for name in list(left) if name.startswith(f"{role}_")}
        found += ArgumentSpecValidator(options).validate(copy.deepcopy(mine)).error_messages
    return found + [f"{name} belongs to no role" for name in left]


def test_every_host_of_the_lab_fits_every_role(lab, specs):
    concerned = {host.name: [role.name for role in roles.of(lab, host)] for host in lab.hosts}
    found = {name: errors(specs, hostvars.build(lab, name), names) for name, names in concerned.items()}
    assert found == {host.name: [] for host in lab.hosts}


def test_every_host_of_an_infiniband_fabric_fits_its_roles(specs):
    folder = packaged.root() / "inventories" / "lab-ib"
    found = design.build(spec.read({"environment": (folder / "environment.yml").read_text()}))
    names = [role.name for role in roles.of(found, found.host("gpu-001"))]
    assert {"infiniband", "subnet_manager"} <= set(names)
    assert errors(specs, hostvars.build(found, "gpu-001"), names) == []


def test_every_role_on_disk_is_one_of_the_designs(specs):
    assert set(specs) == {role.name for role in roles.ROLES}


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
