"""State folder and passphrase are gone, the cluster serves: a plain bring-up makes the state again by looking alone."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import lab_site
import pytest

pytestmark = pytest.mark.operations

LABS = Path("/var/lib/supernode-lab")
WRITE = re.compile(r"lab\.bmc\.front: \S+: (?!POST /redfish/v1/SessionService/Sessions:|DELETE \S+/Sessions/\S+:)")


def test_a_lost_state_is_made_again_by_looking_alone(cluster):
    lab = LABS / cluster.name
    text = (cluster.folder / "machines.yml").read_text()
    assert text.count("ssh_host_key: ssh-ed25519") == 9 + 10  # hosts and switches
    assert any(WRITE.search(line) for line in (lab / "daemon.log").read_text().splitlines())  # a deployment is seen
    before, seen = evidence(cluster), (lab / "daemon.log").stat().st_size

    for part in (cluster.name, "pulumi", "program"):
        shutil.rmtree(cluster.root / ".supernode" / part)
    (cluster.root / ".supernode" / "passphrase").unlink()
    run = cluster.json("bringup", cluster.name, "--yes")

    assert run["exit_code"] == 0
    asked = (lab / "daemon.log").read_text()[seen:]
    assert "SessionService/Sessions: 201" in asked  # the controllers were asked
    assert [line for line in asked.splitlines() if WRITE.search(line)] == []
    assert evidence(cluster) == before
    served = (cluster.root / ".supernode" / cluster.name / "serve" / "serve.log").read_text()
    assert "/boot/" not in served
    assert "/report/" not in served
    assert not list((cluster.root / ".supernode" / cluster.name).glob("enrolled/*"))
    assert (cluster.folder / "machines.yml").read_text() == text
    assert exported(cluster) == {f"gpu-{n:03d}" for n in range(1, 10)}
    done = engine(cluster, "up", "-y", "--expect-no-changes")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_a_lost_key_is_named_and_not_made_anew(cluster):
    key = cluster.folder / "secrets" / "ssh_id_ed25519"
    aside = key.with_name("aside")
    key.rename(aside)
    try:
        done = cluster.call(str(lab_site.SUPERNODE), "bringup", cluster.name, "--yes", "--only", "provision")
        assert done.returncode == 3, done.stdout + done.stderr
        assert "8 machines in service accept no other" in done.stderr
        assert "from a copy" in done.stderr
        assert not key.exists()
    finally:
        aside.rename(key)


def evidence(cluster):
    """What only a restart, a deployment or a reload of a switch's routing would change."""
    hosts = {
        f"gpu-{n:03d}": cluster.supernode("ssh", cluster.name, f"gpu-{n:03d}", "cat /proc/sys/kernel/random/boot_id")
        for n in (1, 5, 9)
    }
    assert len(set(hosts.values())) == len(hosts)
    leaf = cluster.supernode("ssh", cluster.name, "su01-leaf0", "systemctl show frr -p ActiveEnterTimestampMonotonic")
    posts = {
        console.parent.name: console.read_text(errors="replace").count("power-on self-test")
        for console in (LABS / cluster.name / "slots").glob("*/console.log")
    }
    assert sum(posts.values()) >= 2 * 9  # media and disk, for each machine
    return hosts, leaf, posts


def engine(cluster, *words):
    shell = f'eval "$({lab_site.SUPERNODE} shell {cluster.name} --print)"; pulumi {" ".join(words)} -s {cluster.name}'
    return cluster.call("sh", "-ec", shell, timeout=300)


def exported(cluster):
    document = json.loads(engine(cluster, "stack", "export").stdout)
    rows = document["deployment"]["resources"]
    return {row["urn"].rpartition("::")[2] for row in rows if row["type"] == "supernode:index:Machine"}
