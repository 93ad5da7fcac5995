"""What an InfiniBand fabric needs: who manages the subnet and how, what its nodes are called, and its netlist."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from supernode.catalog import infiniband
from supernode.design import render, routing
from supernode.design.rows import Host, Link, RenderedFile

if TYPE_CHECKING:
    from supernode.design.model import Design
    from supernode.families import Graph

MANAGERS = 2  # one that works, one that stands by
# opensm takes 0 to 15, and the highest is master. 15 stays free for whoever takes over by hand.
HIGHEST_PRIORITY = 14
# InfiniBand Architecture Specification, PortInfo: how a packet size is written in partitions.conf.
_MTU_CODES = {2048: 4, 4096: 5}


def concerns(design: Design, host: Host) -> bool:
    """Tell whether a host has adapters in an InfiniBand fabric."""
    return design.environment.fabric.infiniband and host.su > 0


def managers(design: Design) -> tuple[Host, ...]:
    """Return the hosts that run a subnet manager, the master first."""
    if not design.environment.fabric.infiniband:
        return ()
    wanted = design.environment.fabric.subnet_managers or MANAGERS
    able = (host for host in design.hosts if host.state == "active" and concerns(design, host))
    return tuple(host for host, _ in zip(able, range(wanted), strict=False))


def manages(design: Design, host: Host) -> bool:
    """Tell whether a host runs a subnet manager."""
    return host.name in {row.name for row in managers(design)}


def node(design: Design, host: str, rail: int | None) -> str:
    """Return what an adapter calls itself: rdma-ndd writes the host's name and the adapter's into its node description.

    A rail whose adapter the catalogue does not name is taken for the one of its number.
    """
    if rail is None:
        raise ValueError(f"{host}: an uplink has no adapter")
    return f"{host} {design.server_kind(design.host(host)).nics[rail].hca or f'mlx5_{rail}'}"


def adapter_packages(design: Design) -> Sequence[str]:
    """Return what every host of an InfiniBand fabric installs; rdma-core has the daemon that names its adapters."""
    return ("rdma-core", "infiniband-diags") if design.environment.fabric.infiniband else ()


def adapter_files(_design: Design, _host: Host) -> list[RenderedFile]:
    """Return what loads the modules behind /dev/infiniband/umad*, which every tool of the subnet opens."""
    path = "/etc/modules-load.d/60-supernode-infiniband.conf"
    return [RenderedFile(path, render.text("infiniband/modules.conf.j2"), role="infiniband")]


def manager_packages(design: Design) -> Sequence[str]:
    """Return what a subnet manager's host installs."""
    return ("opensm",) if design.environment.fabric.infiniband else ()


def manager_files(design: Design, host: Host) -> list[RenderedFile]:
    """Return a subnet manager's configuration, its partitions and its unit."""
    names = [row.name for row in managers(design)]
    adapter = node(design, host.name, 0).split(" ", 1)[1]
    mtu = _MTU_CODES[design.environment.fabric.mtu]
    files = {
        "/etc/opensm/opensm.conf": render.text(
            "opensm/opensm.conf.j2",
            priority=HIGHEST_PRIORITY - names.index(host.name),
            engines=",".join(routing.TREE_ENGINES),
        ),
        "/etc/opensm/partitions.conf": render.text("opensm/partitions.conf.j2", mtu=mtu),
        "/etc/systemd/system/supernode-opensm.service": render.text("opensm/opensm.service.j2", adapter=adapter),
        # Empty, which masks it: the package's own unit would start a manager on every port at once.
        "/etc/systemd/system/opensm.service": "",
    }
    return [RenderedFile(path, content, role="subnet_manager") for path, content in files.items()]


def netlist(design: Design) -> Iterator[str]:
    """Yield fabric.net, the designed subnet in the form that ibnetdiscover prints and ibsim reads, node by node.

    A node is called by its description: no GUID is known before the machines stand.
    """
    for switch in design.switches:
        yield f'Switch\t{design.switch_kind(switch).ports} "{switch.name}"\n'
        yield from (_line(design, link, switch.name) for link in design.links_of(switch.name))
        yield "\n"
    for link in design.links:
        if link.kind == "rail":
            yield f'Ca\t1 "{node(design, link.a_device, link.rail)}"\n'
            yield _line(design, link, link.a_device) + "\n"


def graph_netlist(graph: Graph, speed: str) -> Iterator[str]:
    """Yield a family's graph in the same form; switches are `s<number>`, the end ports `e<card>-<port>`.

    A switch's port is the graph's, counted from 1 as the subnet does; so what is cabled by dimension is routed by it.

    Raises:
        ValueError: cards without a switch between them, which no subnet manager routes.
    """
    if graph.direct:
        raise ValueError("cards that are linked directly have no subnet; put each behind a switch")
    ports: dict[int, list[tuple[int, str, int]]] = {vertex: [] for vertex in range(graph.cards, graph.vertices)}
    ends = []
    for a, a_port, b, b_port, _group in graph.links.tolist():
        low, low_port = (f"e{a}-{a_port}", 1) if a < graph.cards else (f"s{a - graph.cards}", a_port + 1)
        ports[b].append((b_port + 1, low, low_port))
        if a < graph.cards:
            ends.append((low, f"s{b - graph.cards}", b_port + 1))
        else:
            ports[a].append((a_port + 1, f"s{b - graph.cards}", b_port + 1))
    most = max(int(graph.links[port].max()) for port in ("a_port", "b_port")) + 1
    tail = f"lid 0 {infiniband.LANES}x{speed}"
    for vertex, used in ports.items():
        yield f'Switch\t{most} "s{vertex - graph.cards}"\n'
        yield from (f'[{port}]\t"{far}"[{far_port}]\t# "{far}" {tail}\n' for port, far, far_port in sorted(used))
        yield "\n"
    for end, switch, port in ends:
        yield f'Ca\t1 "{end}"\n[1]\t"{switch}"[{port}]\t# "{switch}" {tail}\n\n'


def _line(design: Design, link: Link, mine: str) -> str:
    ends = [(_name(design, link), _number(link)), (link.b_device, port_number(link.b_port))]
    here, there = ends if link.a_device == mine else reversed(ends)
    speed = infiniband.speed(link.rate)
    return f'[{here[1]}]\t"{there[0]}"[{there[1]}]\t# "{there[0]}" lid 0 {infiniband.LANES}x{speed}\n'


def _name(design: Design, link: Link) -> str:
    return node(design, link.a_device, link.rail) if link.kind == "rail" else link.a_device


def _number(link: Link) -> int:
    return 1 if link.kind == "rail" else port_number(link.a_port)


def port_number(name: str) -> int:
    """Return a switch port's number, as the subnet counts it."""
    return int(name.lstrip("p"))
