"""All twelve lies at once, one controller each: every machine is in service, or what is said of it names the lie."""

from __future__ import annotations

import json
import time

import lab_site
import pytest
import yaml

from supernode import design as designing
from supernode import spec
from supernode.lab import faults, inject
from supernode.lab.bmc import kinds
from supernode.workspace import EnvironmentFolder

pytestmark = pytest.mark.lies

NAME = "lies"
DEADLINE_S = 80
# Of each machine: the lie, its arguments, and what is said of it; nothing where it must end in service.
LIES = {
    "gpu-001": ("bmc-no-effect", {"request": "boot", "times": 1}, ""),
    "gpu-002": ("bmc-400-applied", {"request": "bios"}, ""),
    "gpu-003": ("bmc-task-lost", {"request": "insert", "happens": 0}, ""),
    "gpu-004": ("bmc-once-continuous", {}, ""),
    "gpu-005": ("bmc-sessions-full", {}, ""),
    "gpu-006": ("bmc-stale-inventory", {"what": "power"}, ""),
    "gpu-007": ("host-dead", {}, "the machine has power and shows no sign of life"),
    "gpu-008": ("bmc-two-systems", {"other": "witness"}, ""),
    "gpu-009": ("bmc-clock-1970", {}, ""),
    "gpu-010": ("bmc-pending-forever", {"what": "bios"}, "BIOS settings stay pending after two restarts"),
    "gpu-011": ("bmc-one-slot", {"holds": "stranger"}, ""),
    "gpu-012": ("bmc-media-ignored", {"shows": "inserted"}, ""),
}
# How a machine that ended in service shows that the lie was told and noticed.
NOTICED = {
    "gpu-001": "to the boot override and the boot override reads",
    "gpu-002": "answered 400 to the BIOS settings, and it holds all the same",
    "gpu-003": "its task is gone (404",
    "gpu-004": "still read Continuous after the boot: it was taken back",
    "gpu-006": "PowerState was of an earlier moment until the BMC was reset",
    "gpu-009": "the BMC's clock reads 1970-01-01",
    "gpu-011": "by UEFI HTTP boot: virtual media cannot be used: the only virtual drive holds https://198.51.100.7",
    "gpu-012": "the medium is inserted and never fetched it from the boot server",
}


@pytest.fixture(scope="module")
def site():
    changes = {"count: 8": "count: 12", "spares: 1": "spares: 0", "deadline_s: 600": f"deadline_s: {DEADLINE_S}"}
    made = lab_site.make(NAME, 128, **changes)
    try:
        yield made
    finally:
        lab_site.forget(made)


def records(site):
    slots = yaml.safe_load((site.folder / "machines.yml").read_text())["slots"]
    folder = EnvironmentFolder(NAME, site.folder, site.root)
    return {host.name: slots[host.slot] for host in designing.build(spec.read(folder.texts())).hosts}


def test_every_machine_is_in_service_or_its_lie_is_named(site):
    assert sorted(name for name, _, _ in LIES.values()) == sorted(lie.name for lie in kinds.LIES)
    site.supernode("lab", "start", NAME, timeout=600)
    site.supernode("allocate", NAME)
    site.supernode("assign", NAME, "--sheet", str(site.folder / "delivery"))
    for host, (name, arguments, _) in LIES.items():
        inject.inject(NAME, faults.checked(name, [host], arguments))

    site.supernode("bringup", NAME, "--yes", expect=1, timeout=900)

    run, stand = lab_site.last_run(site), records(site)
    print({stage["name"]: round(stage["ended"] - stage["started"]) for stage in run["stages"]})
    assert {stage["name"]: stage["outcome"] for stage in run["stages"] if stage["budget_s"]} == {
        "provision": "ok",
        "configure": "ok",
        "verify": "ok",
    }
    told = {}
    for event in run["events"]:
        if event["host"]:
            told[event["host"]] = told.get(event["host"], "") + event["detail"] + "\n"
    for host, (name, _, words) in LIES.items():
        state, reason = stand[host]["state"], stand[host].get("reason", "")
        if words:
            assert state != "in_service", (host, name)
            assert words in reason + json.dumps(run["findings"]), (host, name, reason)
        else:
            assert state == "in_service", (host, name, state, reason, told.get(host))
    for host, words in NOTICED.items():
        assert words in told[host], (host, LIES[host][0], told[host])
    failing = {f["place"] for f in run["findings"] if f["verdict"] == "fail"}
    assert failing == {host for host, (_, _, words) in LIES.items() if words}


def test_a_machine_that_was_told_to_boot_once_boots_from_its_disk(site):
    """Known bad: an override that stays makes the machine deploy itself at every start."""
    host = "gpu-004"
    before = started(site, host)
    assert before
    site.call(str(lab_site.SUPERNODE), "ssh", NAME, host, "sudo", "systemctl", "reboot", timeout=60)
    deadline = time.monotonic() + 60
    while started(site, host) in ("", before) and time.monotonic() < deadline:
        time.sleep(1)
    assert started(site, host) not in ("", before)


def started(site, host):
    """When the system's first process began; "" while nobody answers."""
    words = ("cut", "-d", " ", "-f22", "/proc/1/stat")
    done = site.call(str(lab_site.SUPERNODE), "ssh", NAME, host, *words, timeout=30)
    return done.stdout.strip() if done.returncode == 0 else ""
