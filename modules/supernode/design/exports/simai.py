"""The topology text of SimAI's ns-3: numbers for accelerators, NVSwitches and switches, and a line for each link."""

from __future__ import annotations

from collections.abc import Iterator

from supernode.design.model import Design
from supernode.design.rows import Host

LATENCY = "0.0005ms"  # of a link, as SimAI's own generator writes it
# Gbit/s of an accelerator's NVLinks in one direction: half of what the vendor's data sheets of A100, H100, B200 state.
_NVLINK = {"A100": 2400, "H100": 3600, "H200": 3600, "B200": 7200, "B300": 7200, "GB200": 7200, "GB300": 7200}


def lines(design: Design) -> Iterator[str]:
    """Yield the header, the numbers of all switches and the links; accelerators come first, host by host.

    A rail's link begins at the accelerator of its place among the host's rails. Where the rate of what joins the
    accelerators of a host is not known there is no NVSwitch.
    """
    hosts, numbers = _hosts(design), _numbers(design)
    kind = design.server_kind(hosts[0])
    inside = _NVLINK.get(kind.gpu.split(" ")[0], 0)
    boxes = [numbers[f"{host.name} nvswitch"] for host in hosts] if inside else []
    total, below = len(numbers), sum(design.server_kind(host).gpus for host in hosts)
    links = len(design.links) + (below if inside else 0)
    name = kind.gpu.split(" ")[0] or "generic"
    yield f"{total} {kind.gpus} {len(boxes)} {len(design.switches)} {links} {name}\n"
    yield " ".join(map(str, [*boxes, *(numbers[switch.name] for switch in design.switches)])) + "\n"
    for host, box in zip(hosts, boxes, strict=False):
        first = numbers[f"{host.name} 0"]
        yield from (f"{first + gpu} {box} {inside}Gbps {LATENCY} 0\n" for gpu in range(design.server_kind(host).gpus))
    for link in design.links:
        gpu = "" if link.rail is None else f" {_gpu(design, link.a_device, link.rail)}"
        a = numbers[f"{link.a_device}{gpu}"]
        yield f"{a} {numbers[link.b_device]} {link.rate / 1000:g}Gbps {LATENCY} 0\n"


def nodes(design: Design) -> Iterator[str]:
    """Yield nodes.csv: what each number of the topology stands for."""
    yield "node,device,part\n"
    for name, number in _numbers(design).items():
        device, _, part = name.partition(" ")
        said = part if part in ("", "nvswitch") else f"gpu{part}"
        yield f"{number},{device},{said or 'switch'}\n"


def _gpu(design: Design, host: str, rail: int) -> int:
    kind = design.server_kind(design.host(host))
    return rail * kind.gpus // len(kind.nics)


def _hosts(design: Design) -> list[Host]:
    return [host for host in design.hosts if host.su]


def _numbers(design: Design) -> dict[str, int]:
    hosts = _hosts(design)
    names = [f"{host.name} {gpu}" for host in hosts for gpu in range(design.server_kind(host).gpus)]
    if _NVLINK.get(design.server_kind(hosts[0]).gpu.split(" ")[0]):
        names += [f"{host.name} nvswitch" for host in hosts]
    names += [switch.name for switch in design.switches]
    return {name: number for number, name in enumerate(names)}
