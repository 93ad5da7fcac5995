"""The unit's program on real ports: a network namespace, and a folder in the place of sysfs."""

import json
import os
import subprocess
import sys

import pytest

from supernode import packaged

PROGRAM = packaged.root() / "playbooks" / "roles" / "rails" / "files" / "rail-names"
NAMES = {"rail0": ("0000:18:00.0", "enp24s0np0"), "rail1": ("0000:40:00.0", "enp64s0np0")}

pytestmark = pytest.mark.skipif(
    subprocess.run(["unshare", "-rn", "true"], capture_output=True, check=False).returncode != 0,
    reason="this machine gives no network namespace",
)


@pytest.fixture
def rails(tmp_path):
    """Run a script inside a namespace, {names} in it being the program; return what was said, and the ports."""
    for pci, kernel_name in NAMES.values():
        (tmp_path / "sys/bus/pci/devices" / pci / "net" / kernel_name).mkdir(parents=True)
    (tmp_path / "rails.json").write_text(
        json.dumps({"rails": [{"name": name, "pci": pci} for name, (pci, _) in NAMES.items()]})
    )
    environment = {
        "PATH": os.environ["PATH"],
        "RAIL_NAMES_FILE": str(tmp_path / "rails.json"),
        "RAIL_NAMES_SYSFS": str(tmp_path / "sys"),
        "RAIL_NAMES_WAIT_S": "0",
    }

    def run(*lines):
        names = f'"{sys.executable}" "{PROGRAM}" && echo "exit 0" || echo "exit $?"'
        script = "\n".join(["set -e", "exec 2>&1", *lines, 'echo "ports $(ip -json link show)"']).replace(
            "{names}", names
        )
        said = subprocess.run(
            ["unshare", "-rn", "sh", "-c", script],
            env=environment,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert said.returncode == 0, said.stdout
        *talk, ports = said.stdout.splitlines()
        return talk, {p["ifname"]: p for p in json.loads(ports.removeprefix("ports ")) if p["ifname"] != "lo"}

    run.sys = tmp_path / "sys"
    return run


BOTH = "ip link add enp24s0np0 type veth peer name enp64s0np0"


def test_ports_get_their_designed_names_and_keep_the_kernels(rails):
    talk, ports = rails(BOTH, "{names}")
    assert talk == ["rail0: was enp24s0np0", "rail1: was enp64s0np0", "exit 0"]
    assert {name: port["altnames"] for name, port in ports.items()} == {
        "rail0": ["enp24s0np0"],
        "rail1": ["enp64s0np0"],
    }


def test_a_second_run_does_nothing(rails):
    talk, ports = rails(BOTH, "{names}", "ip link set rail0 up", "{names}")
    assert talk[3:] == ["exit 0"]
    assert "UP" in ports["rail0"]["flags"]


def test_a_port_that_was_up_is_up_again(rails):
    _, ports = rails(BOTH, "ip link set enp24s0np0 up", "{names}")
    assert ("UP" in ports["rail0"]["flags"], "UP" in ports["rail1"]["flags"]) == (True, False)


def test_two_ports_exchange_their_names(rails):
    wrong = "ip link property add dev {} altname {}"
    talk, ports = rails(
        "ip link add rail0 type veth peer name rail1",
        wrong.format("rail0", "enp64s0np0"),
        wrong.format("rail1", "enp24s0np0"),
        "{names}",
    )
    assert talk[-1] == "exit 0"
    assert (ports["rail0"]["altnames"], ports["rail1"]["altnames"]) == (["enp24s0np0"], ["enp64s0np0"])


def test_a_missing_port_is_said_and_the_others_are_named(rails):
    (rails.sys / "bus/pci/devices/0000:18:00.0/net/enp24s0np0").rmdir()
    talk, ports = rails("ip link add enp64s0np0 type veth peer name other", "{names}")
    assert "rail0: no network device at 0000:18:00.0" in talk
    assert talk[-1] == "exit 0"
    assert "rail1" in ports


def test_a_name_held_by_a_foreign_port_fails_and_the_port_keeps_its_own(rails):
    talk, ports = rails(BOTH, "ip link add rail0 type veth peer name other", "{names}")
    assert talk[-1] == "exit 1"
    assert any(line.startswith("rail0: ip link set") for line in talk)
    assert "rail0: was enp24s0np0" not in talk
    assert {"enp24s0np0", "rail1"} <= set(ports)


def test_two_devices_at_one_address_are_not_guessed_between(rails):
    (rails.sys / "bus/pci/devices/0000:18:00.0/net/enp24s0np1").mkdir()
    talk, ports = rails(BOTH, "{names}")
    assert talk[-1] == "exit 1"
    assert any("more than one network device" in line for line in talk)
    assert "enp24s0np0" in ports
