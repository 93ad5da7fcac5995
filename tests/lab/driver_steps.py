"""Accelerators in the end-to-end lab: one that is gone is named, and what keeps the others outlives a restart."""

from __future__ import annotations

import time

import lab_site

BOOT = "stat -c %Z /proc/1"  # when this boot's first process began: the lab's hosts share the kernel's boot id
HOST, INDEX, ADDRESS = "gpu-005", "5", "0000:c3:00.0"
PERSISTENT = "8 accelerators, driver 570.133.20, persistence on"


def inject(site) -> None:
    """Take one accelerator of eight off a host's bus."""
    site.supernode("lab", "fault", site.name, "gpu-lost", HOST, INDEX)


def mend(site, restart) -> None:
    """Put it back and restart its host by the BMC, as the finding's hint asks; wait until it runs as before.

    Args:
        site: the lab.
        restart: has a host's BMC do a forced restart.
    """
    before = _ask(site, BOOT)
    site.supernode("lab", "fault", site.name, "gpu-lost", HOST, INDEX, "--clear")
    restart(HOST)
    for _ in range(60):
        now = _ask(site, BOOT)
        if now and now != before and _ask(site, "systemctl is-system-running --wait") == "running":
            return
        time.sleep(1)
    raise AssertionError(f"{HOST} did not come back")


def _ask(site, command: str) -> str:
    """Return what a command on the host prints; nothing while it does not answer."""
    done = site.call(str(lab_site.SUPERNODE), "ssh", site.name, HOST, command, timeout=60)
    return done.stdout.strip() if done.returncode == 0 else ""


def named(findings) -> set[str]:
    """Return the causes of the fault, once it is named by host, number and address, and nobody else is blamed."""
    failing = [row for row in findings if row["check"] == "gpus" and row["verdict"] != "pass"]
    assert [row["place"] for row in failing] == [HOST]
    assert failing[0]["cause"] == f"{HOST}: 7 of 8: GPU {INDEX} at {ADDRESS} is gone from the bus"
    return {failing[0]["cause"]}


def still_kept(findings, host: str) -> None:
    """Check that a host that was started anew has all its accelerators initialised again."""
    found = next(row["found"] for row in findings if (row["check"], row["place"]) == ("gpus", host))
    assert found == PERSISTENT
