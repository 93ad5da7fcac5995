"""Every check by name: what it observes, with which tool, and on what its good and bad samples rest.

A check is *proven* when every parser that it leans on reads recorded output of the real tool, both from a healthy and
from a faulty machine; where one sample was documented or composed, it is *modelled*. The samples lie in
tests/unit/verify/samples with their origins; a test holds this table against them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Origin = Literal["recorded", "documented", "composed"]


@dataclass(frozen=True)
class Check:
    """One check.

    Attributes:
        observes: what it looks at, for a person.
        good, bad: samples of a healthy and of a faulty machine, each file with its origin; empty for a check without a
            parser of its own: then `live` names the test in which the tool itself ran.
        live: the test that runs the real tool, or "".
    """

    name: str
    observes: str
    good: tuple[tuple[str, Origin], ...]
    bad: tuple[tuple[str, Origin], ...]
    live: str = ""

    @property
    def proven(self) -> bool:
        """Tell whether recorded samples, or the tool itself, show both the good and the bad."""
        recorded = all(origin == "recorded" for _, origin in (*self.good, *self.bad))
        return recorded and (bool(self.good and self.bad) or bool(self.live))


_SUBNET = "tests/unit/verify/test_subnet_live.py"
_DIAGS = "infiniband-diags-44.0"
_IN_NAMESPACES = "tests/lab/test_verify_in_namespaces.py"

CHECKS = {
    check.name: check
    for check in (
        Check("reach", "ssh to the management address, host key pinned", (), (), "tests/unit/verify/test_reach.py"),
        Check(
            "identity",
            "serial and UUID in /sys/class/dmi/id, host name",
            (("dmi-composed-good.txt", "composed"),),
            (("dmi-composed-placeholder.txt", "composed"),),
        ),
        Check(
            "image",
            "the digest in /etc/supernode/image",
            (("image-composed-good.txt", "composed"),),
            (("image-composed-absent.txt", "composed"),),
        ),
        Check(
            "cabling",
            "LLDP neighbours at both ends of every cable (lldpcli)",
            (("lldpd-1.0.16-json0-good.txt", "recorded"), ("lldpd-1.0.16-json-good.txt", "recorded")),
            (("lldpd-1.0.16-json0-swapped.txt", "recorded"), ("lldpd-1.0.16-no-daemon.err", "recorded")),
            _IN_NAMESPACES,
        ),
        Check(
            "ib-links",
            "state, lanes and speed of every link of an InfiniBand subnet (ibnetdiscover, iblinkinfo)",
            ((f"{_DIAGS}-ibnetdiscover-good.txt", "recorded"), (f"{_DIAGS}-iblinkinfo-good.txt", "recorded")),
            ((f"{_DIAGS}-ibnetdiscover-faults.txt", "recorded"), (f"{_DIAGS}-iblinkinfo-faults.txt", "recorded")),
            _SUBNET,
        ),
        Check(
            "subnet-manager",
            "who manages the subnet, seen from each host that should (sminfo, systemctl)",
            ((f"{_DIAGS}-sminfo-good.txt", "recorded"),),
            ((f"{_DIAGS}-sminfo-none.err", "recorded"),),
            _SUBNET,
        ),
        Check(
            "ports",
            "switch ports: state, carrier, MTU (ip addr)",
            (("iproute2-6.1.0-addr-good.txt", "recorded"),),
            (("iproute2-6.1.0-addr-no-carrier.txt", "recorded"),),
            _IN_NAMESPACES,
        ),
        Check(
            "rails",
            "rails of hosts: state, carrier, MTU, address (ip addr)",
            (("iproute2-6.1.0-addr-good.txt", "recorded"),),
            (("iproute2-6.1.0-addr-no-carrier.txt", "recorded"),),
            _IN_NAMESPACES,
        ),
        Check(
            "mtu",
            "pings with the don't-fragment bit: the MTU passes, one byte more does not",
            (("iputils-20221126-full.txt", "recorded"), ("iputils-20221126-over.txt", "recorded")),
            (("iputils-20221126-blackhole.txt", "recorded"), ("iputils-20221126-unreach.txt", "recorded")),
            _IN_NAMESPACES,
        ),
        Check(
            "tunnel",
            "handshake, firewall and routes of both gateways (wg, nft, ip), pings of the MTU inside and on the WAN",
            (
                ("wireguard-tools-1.0.20210914-handshakes-good.txt", "recorded"),
                ("nftables-1.0.6-ruleset-good.txt", "recorded"),
            ),
            (
                ("wireguard-tools-1.0.20210914-handshakes-never.txt", "recorded"),
                ("nftables-1.0.6-ruleset-none.txt", "recorded"),
            ),
            "tests/lab/test_hybrid.py",
        ),
        Check("rate", "paced flows over every cable both ways, median of 1 s windows", (), (), _IN_NAMESPACES),
        Check(
            "fib",
            "next hops in the kernel's table (ip route)",
            (("iproute2-6.1.0-route-good.txt", "recorded"),),
            (("iproute2-6.1.0-route-linkdown.txt", "recorded"),),
            _IN_NAMESPACES,
        ),
        Check(
            "time",
            "offset and state of chrony (chronyc tracking)",
            (("chrony-4.3-good.txt", "recorded"),),
            (("chrony-4.3-offset.txt", "recorded"), ("chrony-4.3-unsynchronised.txt", "recorded")),
        ),
        Check(
            "gpus",
            "accelerators on the bus (sysfs) and their driver (nvidia-smi --query-gpu)",
            (("nvidia-smi-documented-8.txt", "documented"),),
            (
                ("nvidia-smi-documented-7-of-8.txt", "documented"),
                ("nvidia-smi-documented-lost.txt", "documented"),
                ("nvidia-smi-documented-none.txt", "documented"),
                ("nvidia-smi-documented-mismatch.txt", "documented"),
                ("nvidia-smi-documented-no-driver.txt", "documented"),
            ),
        ),
        Check(
            "scheduler",
            "the node as Slurm's controller shows it to the node itself (scontrol show node)",
            (("slurm-22.05.8-idle.txt", "recorded"), ("slurm-22.05.8-not-verified.txt", "recorded")),
            (
                ("slurm-22.05.8-fewer-gpus.txt", "recorded"),
                ("slurm-22.05.8-not-registered.txt", "recorded"),
                ("slurm-22.05.8-unknown.txt", "recorded"),
                ("slurm-22.05.8-no-controller.err", "recorded"),
                ("slurm-22.05.8-drained-by-hand.txt", "recorded"),
                ("slurm-22.05.8-drained.txt", "recorded"),
            ),
        ),
        Check(
            "collectives",
            "what NCCL or HCCL reads (files, and what goes before them) and the RDMA devices that it names (sysfs)",
            (("nccl-conf-composed-good.txt", "composed"), ("sysfs-composed-rdma-8.txt", "composed")),
            (("nccl-conf-composed-edited.txt", "composed"), ("sysfs-composed-rdma-renamed.txt", "composed")),
        ),
        Check(
            "rate (hardware)",
            "the speed that a port negotiated (/sys/class/net/*/speed)",
            (("sysfs-composed-speed-400g.txt", "composed"),),
            (("sysfs-composed-speed-100g.txt", "composed"),),
        ),
        Check(
            "cooling",
            "cooling units as the agent's own metrics show them: present, fresh, dry, plausible",
            (("supernode-cooling-0.1.0-good.txt", "recorded"),),
            (("supernode-cooling-0.1.0-leak-frozen.txt", "recorded"),),
        ),
        Check(
            "watch",
            "targets, rules and receiver as Prometheus itself tells them (/api/v1)",
            (("prometheus-2.42-good.txt", "recorded"),),
            (("prometheus-2.42-down.txt", "recorded"),),
        ),
    )
}


def proof() -> tuple[int, int]:
    """Return how many checks are proven, and how many only modelled."""
    proven = sum(check.proven for check in CHECKS.values())
    return proven, len(CHECKS) - proven
