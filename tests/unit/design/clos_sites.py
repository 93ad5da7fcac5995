"""Environments for tests of Clos fabrics: as many racks and addresses as they need, and nothing else."""

from supernode import design, spec


def text(
    *, hosts, kind, leaf, spine, rail, uplink, unit, family="rail-optimised", transport="infiniband", spares=0, **fabric
):
    """An environment as text; racks are as high as need be, so that one takes a hundred devices less one."""
    routed = transport == "roce-v2"
    pool = [f"g{n}" for n in range(1, 2 + (hosts + spares) // 9)]
    own = [f"f{n}" for n in range(1, 1 + fabric.pop("switch_racks", 60))]
    rows = {
        "family": family,
        "transport": transport,
        "leaf": leaf,
        "spine": spine,
        "racks": f"[{', '.join(own)}]",
        "rates": f"{{rail: {rail} Gbit/s, uplink: {uplink} Gbit/s}}",
        "unit": unit,
        **fabric,
    }
    return "\n".join(
        [
            "schema: 1",
            "name: site",
            "site:",
            "  name: hall",
            "  domain: cluster.example",
            "  networks:",
            "    management: {cidr: 10.0.0.0/13, gateway: 10.0.0.1}",
            "    bmc: {cidr: 10.8.0.0/13, gateway: 10.8.0.1}",
            *(["    loopbacks: {cidr: 10.16.0.0/16}", "    rails: {cidr: 10.64.0.0/10}"] if routed else []),
            "  time_servers: [10.0.0.2]",
            "  serve: {address: 10.0.0.3}",
            "bmc: {username: admin, password: 'file:p', ca: ca.pem}",
            "racks:",
            *(f"  - {{name: {name}, units: 99}}" for name in (*pool, *own)),
            "pools:",
            "  - name: gpu",
            f"    racks: [{', '.join(pool)}]",
            "    disk: /dev/disk/by-id/x",
            *(f"    {key}: {value}" for key, value in (("kind", kind), ("count", hosts), ("spares", spares))),
            "fabric:",
            *(f"  {key}: {value}" for key, value in rows.items() if value is not None),
            "software: {suite: bookworm, kernel: linux-image-amd64}",
            "",
        ]
    )


def site(**wishes):
    return design.build(spec.read({"environment": text(**wishes)}))
