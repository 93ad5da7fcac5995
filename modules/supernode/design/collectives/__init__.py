"""Collective libraries: what they are told on each host, why, and the files that say it."""

from __future__ import annotations

from supernode.design.collectives import conf, hccl, nccl, topology
from supernode.design.collectives.settings import Left, Setting, Tuning
from supernode.design.model import Design
from supernode.design.rows import Host, RenderedFile
from supernode.spec.collectives import Collectives

__all__ = ["Left", "Setting", "Tuning", "applies", "files", "tuning"]
ROLE = "collectives"


def applies(design: Design, host: Host) -> bool:
    """Tell whether a host has accelerators that speak the library that environment.yml asks for."""
    return _section(design, host) is not None


def _section(design: Design, host: Host) -> Collectives | None:
    section, inside = design.environment.collectives, design.server_kind(host).topology
    return section if section is not None and inside is not None and inside.library == section.library else None


def tuning(design: Design, host: Host) -> Tuning:
    """Return what a host's library is told.

    Raises:
        ValueError: the host has none.
    """
    section = _section(design, host)
    if section is None:
        raise ValueError(f"{host.name} has no collective library")
    derive = nccl.tuning if section.library == "nccl" else hccl.tuning
    return derive(design, host, section)


def files(design: Design, host: Host) -> list[RenderedFile]:
    """Return the files of a host's library."""
    section = _section(design, host)
    if section is None:
        return []
    found = tuning(design, host)
    if section.library == "hccl":
        return [RenderedFile(path, text, role=ROLE) for path, text in hccl.files(design, host, found)]
    inside = topology.render(design.server_kind(host), tree_only=section.topology_file)
    return [
        RenderedFile(conf.PATH, conf.render(found), role=ROLE),
        RenderedFile(topology.PATH, inside, role=ROLE),
    ]
