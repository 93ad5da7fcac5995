"""One transaction a host installs what all its roles need, and their files lie there before it."""

import re
import subprocess

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
    assert (placing["loop"], "supernode_files" in placing) == (
        "{{ ['base_system'] + base_system_ahead }}",
        True,
    )
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


@pytest.fixture
def policy(found, tmp_path):
    """Return what the policy says of a service, on a host with the files of a compute node."""
    host = found.hosts[0]
    files = {file.path: file for role in roles.of(found, host) for file in role.files(found, host)}
    for path in files:
        if path.startswith("/etc/systemd/system/"):
            (tmp_path / path[1:]).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path[1:]).touch()
    script = tmp_path / "policy-rc.d"
    text = files["/usr/sbin/policy-rc.d"].content
    assert "/etc/systemd" in text
    script.write_text(text.replace("/etc/systemd", f"{tmp_path}/etc/systemd"))
    script.chmod(int(files["/usr/sbin/policy-rc.d"].mode, 8))
    return lambda *arguments: subprocess.run([script, *arguments]).returncode


def test_a_package_starts_no_service_that_has_settings_of_ours(policy, found):
    ours = {
        match[1]
        for host in found.hosts[:1]
        for role in roles.of(found, host)
        for file in role.files(found, host)
        if (match := re.fullmatch(r"/etc/systemd/system/(.*)\.service\.d/.*", file.path))
    }
    assert bool(ours) == (found.name == "lab")
    for name in ours:
        assert {policy(name, "start"), policy(f"{name}.service", "start")} == {101}
        assert policy(f"{name}.service", "restart") == 0
    assert policy("chrony.service", "start") == 0


def test_a_service_that_no_package_starts_is_started_by_its_role(found):
    for host in found.hosts:
        for role in roles.of(found, host):
            started = str([task for task in tasks(role.name) if "ansible.builtin.systemd_service" in task])
            for file in role.files(found, host):
                if match := re.fullmatch(r"/etc/systemd/system/(.*)\.service\.d/.*supernode\.conf", file.path):
                    assert f"{match[1]}.service" in started, f"{role.name} does not start {match[1]}"
