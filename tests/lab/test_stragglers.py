"""One dead controller and one host that never boots among nine, one spare, and controllers that are slow and busy.

The tests of this file run in their order on one lab; each leaves it as the next needs it.
"""

from __future__ import annotations

import json

import lab_site
import pytest
import yaml

from supernode import design as designing
from supernode import spec
from supernode.lab import faults, inject
from supernode.workspace import EnvironmentFolder

pytestmark = pytest.mark.operations

NAME = "spares"
DEAD, SILENT, SPARE = "gpu-003", "gpu-006", "gpu-009"
HOSTS = [f"gpu-{n:03d}" for n in range(1, 10)]
BUSY = {"bmc-503": {"rate": 0.05}, "bmc-slow": {"rate": 0.05, "delay_s": 10.0}}


@pytest.fixture(scope="module")
def site():
    made = lab_site.make(NAME, 32, **{"deadline_s: 600": "deadline_s: 60"})
    try:
        yield made
    finally:
        lab_site.forget(made)


def design(site):
    folder = EnvironmentFolder(NAME, site.folder, site.root)
    return designing.build(spec.read(folder.texts()))


def records(site):
    slots = yaml.safe_load((site.folder / "machines.yml").read_text())["slots"]
    return {host.name: {"slot": host.slot, **slots[host.slot]} for host in design(site).hosts}


def inject_all(hosts, **named):
    for host in hosts:
        for name, arguments in named.items():
            inject.inject(NAME, faults.checked(name, [host], arguments))


def provisioned(run):
    return {f["place"]: f for f in run["findings"] if f["check"] == "provisioned"}


def test_the_run_ends_in_its_time_with_the_spare_active_and_both_named(site):
    site.supernode("lab", "start", NAME, timeout=600)
    site.supernode("allocate", NAME)
    site.supernode("assign", NAME, "--sheet", str(site.folder / "delivery"))
    inject_all([DEAD], **{"bmc-dead": {}})
    inject_all([SILENT], **{"host-never-boots": {}})

    site.supernode("bringup", NAME, "--yes", expect=1, timeout=900)

    run, stand = lab_site.last_run(site), records(site)
    assert {stage["name"]: stage["outcome"] for stage in run["stages"] if stage["budget_s"]} == {
        "provision": "ok",
        "configure": "ok",
        "verify": "ok",
    }
    assert {name for name in HOSTS if stand[name]["state"] == "quarantined"} == {DEAD, SILENT}
    assert "in contact" in stand[DEAD]["reason"]
    assert "in bios" in stand[SILENT]["reason"]  # POST stops, and settings are applied in POST
    assert stand[DEAD]["run"] == run["id"]
    assert (stand[SPARE]["state"], stand[SPARE]["replaces"]) == ("in_service", stand[DEAD]["slot"])
    assert sum(row["state"] == "in_service" for row in stand.values()) == 7
    found = provisioned(run)
    assert f"{SPARE} ({stand[SPARE]['slot']}) took over" in found[DEAD]["cause"]
    assert (found[DEAD]["verdict"], found[SILENT]["verdict"]) == ("advice", "fail")
    assert any("POST code 0x92" in line for line in found[SILENT]["evidence"]), found[SILENT]
    assert [f["place"] for f in run["findings"] if f["verdict"] == "fail"] == [SILENT]
    page = max((site.root / "runs" / NAME).glob("*/report.html")).read_text()
    assert all(text in page for text in (stand[DEAD]["slot"], stand[SILENT]["slot"], "POST code 0x92"))


def test_the_ports_of_both_slots_are_shut_on_every_leaf(site):
    found = design(site)
    leaves = [switch.name for switch in found.switches if switch.tier == "leaf"]
    assert len(leaves) == 8
    for leaf in leaves:
        said = site.call(str(lab_site.SUPERNODE), "ssh", NAME, leaf, "ip", "-j", "link", timeout=60)
        assert said.returncode == 0, said.stderr
        up = {row["ifname"] for row in json.loads(said.stdout) if "UP" in row["flags"]}
        hosts = {link.b_port: link.a_device for link in found.links_of(leaf) if link.kind == "rail"}
        assert {host for port, host in hosts.items() if port not in up} == {DEAD, SILENT}


def test_pulumi_alone_changes_nothing(site):
    shell = f'eval "$({lab_site.SUPERNODE} shell {NAME} --print)"; '
    done = site.call("sh", "-ec", f"{shell} pulumi up -y -s {NAME} --expect-no-changes", timeout=300)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_all_come_back_in_spite_of_busy_and_slow_controllers(site):
    """The two that were quarantined are installed, the others restarted for their BIOS."""
    inject.clear(NAME, faults.checked("bmc-dead", [DEAD], {}))
    inject.clear(NAME, faults.checked("host-never-boots", [SILENT], {}))
    inject_all(HOSTS, **BUSY)
    served = [host for host in HOSTS if host not in (DEAD, SILENT)]
    site.supernode("drain", NAME, *served, "--reason", "another workload profile")
    site.supernode("release", NAME, *HOSTS)
    environment = site.folder / "environment.yml"
    text = environment.read_text().replace("WorkloadProfile: HPC", "WorkloadProfile: General")
    environment.write_text(text.replace("deadline_s: 60", "deadline_s: 600"))

    site.supernode("bringup", NAME, "--yes", timeout=900)

    run, stand = lab_site.last_run(site), records(site)
    assert sum(row["state"] == "in_service" for row in stand.values()) == 8
    assert [f for f in run["findings"] if f["verdict"] != "pass"] == []
    restarted = {e["host"] for e in run["events"] if e["phase"] == "bios" and e["host"]}
    assert restarted == set(HOSTS)
