"""Containerlab's YAML for Ethernet fabrics: every switch an FRR container with the files that it gets anyway."""

from __future__ import annotations

from collections.abc import Iterator

from supernode.design.model import Design

IMAGE = "quay.io/frrouting/frr:10.2.1"
HOST = "alpine:3"
_FILES = "/etc/frr/"


def lines(design: Design) -> Iterator[str]:
    """Yield the topology; it lies beside `files/`, from which the switches' configuration is bound into place."""
    yield f"name: {design.name}\ntopology:\n  kinds:\n    linux: {{image: {HOST}}}\n  nodes:\n"
    for switch in design.switches:
        yield f"    {switch.name}:\n      kind: linux\n      image: {IMAGE}\n      group: {switch.tier}\n"
        mine = [file.path for file in design.switch_files(switch.name) if file.path.startswith(_FILES)]
        if mine:
            yield "      binds:\n"
        yield from (f"        - ../files/{switch.name}{path}:{path}\n" for path in mine)
    hosts = {link.a_device: None for link in design.links if design.is_host(link.a_device)}
    yield from (f"    {name}: {{kind: linux, group: host}}\n" for name in hosts)
    yield "  links:\n"
    for link in design.links:
        yield f'    - endpoints: ["{link.a_device}:{link.a_port}", "{link.b_device}:{link.b_port}"]\n'
