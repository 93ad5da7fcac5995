"""A machine is exchanged: named while nobody said so, then told, and installed as an update of its slot alone."""

from __future__ import annotations

import json
import re
from pathlib import Path

import lab_site
import pytest
import yaml

pytestmark = pytest.mark.operations

LABS = Path("/var/lib/supernode-lab")
HOST = "gpu-003"
WRITE = re.compile(r"lab\.bmc\.front: (\S+): (?!POST /redfish/v1/SessionService/Sessions:|DELETE \S+/Sessions/\S+:)")


def test_an_exchanged_machine_is_named_and_left_alone_until_somebody_says_so(cluster):
    slot, old = slot_of(cluster), bound(cluster)["identity"]
    seen = len(log(cluster))
    cluster.supernode("lab", "fault", cluster.name, "exchange-machine", HOST, "--set", "bmc=restored")
    new = delivered(cluster)
    assert new["system_serial"] != old["system_serial"]

    done = cluster.call(str(lab_site.SUPERNODE), "plan", cluster.name, "--live", "--json")

    said = done.stdout + done.stderr
    assert "another machine than machines.yml names" in said
    assert old["system_serial"] in said
    assert new["system_serial"] in said
    cluster.supernode("bringup", cluster.name, "--yes", expect=1)
    page = max((cluster.root / "runs" / cluster.name).glob("*/report.html")).read_text()
    assert old["system_serial"] in page
    assert new["system_serial"] in page
    assert writes(cluster, seen) == set()
    assert bound(cluster)["identity"]["system_serial"] == old["system_serial"]
    refused = cluster.call(str(lab_site.SUPERNODE), "assign", cluster.name, slot, "--sheet", sheets(cluster))
    assert refused.returncode == 2
    assert "--replace" in refused.stderr


def test_once_told_it_is_installed_as_an_update_and_the_others_are_not_touched(cluster):
    slot, old = slot_of(cluster), bound(cluster)["identity"]
    cluster.supernode("lab", "fault", cluster.name, "exchange-machine", HOST)  # this one comes as the factory made it
    new = delivered(cluster)
    told = ("assign", cluster.name, slot, "--serial", new["system_serial"], "--sheet", sheets(cluster), "--replace")
    text = (cluster.folder / "machines.yml").read_text()
    hanging = {row["what"]: row for row in cluster.json(*told, "--dry-run")["dependants"][slot]}
    assert (cluster.folder / "machines.yml").read_text() == text
    assert {"controller's password", "controller's certificate", "host key", "cables", "firmware baseline"} <= set(
        hanging
    )
    assert [row for row in hanging.values() if row["wanted"]] == []
    assert hanging["host key"]["was"] == "pinned"
    before, seen = consoles(cluster), len(log(cluster))

    cluster.supernode(*told)
    steps = [(row["device"], row["kind"]) for row in cluster.json("plan", cluster.name)["steps"]]
    run = cluster.json("bringup", cluster.name, "--yes")

    assert steps == [(HOST, "reinstall")]
    assert run["exit_code"] == 0
    assert writes(cluster, seen) == {slot}
    after = consoles(cluster)
    assert {name for name in after if after[name] != before.get(name)} == {slot}
    record = bound(cluster)
    assert (record["state"], record["identity"]["system_serial"]) == ("in_service", new["system_serial"])
    assert record["identity"]["ssh_host_key"] not in ("", old["ssh_host_key"])
    assert exported(cluster)[HOST] == (slot, new["system_serial"])
    serial = cluster.supernode("ssh", cluster.name, HOST, "sudo cat /sys/class/dmi/id/product_serial")
    assert serial.strip() == new["system_serial"]


def sheets(cluster):
    return str(cluster.folder / "delivery")


def slot_of(cluster):
    return next(row["slot"] for row in cluster.json("lab", "status", cluster.name)["servers"] if row["device"] == HOST)


def bound(cluster):
    return yaml.safe_load((cluster.folder / "machines.yml").read_text())["slots"][slot_of(cluster)]


def delivered(cluster):
    head, *rows = (cluster.folder / "delivery" / "machines.csv").read_text().splitlines()
    found = (dict(zip(head.split(","), row.split(","), strict=True)) for row in rows)
    return next(row for row in found if row["slot"] == slot_of(cluster))


def log(cluster):
    return (LABS / cluster.name / "daemon.log").read_text()


def writes(cluster, seen):
    """The slots whose controllers were asked to change something since then."""
    found = (WRITE.search(line) for line in log(cluster)[seen:].splitlines())
    return {match[1] for match in found if match}


def consoles(cluster):
    folder = LABS / cluster.name / "slots"
    return {c.parent.name: c.read_text(errors="replace").count("self-test") for c in folder.glob("*/console.log")}


def exported(cluster):
    shell = f'eval "$({lab_site.SUPERNODE} shell {cluster.name} --print)"; pulumi stack export -s {cluster.name}'
    rows = json.loads(cluster.call("sh", "-ec", shell).stdout)["deployment"]["resources"]
    machines = (row for row in rows if row["type"] == "supernode:index:Machine")
    return {row["urn"].rpartition("::")[2]: (row["id"], row["outputs"]["serial"]) for row in machines}
