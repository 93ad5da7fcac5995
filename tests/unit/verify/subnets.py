"""The lab's InfiniBand fabric as its checks want it, and facts made of what the tools printed."""

from __future__ import annotations

from pathlib import Path

from supernode import design, packaged, spec
from supernode.design import expectations
from supernode.verify import expected, gates, localise, subnet
from supernode.verify.facts import infiniband
from supernode.verify.facts.device import DeviceFacts, Facts
from supernode.verify.facts.raw import Raw

SAMPLES = Path(__file__).parent / "samples"
LAB = (packaged.root() / "inventories" / "lab-ib" / "environment.yml").read_text()
ASKED = ("ib-links", "subnet-manager", "cabling")


def wanted(text: str = LAB) -> expected.Wanted:
    return expected.read(expectations.build(design.build(spec.read({"environment": text}))))


def sample(name: str, rc: int = 0) -> Raw:
    rows = [SAMPLES / f"infiniband-diags-44.0-{name}.{end}" for end in ("txt", "err")]
    out, err = (row.read_text() if row.exists() else "" for row in rows)
    return Raw(rc, out, err)


def answers(name: str = "good", **others: Raw) -> dict[str, Raw]:
    found = {tool: sample(f"{tool}-{name}") for tool in ("ibnetdiscover", "iblinkinfo")}
    return found | {"sminfo": sample("sminfo-good"), "opensm": Raw(0, "active\n")} | others


def facts(case: expected.Wanted, raw: dict[str, Raw], *, without: tuple[str, ...] = ()) -> Facts:
    """Make the facts: every host answers, and each that manages the subnet saw the same."""
    assert case.subnet is not None
    seen = infiniband.parse(raw)
    managers = [name for name in case.subnet.managers if name not in without]
    devices = {
        name: DeviceFacts(name, reached=True, ports={}, subnet=seen if name in managers else None)
        for name in case.asked()
    }
    return subnet.spread(case, Facts(devices))


def judged(case: expected.Wanted, seen: Facts):
    """Return the findings of the subnet's checks with their causes."""
    rows = [row for row in gates.judge(case, seen) if row.check in ASKED]
    return localise.explain(case, seen, rows)
