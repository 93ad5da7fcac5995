"""Slurm's configuration from the Design: who is a node, what it has, and how far apart two nodes are.

All machines of the cluster get the same files, spares and quarantined ones are in them: a machine that is parked is
drained, and comes back without a change of anybody's configuration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from supernode import catalog
from supernode.design import render
from supernode.design.model import Design
from supernode.design.rows import Host, Placed, RenderedFile
from supernode.spec import Environment

CONTROLLER, NODE = "slurm_controller", "slurm_node"
NOT_VERIFIED = "supernode: not yet verified"  # how a node starts that the controller knows nothing of
MUNGE_KEY = "munge.key"
KEY_SOURCE = f"file:secrets/{MUNGE_KEY}"
_FOLDER, _STATE = "/etc/slurm", "/var/lib/slurm/slurmctld"
_DEVICES = {"nvidia": "/dev/nvidia"}
_BASE = ("munge", "slurm-client")


def is_node(design: Design, host: Host) -> bool:
    """Tell whether a host is a node: where there is a scheduler, all that have accelerators are."""
    return design.environment.scheduler is not None and design.server_kind(host).gpus > 0


def controller(design: Design) -> Host | None:
    """Return the host of the controller; None where no scheduler is wanted."""
    wanted = design.environment.scheduler
    return design.service_host(wanted.controller) if wanted is not None else None


def is_controller(design: Design, host: Host) -> bool:
    """Tell whether the controller runs on a host."""
    mine = controller(design)
    return mine is not None and mine.name == host.name


def controller_packages(design: Design) -> Sequence[str]:
    """Return what the controller installs."""
    return (*_BASE, "slurmctld") if design.environment.scheduler else ()


def node_packages(design: Design) -> Sequence[str]:
    """Return what a node installs."""
    return (*_BASE, "slurmd") if design.environment.scheduler else ()


def key(_design: Design, _host: Host) -> Sequence[Placed]:
    """Return the secret that all of the cluster share: by it they know each other's messages."""
    return (Placed(MUNGE_KEY, KEY_SOURCE, "munge.service"),)


def controller_files(design: Design, _host: Host) -> Sequence[RenderedFile]:
    """Return the controller's files."""
    unit = render.text("slurm/slurmctld.conf.j2", state=_STATE)
    return (
        *_files(design, CONTROLLER),
        RenderedFile("/etc/systemd/system/slurmctld.service.d/60-supernode.conf", unit, role=CONTROLLER),
    )


def node_files(design: Design, _host: Host) -> Sequence[RenderedFile]:
    """Return a node's files."""
    driver = design.environment.gpu_driver
    unit = render.text("slurm/slurmd.conf.j2", driver=driver.persistence if driver else "")
    return (
        *_files(design, NODE),
        RenderedFile("/etc/systemd/system/slurmd.service.d/60-supernode.conf", unit, role=NODE),
    )


def gres(env: Environment, kind: str) -> str:
    """Return what the nodes of a kind offer, as slurm.conf and `scontrol show node` write it; "" for none."""
    count = catalog.server(kind).gpus
    return f"gpu:{count}" if env.scheduler is not None and count else ""


def _files(design: Design, role: str) -> tuple[RenderedFile, ...]:
    nodes = [host for host in design.hosts if is_node(design, host)]
    head, wanted = controller(design), design.environment.scheduler
    values = {
        "cluster": design.name,
        "state": _STATE,
        "controller": head,
        "partition": wanted.partition if wanted else "",
        "nodes": [_node(design, run) for run in runs(nodes)],
        "every": hostlist(nodes),
        "reason": NOT_VERIFIED,
        "devices": [_devices(design, rows) for rows in _by(nodes, "kind")],
        "units": [{"name": _unit(rows[0]), "nodes": hostlist(rows), "su": rows[0].su} for rows in _by(nodes, "su")],
    }
    return (
        *(
            RenderedFile(f"{_FOLDER}/{name}", render.text(f"slurm/{name}.j2", **values), role=role)
            for name in ("slurm.conf", "gres.conf", "topology.conf", "cgroup.conf")
        ),
        RenderedFile(
            "/etc/systemd/system/munge.service.d/60-supernode.conf",
            render.text("slurm/munge.conf.j2", name=MUNGE_KEY, path=key(design, nodes[0])[0].path),
            role=role,
        ),
    )


def _node(design: Design, run: Sequence[Host]) -> dict[str, Any]:
    first, last = run[0].management.ip, run[-1].management.ip
    span = str(first) if len(run) == 1 else f"{str(first).rpartition('.')[0]}.[{int(first) & 255}-{int(last) & 255}]"
    kind = design.server_kind(run[0])
    return {
        "names": hostlist(run),
        "addresses": span,
        "gres": gres(design.environment, kind.name),
        "cpu": kind.processors,
    }


def _devices(design: Design, rows: Sequence[Host]) -> dict[str, str]:
    kind = design.server_kind(rows[0])
    last = f"[0-{kind.gpus - 1}]" if kind.gpus > 1 else "0"
    return {"nodes": hostlist(rows), "file": f"{_DEVICES[kind.gpu_vendor]}{last}"}


def _unit(host: Host) -> str:
    return f"su{host.su:02d}" if host.su else "beside"


def _by(hosts: Iterable[Host], key: str) -> list[list[Host]]:
    found: dict[Any, list[Host]] = {}
    for host in hosts:
        found.setdefault(getattr(host, key), []).append(host)
    return list(found.values())


def runs(hosts: Sequence[Host]) -> Iterator[list[Host]]:
    """Yield the hosts in runs whose names and addresses both count up within one /24: one line of slurm.conf each."""

    def step(row: tuple[int, Host]) -> tuple[object, ...]:
        at, host = row
        address = int(host.management.ip)
        return host.pool, host.ordinal - at, address - at, address >> 8

    for _, rows in groupby(enumerate(hosts), step):
        yield [host for _, host in rows]


def hostlist(hosts: Sequence[Host]) -> str:
    """Write hosts as Slurm does: gpu-[001-008,010]."""
    parts = []
    for rows in _by(hosts, "pool"):
        spans = []
        for _, row in groupby(enumerate(sorted(host.ordinal for host in rows)), lambda pair: pair[1] - pair[0]):
            numbers = [number for _, number in row]
            spans.append(f"{numbers[0]:03d}" + (f"-{numbers[-1]:03d}" if len(numbers) > 1 else ""))
        text = ",".join(spans)
        parts.append(f"{rows[0].pool}-{text if len(rows) == 1 else f'[{text}]'}")
    return ",".join(parts)
