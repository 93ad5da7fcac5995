"""What an operator does beside a run, on a cluster in service: look before it, log in, pack what others need."""

from __future__ import annotations

import json
import tarfile

import pytest

pytestmark = pytest.mark.operations


def live(site, expect):
    data = site.json("check", site.name, "--live", expect=expect, timeout=120)
    return {(row["check"], row["place"]): row for row in data["live"]}


def test_a_look_at_a_good_cluster_finds_nothing(cluster):
    rows = live(cluster, expect=0)
    checks = [check for check, _ in rows]
    assert {check: checks.count(check) for check in ("bmc", "identity", "clock", "disk", "switch")} == {
        **dict.fromkeys(("bmc", "identity", "clock", "disk"), 9),
        "switch": 10,
    }
    assert {"names", "time", "serve", "mirror", "room"} <= set(checks)
    assert {key: row["found"] for key, row in rows.items() if row["verdict"] != "pass"} == {}


def test_a_look_names_what_is_wrong_and_changes_nothing(cluster):
    faults = [("bmc-dead", "gpu-002"), ("bmc-clock-1970", "gpu-003")]
    for fault, host in faults:
        cluster.supernode("lab", "fault", cluster.name, fault, host)
    try:
        rows = live(cluster, expect=1)
    finally:
        for fault, host in faults:
            cluster.supernode("lab", "fault", cluster.name, fault, host, "--clear")
    assert "no answer" in rows["bmc", "gpu-002"]["found"]
    assert "stands at 1970" in rows["clock", "gpu-003"]["found"]
    assert {key for key, row in rows.items() if row["verdict"] == "fail"} == {("bmc", "gpu-002"), ("clock", "gpu-003")}
    assert live(cluster, expect=0)


def test_logging_in_to_hosts_and_switches(cluster):
    name = cluster.name
    assert cluster.supernode("ssh", name, "gpu-001", "hostname").strip() == "gpu-001"
    assert "FRRouting" in cluster.supernode("ssh", name, "su01-leaf0", "sudo", "vtysh", "-c", "show version")
    assert cluster.call("supernode", "ssh", name, "gpu-001", "exit 7").returncode == 7
    missing = cluster.call("supernode", "ssh", name, "gpu-01")
    assert (missing.returncode, "did you mean gpu-0" in missing.stderr) == (2, True)


def test_a_bundle_is_written_and_with_a_secret_in_it_is_not(cluster):
    out = cluster.root / "bundle.tar.gz"
    data = cluster.json("bundle", cluster.name, "--out", str(out), "--live")
    with tarfile.open(out) as archive:
        names = {name.removeprefix(f"{cluster.name}/") for name in archive.getnames()}
    assert {
        f"stacks/{cluster.name}.json",
        "journals/gpu-001.log",
        "journals/spine01.log",
        "lab.json",
        "plan.json",
    } <= names
    assert data["not_searched_for"] == {}
    out.unlink()
    run = max((cluster.root / "runs" / cluster.name).glob("*-*-*"))
    log = run / "ansible.log"
    kept = log.read_text()
    log.write_text(kept + json.dumps({"phrase": (cluster.root / ".supernode" / "passphrase").read_text().strip()}))
    try:
        refused = cluster.call("supernode", "bundle", cluster.name, "--out", str(out))
    finally:
        log.write_text(kept)
    assert refused.returncode == 3
    assert f"runs/{run.name}/ansible.log holds .supernode/passphrase" in refused.stderr
    assert not out.exists()
