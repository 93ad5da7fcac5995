"""NCCL's topology file: a server's processors, PCI tree, accelerators and ports, in the subset of XML that NCCL reads.

NCCL's parser is its own: no prolog, no tabs, one tag on a line. What it does not find it does not ask for: a link speed
that it cannot read is Gen3, a port without a speed has 10 Gbit/s. `topology_rules` holds a text against that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from supernode.catalog import ServerKind
from supernode.catalog.topology import PciSwitch, Topology

PATH = "/etc/supernode/nccl-topology.xml"
BRIDGE, ACCELERATOR, PORT, NVSWITCH = "0x060400", "0x030200", "0x020000", "0x068000"
# No source says where the switches are on the bus, and NCCL takes any address that nothing else has.
_SWITCHES = "ffff:ff:{:02x}.0"


def render(kind: ServerKind, *, tree_only: bool) -> str:
    """Return the file of a kind.

    Args:
        kind: a server whose topology is known.
        tree_only: leave out accelerators and ports: NCCL finds these itself, and what a file says of a port (its speed,
            above all) it does not look at any more.
    """
    if kind.topology is None:
        raise ValueError(f"the catalogue knows no topology of {kind.name}")
    lines = [f"<!-- {kind.vendor} {kind.model} as designed -->", *_system(kind, kind.topology, tree_only)]
    return "\n".join(lines) + "\n"


def _system(kind: ServerKind, inside: Topology, tree_only: bool) -> Iterator[str]:
    yield '<system version="1">'
    for cpu in inside.cpus:
        named = {"vendor": cpu.vendor, "familyid": cpu.family, "modelid": cpu.model} if cpu.vendor else {}
        yield _tag("cpu", 1, {"numaid": cpu.numa, "arch": cpu.arch, **named})
        for number, switch in enumerate(inside.switches, start=1):
            if switch.numa == cpu.numa:
                yield from _switch(kind, inside, number, switch, tree_only)
        yield "  </cpu>"
    yield "</system>"


def _switch(kind: ServerKind, inside: Topology, number: int, switch: PciSwitch, tree_only: bool) -> Iterator[str]:
    yield _pci(inside, 2, _SWITCHES.format(number), BRIDGE)
    for gpu in switch.gpus:
        yield _pci(inside, 3, kind.gpu_pci[gpu], ACCELERATOR, empty=tree_only)
        if not tree_only:
            yield from _accelerator(inside, gpu)
            yield "      </pci>"
    for rail in switch.rails:
        yield _pci(inside, 3, kind.nics[rail].pci, PORT, empty=tree_only)
        if not tree_only:
            yield from _port(kind, rail)
            yield "      </pci>"
    yield "    </pci>"


def _pci(inside: Topology, depth: int, address: str, sort: str, *, empty: bool = False) -> str:
    link = {"link_speed": inside.link_speed, "link_width": inside.link_width}
    return _tag("pci", depth, {"busid": address, "class": sort, **link}, empty=empty)


def _accelerator(inside: Topology, gpu: int) -> Iterator[str]:
    yield _tag("gpu", 4, {"dev": gpu, "sm": inside.sm}, empty=not inside.nvlinks)
    if inside.nvlinks:
        yield _tag("nvlink", 5, {"count": inside.nvlinks, "tclass": NVSWITCH}, empty=True)
        yield "        </gpu>"


def _port(kind: ServerKind, rail: int) -> Iterator[str]:
    nic = kind.nics[rail]
    name = {"name": nic.hca} if nic.hca else {}
    yield "        <nic>"
    yield _tag("net", 5, {**name, "dev": rail, "speed": int(nic.rate), "port": 1}, empty=True)
    yield "        </nic>"


def _tag(name: str, depth: int, attributes: Mapping[str, object], *, empty: bool = False) -> str:
    words = " ".join(f'{key}="{value}"' for key, value in attributes.items())
    return f"{'  ' * depth}<{name} {words}{'/' if empty else ''}>"
