"""What Huawei's HCCL is told on a host: environment, rank table, and the addresses of the processors' own ports."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator

from supernode.catalog import ServerKind
from supernode.design.collectives.settings import Draft, Tuning
from supernode.design.model import Design
from supernode.design.rows import Host, Link
from supernode.spec.collectives import Collectives

RANK_TABLE = "/etc/hccl.json"
ADDRESSES = "/etc/hccn.conf"
ENVIRONMENT = "/etc/profile.d/supernode-hccl.sh"
# The default is the least, 120 s. No document gives a number of hosts from which on that is short; this one is ours.
MANY_HOSTS = 16


def tuning(design: Design, host: Host, section: Collectives) -> Tuning:
    """Return what a host's HCCL is told."""
    draft = Draft(section, {})
    draft.set(
        "HCCL_IF_IP",
        str(host.management.ip),
        "jobs find each other over the management network; the address is the rank table's server_id",
        "design: management address",
    )
    if section.dscp is None:
        draft.leave("HCCL_RDMA_TC", "environment.yml declares no lossless class (collectives.dscp); the default is 132")
    else:
        reason = f"DSCP {section.dscp} in the upper six bits: the class that the fabric treats as lossless"
        draft.set("HCCL_RDMA_TC", str(section.dscp << 2), reason, "environment.yml: collectives.dscp")
    hosts = len(_servers(design, host))
    if hosts > MANY_HOSTS:
        reason = f"{hosts} hosts: processes start minutes apart"
        draft.set("HCCL_CONNECT_TIMEOUT", "600", reason, "HCCL user guide; the number of hosts is supernode's")
    else:
        draft.leave("HCCL_CONNECT_TIMEOUT", f"{hosts} hosts: the default of 120 s is enough")
    return draft.finish()


def files(design: Design, host: Host, found: Tuning) -> Iterator[tuple[str, str]]:
    """Yield the files: the rank table of the pool, the host's addresses, the environment of its shells."""
    yield RANK_TABLE, json.dumps(rank_table(design, host), indent=2) + "\n"
    yield ADDRESSES, addresses(design, host)
    yield ENVIRONMENT, _environment(found)


def rank_table(design: Design, host: Host) -> dict[str, object]:
    """Return the rank table of a host's pool, version 1.0: its active hosts by name, their processors by number.

    Every value is a text. Ranks go on from host to host without a gap, for those of two hosts may not alternate.
    """
    rank, servers = 0, []
    for server in _servers(design, host):
        devices = []
        for number, link in enumerate(_ports(design, server)):
            devices.append({"device_id": str(number), "device_ip": _own(link), "rank_id": str(rank)})
            rank += 1
        servers.append({"server_id": str(server.management.ip), "device": devices})
    return {"status": "completed", "version": "1.0", "server_count": str(len(servers)), "server_list": servers}


def addresses(design: Design, host: Host) -> str:
    """Return the file from which the driver gives each processor's port its address, its leaf as gateway and probe."""
    lines = []
    for number, link in enumerate(_ports(design, host)):
        if link.a_address is None or link.b_address is None:
            raise ValueError(f"cable {link.cable} is no rail")
        peer = link.b_address.ip
        lines += [f"address_{number}={link.a_address.ip}", f"netmask_{number}={link.a_address.netmask}"]
        lines += [f"netdetect_{number}={peer}", f"gateway_{number}={peer}"]
    return "\n".join(lines) + "\n"


def _servers(design: Design, host: Host) -> list[Host]:
    return [other for other in design.hosts if other.pool == host.pool and other.state == "active"]


def _ports(design: Design, host: Host) -> list[Link]:
    """Return the rail of each processor, by the processor's number: they are one device on the bus."""
    links = {link.rail: link for link in design.links_of(host.name)}
    return [links[rail] for rail in _rails(design.server_kind(host))]


def _rails(kind: ServerKind) -> list[int]:
    by_address = {nic.pci: nic.rail for nic in kind.nics}
    return [by_address[address] for address in kind.gpu_pci]


def _own(link: Link) -> str:
    if link.a_address is None:
        raise ValueError(f"cable {link.cable} is no rail")
    return str(link.a_address.ip)


def _environment(found: Tuning) -> str:
    lines = ["# Written by supernode from the design: `supernode tune` explains each line."]
    for row in found.settings:
        lines += [f"# {row.reason}", f"export {row.name}={shlex.quote(row.value)}"]
    return "\n".join(lines) + "\n"
