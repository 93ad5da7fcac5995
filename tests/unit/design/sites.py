"""Environments for tests: the lab's, with as many racks and addresses as a growing one needs."""

from pathlib import Path

from supernode import design, spec

ROOT = Path(__file__).resolve().parents[3]
LAB = (ROOT / "tests/lab/slim/environment.yml").read_text()


def lab(**texts):
    """The lab's design; `machines` and `allocation` as texts."""
    return design.build(spec.read({"environment": LAB, **texts}))


def large(count=8, spares=1, spines=2, limit=400, uplink="50 Mbit/s", unit=None, racks=40, pools=()):
    """An environment as text: lab kinds, `racks` racks for the pool and 8 for the fabric."""
    names = [f"r{n:02d}" for n in range(1, racks + 1)]
    lines = [f"  - {{name: {name}, units: 48}}" for name in (*names, *(f"f{n}" for n in range(1, 9)), "x1")]
    rows = [f"  - {{name: gpu, kind: lab-gpu8, count: {count}, spares: {spares}, racks: [{', '.join(names)}]}}", *pools]
    return "\n".join(
        [
            "schema: 1",
            "name: site",
            "site:",
            "  name: hall",
            "  domain: cluster.example",
            "  networks:",
            "    management: {cidr: 10.0.0.0/20, gateway: 10.0.0.1}",
            "    bmc: {cidr: 10.1.0.0/20, gateway: 10.1.0.1}",
            "    loopbacks: {cidr: 10.2.0.0/20}",
            "    rails: {cidr: 10.4.0.0/14}",
            "  time_servers: [10.0.0.40]",
            "  serve: {address: 10.0.0.3}",
            "bmc: {username: admin, password: 'file:p', ca: ca.pem}",
            "racks:",
            *lines,
            "pools:",
            *rows,
            "fabric:",
            "  family: rail-optimised",
            "  transport: roce-v2",
            "  leaf: lab-leaf",
            "  spine: lab-spine",
            f"  spines: {spines}",
            "  racks: [f1, f2, f3, f4, f5, f6, f7, f8]",
            f"  rates: {{rail: 10 Mbit/s, uplink: {uplink}}}",
            "  oversubscription: 4",
            *([f"  unit: {unit}"] if unit else []),
            "software: {suite: bookworm, kernel: linux-image-amd64}",
            f"stacks: {{limit: {limit}}}",
            "",
        ]
    )


def environment(**wishes):
    return spec.read({"environment": large(**wishes)}).environment
