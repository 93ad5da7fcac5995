"""Accelerators in the end-to-end lab: one that is gone is named, and what keeps the others outlives a restart."""

from __future__ import annotations

HOST, INDEX, ADDRESS = "gpu-005", "5", "0000:c3:00.0"
PERSISTENT = "8 accelerators, driver 570.133.20, persistence on"


def inject(site) -> None:
    """Take one accelerator of eight off a host's bus."""
    site.supernode("lab", "fault", site.name, "gpu-lost", HOST, INDEX)


def mend(site) -> None:
    """Put it back."""
    site.supernode("lab", "fault", site.name, "gpu-lost", HOST, INDEX, "--clear")


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
