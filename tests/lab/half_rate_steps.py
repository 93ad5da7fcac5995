"""A link that came up at half its rate, in the end-to-end lab: its cable is named, and that it is half."""

from __future__ import annotations

END = ("gpu-007", "rail6")


def _cable(rows) -> str:
    return next(cable for cable, row in rows.items() if (row["a_device"], row["a_port"]) == END)


def inject(site, rows) -> None:
    """Have one rail run at half its rate."""
    site.supernode("lab", "fault", site.name, "slow-link", _cable(rows), "--set", "factor=0.5")


def mend(site, rows) -> None:
    """Have it run at its rate again."""
    site.supernode("lab", "fault", site.name, "slow-link", _cable(rows), "--clear")


def named(findings, rows) -> set[str]:
    """Return the causes of the fault, once its cable is named with both ends and what half of it is missing."""
    cable = _cable(rows)
    found = [row for row in findings if row["verdict"] == "fail" and cable in row["cables"]]
    causes = {row["cause"] for row in found}
    assert len(causes) == 1, causes
    cause = causes.pop()
    end = f"{rows[cable]['b_device']}:{rows[cable]['b_port']}"
    assert all(word in cause for word in (cable, ":".join(END), end, "half its rate")), cause
    return {cause}
