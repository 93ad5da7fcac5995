"""A file was changed by hand on machines in service: a run repairs at most its share of them, and says who waits."""

import lab_site
import pytest

pytestmark = pytest.mark.operations

CHANGED = ("gpu-002", "gpu-004", "gpu-007")
FILE = "/etc/sysctl.d/60-supernode.conf"


def on(site, host, command):
    done = site.call(str(lab_site.SUPERNODE), "ssh", site.name, host, "sudo", "sh", "-c", command, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def by_hand(site):
    return {host for host in CHANGED if "by hand" in on(site, host, f"cat {FILE}")}


def configure(site, expect):
    return site.json("bringup", site.name, "--yes", "--only", "configure", expect=expect, timeout=300)


def test_a_run_repairs_its_share_and_the_next_one_the_rest(cluster):
    for host in CHANGED:
        on(cluster, host, f'echo "# by hand" >> {FILE}')
    run = configure(cluster, expect=1)
    assert by_hand(cluster) == {"gpu-007"}
    held = [f for f in run["findings"] if f["verdict"] == "fail"]
    assert [f["place"] for f in held] == ["gpu-007"]
    assert "3 of 8 machines in service would change, one run changes at most 2" in held[0]["cause"]

    run = configure(cluster, expect=0)
    assert by_hand(cluster) == set()
    assert {e["host"] for e in run["events"] if e["state"] == "changed"} == {"gpu-007"}
