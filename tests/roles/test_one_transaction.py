"""One transaction a host installs what all its roles need, and their files lie there before it."""

import pytest
import yaml

from supernode import design, packaged, spec
from supernode.design import hostvars, roles

ROLES = packaged.root() / "playbooks" / "roles"
INVENTORIES = packaged.root() / "inventories"
BARE = roles.Role("bare", lambda _design, _host: ())


@pytest.fixture(scope="module", params=["lab", "lab-ib"])
def found(request):
    return design.build(spec.read({"environment": (INVENTORIES / request.param / "environment.yml").read_text()}))


def tasks(role):
    return yaml.safe_load((ROLES / role / "tasks" / "main.yml").read_text())


def test_a_host_installs_what_its_roles_need_and_nothing_else(found):
    for host in found.hosts:
        wanted = [name for role in roles.of(found, host) for name in role.packages(found)]
        installed = hostvars.build(found, host.name)["base_system_packages"]
        assert sorted(installed) == sorted(set(wanted)), host.name
    assert {name for host in found.hosts for name in hostvars.build(found, host.name)["base_system_packages"]} == set(
        found.software().packages
    )


def test_whoever_needs_packages_has_its_files_there_first(found):
    for host in found.hosts:
        variables = hostvars.build(found, host.name)
        needy = [role.name for role in roles.of(found, host) if role.packages(found) and role.name != "base_system"]
        assert variables["base_system_ahead"] == needy
        assert all(variables[f"{name}_files"] for name in needy)
    placing, *others = tasks("base_system")
    assert (placing["loop"], "supernode_files" in placing) == ("{{ base_system_ahead }}", True)
    assert [task["ansible.builtin.apt"]["name"] for task in others if "ansible.builtin.apt" in task] == [
        "{{ base_system_packages }}"
    ] * 2


def test_no_other_role_installs_anything():
    names = {path.name for path in ROLES.iterdir()} - {"base_system"}
    assert [name for name in sorted(names) if any("ansible.builtin.apt" in task for task in tasks(name))] == []


def test_the_set_that_is_placed_first_is_the_one_that_the_role_places():
    """Another set under the role's name would be taken away again, or put the files back, at every run."""
    for role in roles.ROLES:
        if role.name != "base_system" and role.packages is not BARE.packages:
            sets = [task["supernode_files"] for task in tasks(role.name) if "supernode_files" in task]
            assert sets == [{"role": role.name, "files": f"{{{{ {role.name}_files }}}}"}]
