"""What a collective library has to know of a server's inside: processors, PCI switches, links between accelerators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Library = Literal["nccl", "hccl"]
Owner = Literal["image-owned", "plugin-owned"]


@dataclass(frozen=True)
class Cpu:
    """One NUMA node; vendor, family and model are what CPUID says, and only x86_64 has them."""

    numa: int
    arch: str
    vendor: str = ""
    family: int = 0
    model: int = 0


@dataclass(frozen=True)
class PciSwitch:
    """A PCI switch with the accelerators and the rails below it, by their numbers."""

    numa: int
    gpus: tuple[int, ...]
    rails: tuple[int, ...]


@dataclass(frozen=True)
class Topology:
    """A server's inside.

    Attributes:
        library: the one that its accelerators speak.
        sm: compute capability, e.g. 90; 0 where the library knows no such thing.
        nvlinks: links from each accelerator to the NVSwitches; 0 where there are none.
        link_speed: of every PCI link, in the kernel's words, e.g. "32.0 GT/s PCIe".
        link_width: lanes of every PCI link.
        owners: variables that the machines' image or network plugin sets itself, so that nobody else may.
    """

    library: Library
    sm: int
    nvlinks: int
    link_speed: str
    link_width: int
    cpus: tuple[Cpu, ...]
    switches: tuple[PciSwitch, ...]
    owners: Mapping[str, Owner] = field(default_factory=dict)


def read(row: Mapping[str, Any] | None) -> Topology | None:
    """Read the `topology` of a server's file; None where it has none."""
    if row is None:
        return None
    switches: Sequence[Mapping[str, Any]] = row.get("switches", ())
    return Topology(
        library=row["library"],
        sm=row.get("sm", 0),
        nvlinks=row.get("nvlinks", 0),
        link_speed=row.get("link_speed", ""),
        link_width=row.get("link_width", 0),
        cpus=tuple(Cpu(**cpu) for cpu in row.get("cpus", ())),
        switches=tuple(PciSwitch(one["numa"], tuple(one["gpus"]), tuple(one["rails"])) for one in switches),
        owners=row.get("owners", {}),
    )
