"""A survey of what runs: its own design comes out of it, a swapped cable is named, and nothing was written."""

from __future__ import annotations

import csv
import re
import time

import pytest

from supernode.clients import looking
from supernode.lab.places import Places

pytestmark = pytest.mark.operations
CHANGE = re.compile(r": (POST|PATCH|PUT|DELETE) /redfish")
LINE = re.compile(r"(\S+) (\S+) (.*) -> (-?\d+) in \d+\.\d\d s")


def designed(site, environment, folder):
    """Write a design's artefacts; return them by their path."""
    site.supernode("design", str(environment), "--out", str(folder))
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def heard(site):
    """Return what the lab's controllers told so far."""
    return Places.of(site.name).log.read_text().splitlines()


def cable_of(tables, device, port):
    rows = csv.DictReader(tables["cabling.csv"].splitlines())
    return next(row for row in rows if (row["a_device"], row["a_port"]) == (device, port))


def writes(text):
    """Return the lines of a log that are neither a GET nor a command that only reads."""
    import shlex

    found = []
    for line in text.splitlines():
        _, method, what, _ = LINE.fullmatch(line).groups()
        if not (method in ("GET", "HEAD") or (method == "RUN" and looking.admitted(shlex.split(what)))):
            found.append(line)
    return found


def settle(site, cable, other):
    """Wait until both ends of a cable hear who is there now: neighbours tell of themselves every few seconds.

    Args:
        cable, other: rows of cabling.csv; the cable's host end is plugged in at the other's leaf end.
    """
    for _ in range(60):
        leaf = hears(site, other["b_device"], other["b_port"], "chassis.name")
        host = hears(site, cable["a_device"], cable["a_port"], "port.ifname")
        if (leaf, host) == ([cable["a_device"]], [other["b_port"]]):
            return
        time.sleep(1)
    pytest.fail(f"{cable['cable']} does not settle: {leaf} {host}")


def hears(site, device, port, what):
    text = site.supernode("ssh", site.name, device, f"sudo -n lldpcli -f keyvalue show neighbors ports {port}")
    return [line.partition("=")[2] for line in text.splitlines() if line.startswith(f"lldp.{port}.{what}=")]


def test_the_proposal_is_the_labs_design_the_swapped_cable_is_listed_and_nothing_was_written(cluster, tmp_path):
    own = designed(cluster, cluster.name, tmp_path / "own")
    one, other = cable_of(own, "gpu-003", "rail2"), cable_of(own, "gpu-006", "rail2")
    proposed, log = tmp_path / cluster.name, tmp_path / "log"
    cables = (one["cable"], other["cable"])
    cluster.supernode("lab", "fault", cluster.name, "swap-cable", *cables)
    settle(cluster, one, other)
    settle(cluster, other, one)
    before = len(heard(cluster))
    try:
        found = cluster.json("survey", cluster.name, "--out", str(proposed), "--log", str(log), expect=1)
    finally:
        cluster.supernode("lab", "fault", cluster.name, "swap-cable", *cables, "--clear")
    settle(cluster, one, one)
    settle(cluster, other, other)

    assert designed(cluster, proposed, tmp_path / "design") == own
    assert found["differs"] == []
    assert found["design"] == cluster.json("design", cluster.name)["digest"]  # with every machine in its slot
    failing = [row for row in found["findings"] if row["verdict"] == "fail"]
    assert {row["cause"] for row in failing} == {failing[0]["cause"]}, [row["cause"] for row in failing]
    assert {row["place"] for row in failing if row["check"] == "cabling"} == set(cables)
    told = " ".join((failing[0]["cause"], *failing[0]["evidence"]))
    for row in (one, other):
        assert f"{row['a_device']}:{row['a_port']}" in told
        assert f"{row['b_device']}:{row['b_port']}" in told

    assert [line for line in heard(cluster)[before:] if CHANGE.search(line)] == []  # as the controllers tell it
    assert [line for line in heard(cluster)[:before] if CHANGE.search(line)] != []  # they do tell a bring-up's
    assert found["requests"].keys() == {"GET", "RUN"}
    text = log.read_text()
    assert len(text.splitlines()) == sum(found["requests"].values())
    assert writes(text) == []
    assert writes("10.0.0.1 POST /redfish/v1/SessionService/Sessions -> 201 in 0.01 s\n") != []
    assert writes("10.0.0.1 RUN sudo -n reboot -> 0 in 0.01 s\n") != []


def test_what_shows_was_observed_and_with_the_cable_back_nothing_is_wrong(cluster):
    found = cluster.json("survey", cluster.name)
    assert found["findings"] == []
    assert found["differs"] == []
    origin = {row["path"]: row["origin"] for row in found["sources"]}
    for path in (
        "site.domain", "site.networks.management.cidr", "site.networks.management.gateway", "site.networks.bmc.cidr",
        "site.networks.bmc.gateway", "site.networks.loopbacks.cidr", "site.networks.rails.cidr", "site.time_servers",
        "site.serve.address", "site.serve.port", "racks.r01", "racks.r02", "pools.gpu.kind", "pools.gpu.count",
        "fabric.leaf", "fabric.spine",
        "fabric.spines", "fabric.mtu", "software.suite", "software.kernel", "software.packages", "machines.bios",
    ):  # fmt: skip
        assert origin[path] == "observed", path
    assert all(row["origin"] != "nobody" for row in found["sources"])
    assert len(found["controllers"]) == 9
    assert [note for note in found["notes"] if "not observed" in note] == []
    assert all(row["supported"] for controller in found["controllers"] for row in controller["operations"])
