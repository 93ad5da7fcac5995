"""Infragraph's YAML (3.x): a device of each kind, an instance of each host and switch, an edge of each cable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from supernode.design.model import Design
from supernode.units import MbitPerS


def lines(design: Design) -> Iterator[str]:
    """Yield the infrastructure; every port is a component by its own name, so `gpu-001.0.rail3.0` is a node."""
    used = _used(design)
    yield f"name: {design.name}\ndevices:\n"
    for kind, ports in used.items():
        gpus = next((design.server_kind(host).gpus for host in design.hosts if host.kind == kind), 0)
        yield from _device(kind, "xpu" if gpus else "cpu", gpus or 1, ports, "nic" if gpus else "port")
    yield "links:\n"
    for rate in sorted({link.rate for link in design.links}):
        physical = f"{{bandwidth: {{choice: gigabits_per_second, gigabits_per_second: {rate / 1000:g}}}}}"
        yield f"- {{name: {_link(rate)}, physical: {physical}}}\n"
    yield "instances:\n"
    for name, kind in _kinds(design).items():
        if kind in used:
            yield f"- {{name: {name}, device: {kind}, count: 1}}\n"
    yield "edges:\n"
    for link in design.links:
        yield f"- {{scheme: one2one, link: {_link(link.rate)}, "
        yield f"ep1: {_end(link.a_device, link.a_port)}, ep2: {_end(link.b_device, link.b_port)}}}\n"


def _end(device: str, port: str) -> str:
    return f'{{instance: "{device}[0]", component: "{port}[0]"}}'


def _link(rate: MbitPerS) -> str:
    return f"cable-{rate:g}".replace(".", "-")


def _kinds(design: Design) -> dict[str, str]:
    return {host.name: host.kind for host in design.hosts} | {switch.name: switch.kind for switch in design.switches}


def _used(design: Design) -> dict[str, dict[str, None]]:
    """Return the ports that are used of each kind of device, those of one device and of another together."""
    kinds = _kinds(design)
    found: dict[str, dict[str, None]] = {}
    for link in design.links:
        for device, port in ((link.a_device, link.a_port), (link.b_device, link.b_port)):
            found.setdefault(kinds[device], {})[port] = None
    return found


def _device(name: str, sort: str, count: int, ports: Iterable[str], kind: str) -> Iterator[str]:
    """Yield a device whose ports all hang on what is inside it."""
    yield f"- name: {name}\n  components:\n  - {{name: inside, count: {count}, choice: {sort}, {sort}: {{}}}}\n"
    yield from (f"  - {{name: {port}, count: 1, choice: {kind}, {kind}: {{}}}}\n" for port in ports)
    yield "  links:\n  - {name: inside}\n  edges:\n"
    for port in ports:
        yield f"  - {{scheme: many2many, link: inside, ep1: {{component: inside}}, ep2: {{component: {port}}}}}\n"
