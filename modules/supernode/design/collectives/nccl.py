"""What NVIDIA's NCCL is told on a host, from the design."""

from __future__ import annotations

from supernode.catalog import ServerKind
from supernode.catalog.libraries import number
from supernode.design.collectives import topology
from supernode.design.collectives.settings import Draft, Tuning
from supernode.design.model import Design
from supernode.design.rows import Host
from supernode.spec.collectives import Collectives

# The default gives up after 30 s. No document gives a number of hosts from which on that is short; this one is ours.
MANY_HOSTS = 128
_FINDS_GIDS = (2, 21)


def tuning(design: Design, host: Host, section: Collectives) -> Tuning:
    """Return what a host's NCCL is told."""
    kind = design.server_kind(host)
    draft = Draft(section, kind.topology.owners if kind.topology else {})
    routed = design.environment.fabric.transport == "roce-v2"
    _bootstrap(draft, kind, routed=routed)
    _ports(draft, kind)
    if routed:
        _addresses(draft, design)
        _class(draft)
    _fabric(draft, design)
    _topology(draft)
    draft.leave(
        "NCCL_IGNORE_NET_MISMATCH",
        "0 makes a job refuse to start where one host has fewer ports than another; NVIDIA lists it under Debugging, "
        "so a test sets it for itself and no file for everybody",
    )
    return draft.finish()


def _bootstrap(draft: Draft, kind: ServerKind, *, routed: bool) -> None:
    if kind.management_port:
        draft.set(
            "NCCL_SOCKET_IFNAME",
            f"={kind.management_port}",
            "jobs find each other over the management port, whatever becomes of a rail; = takes this name alone",
            f"catalogue: {kind.name}.management_port",
        )
    elif routed:
        draft.set(
            "NCCL_SOCKET_IFNAME",
            "=rail0",
            "jobs find each other over the first rail: its name is the same on every host, while the management port's "
            "differs between deliveries of this kind, and a controller's USB network must not be taken",
            "design: the rails' names",
        )
    else:
        why = "rails have no addresses here, and the management port's name differs between deliveries of this kind"
        draft.leave("NCCL_SOCKET_IFNAME", why)


def _ports(draft: Draft, kind: ServerKind) -> None:
    names = [nic.hca for nic in kind.nics]
    if all(names):
        reason = (
            f"the {len(names)} ports of the rails by their whole names: mlx5_1 alone would take mlx5_10 too, "
            "and cards for storage are none of them"
        )
        draft.set("NCCL_IB_HCA", "=" + ",".join(names), reason, f"catalogue: {kind.name}.hcas")
    else:
        draft.leave("NCCL_IB_HCA", f"the RDMA names of {kind.name} are not in the catalogue: NCCL takes all ports")


def _addresses(draft: Draft, design: Design) -> None:
    if number(draft.section.version) < _FINDS_GIDS:
        draft.leave(
            "NCCL_IB_ADDR_RANGE", "came with 2.21; older ones need NCCL_IB_GID_INDEX, which only a host can tell"
        )
        return
    draft.set(
        "NCCL_IB_ADDR_RANGE",
        str(design.environment.site.networks.routed("rails")),
        "of the addresses of a port NCCL takes the one in the rails' network, never a link-local one",
        "environment.yml: site.networks.rails.cidr",
    )
    draft.leave("NCCL_IB_GID_INDEX", "a place in a table that changes with every address; NCCL_IB_ADDR_RANGE is stable")


def _class(draft: Draft) -> None:
    dscp = draft.section.dscp
    if dscp is None:
        draft.leave("NCCL_IB_TC", "environment.yml declares no lossless class (collectives.dscp)")
        return
    reason = f"DSCP {dscp} in the upper six bits: the class that the fabric treats as lossless"
    draft.set("NCCL_IB_TC", str(dscp << 2), reason, "environment.yml: collectives.dscp")


def _fabric(draft: Draft, design: Design) -> None:
    declared = design.environment.fabric.oversubscription
    if design.environment.fabric.family == "rail-only":
        reason = "rails meet inside the hosts alone: what changes rails does so over NVLink, before it leaves"
        draft.set("NCCL_CROSS_NIC", "0", reason, "environment.yml: fabric.family")
    elif declared > 1:
        reason = f"rails meet only over spines, which are oversubscribed {declared:g}:1: rings stay on their rail"
        draft.set("NCCL_CROSS_NIC", "0", reason, "environment.yml: fabric.oversubscription")
    else:
        draft.leave("NCCL_CROSS_NIC", "the spines join the rails at full rate, so NCCL may choose (its default)")
    hosts = sum(1 for host in design.hosts if host.su > 0)
    if hosts > MANY_HOSTS:
        reason = f"{hosts} hosts: a port waits 2 minutes (7 x 17.2 s), not 30 s, so a route that moves kills no job"
        draft.set(
            "NCCL_IB_TIMEOUT", "22", reason, "NCCL user guide: NCCL_IB_TIMEOUT; the number of hosts is supernode's"
        )
    else:
        draft.leave("NCCL_IB_TIMEOUT", f"{hosts} hosts: the default (30 s until a job fails) is enough")


def _topology(draft: Draft) -> None:
    if draft.section.topology_file:
        draft.set(
            "NCCL_TOPO_FILE",
            topology.PATH,
            "what hangs below which switch is read from the file: virtual machines hide it",
            "environment.yml: collectives.topology_file",
        )
    else:
        draft.leave(
            "NCCL_TOPO_FILE",
            f"NCCL reads the machine itself, which on bare metal is the truth; {topology.PATH} is what was designed, "
            "to hold NCCL_TOPO_DUMP_FILE against: a file that NCCL reads would hide a port at half its rate",
        )
