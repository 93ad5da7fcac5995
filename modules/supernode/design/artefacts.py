"""Every artefact of a design by its file name: what `supernode design --out` writes and the golden tests keep.

A new format is one module that yields lines, and one row here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from supernode.design import export, infiniband, physical
from supernode.design.exports import (
    containerlab,
    dot,
    infragraph,
    netbox,
    simai,
    slurm,
    topo,
    topograph,
    units,
    walking,
)
from supernode.design.model import Design
from supernode.design.pictures import domain, fabric, racks


def _always(_design: Design) -> bool:
    return True


TABLES_ONLY = 4096
"""Devices, above which the files of each are not written."""


def large(design: Design) -> bool:
    """Tell whether a design is written as tables alone."""
    return len(design.hosts) + len(design.switches) > TABLES_ONLY


def _infiniband(design: Design) -> bool:
    return design.environment.fabric.infiniband


@dataclass(frozen=True)
class Artefact:
    """One file of a design.

    Attributes:
        name: its path under --out.
        what: what it is and who reads it, one sentence.
        lines: yields its text, each line with its end.
        concerns: tells which designs have it.
    """

    name: str
    what: str
    lines: Callable[[Design], Iterator[str]]
    concerns: Callable[[Design], bool] = _always


# What the lab is built from and the cabling crew gets: these lie beside each other, and their names stay.
SHEETS: tuple[Artefact, ...] = (
    Artefact("cabling.csv", "Every cable with both its ends, its rate and its length.", export.cabling_csv),
    Artefact("bmc.csv", "The management controllers of the site's own hosts.", export.bmc_csv),
    Artefact("switches.csv", "The switches and their management addresses.", export.switches_csv),
    Artefact("cooling.csv", "The cooling units and the racks that they cool.", export.cooling_csv),
    Artefact("site.json", "Networks, time servers and the boot server of the site.", export.site_json),
    Artefact("fabric.net", "The subnet as ibnetdiscover prints and ibsim reads it.", infiniband.netlist, _infiniband),
)
TABLES: tuple[Artefact, ...] = (
    Artefact(
        "addresses.csv",
        "Loopbacks and both ends of every rail, where no device's files have them.",
        export.addresses_csv,
        lambda design: large(design) and not _infiniband(design),
    ),
)
BUYING: tuple[Artefact, ...] = (
    Artefact("optics.csv", "What is plugged in at both ends of every link.", physical.optics_sheet),
    Artefact("materials.csv", "The bill of materials, with spares.", physical.materials_sheet),
    Artefact("power.csv", "What each rack draws and what it is fed.", physical.power_sheet),
    Artefact("failure-domains.csv", "What is lost with a rack, feed, CDU or switch.", physical.domains_sheet),
)
PICTURES: tuple[Artefact, ...] = (
    Artefact("fabric.svg", "The fabric, whole or in units.", fabric.lines),
    Artefact("racks.svg", "The racks in elevation.", racks.lines),
    Artefact(
        "scale-up.svg",
        "One domain of accelerators.",
        domain.of_design,
        lambda design: design.environment.scale_up is not None,
    ),
)
LARGEST = 20_000
"""Of more cables than this the tools of `exports/` make nothing useful, and they would take longer than the design."""


def _readable(design: Design) -> bool:
    return 0 < len(design.links) <= LARGEST


def _subnet(design: Design) -> bool:
    return _readable(design) and _infiniband(design)


def _ethernet(design: Design) -> bool:
    return _readable(design) and not _infiniband(design)


def _accelerated(design: Design) -> bool:
    return _readable(design) and all(design.server_kind(host).gpus for host in design.hosts if host.su)


def _nvlink(design: Design) -> bool:
    return _readable(design) and bool(units.domains(design))


# docs/exports.md says who reads each of them, and what tests that.
EXPORTS: tuple[Artefact, ...] = (
    Artefact("exports/walk.csv", "Each plug in the order in which a crew walks.", walking.plan, _readable),
    Artefact("exports/labels.html", "A label for each plug, to be printed.", walking.labels, _readable),
    Artefact(
        "exports/fabric.topo", "The subnet for ibdiagnet, UFM and its Cable Validation Tool.", topo.lines, _subnet
    ),
    Artefact("exports/topology.dot", "The cables for PTM and the Cable Validation Tool.", dot.lines, _ethernet),
    Artefact("exports/slurm/topology.conf", "Slurm's tree.", slurm.tree, _readable),
    Artefact("exports/slurm/topology-block.conf", "Slurm's blocks, one an NVLink domain.", slurm.blocks, _nvlink),
    Artefact("exports/slurm/topology.yaml", "Both for Slurm from 25.05.", slurm.document, _readable),
    Artefact("exports/topograph/labels.yaml", "Labels of Kubernetes' nodes.", topograph.labels, _readable),
    Artefact("exports/topograph/model.yaml", "A model for topograph's simulation.", topograph.model, _readable),
    Artefact("exports/netbox/racks.csv", "NetBox: the first import.", netbox.racks, _readable),
    Artefact("exports/netbox/devices.csv", "NetBox: the second import.", netbox.devices, _readable),
    Artefact("exports/netbox/interfaces.csv", "NetBox: the third import.", netbox.interfaces, _readable),
    Artefact("exports/netbox/cables.csv", "NetBox: the fourth import.", netbox.cables, _readable),
    Artefact("exports/infragraph.yaml", "The graph for infragraph.", infragraph.lines, _readable),
    Artefact("exports/containerlab.clab.yml", "The fabric in containers.", containerlab.lines, _ethernet),
    Artefact("exports/simai/topology.txt", "The fabric for SimAI's ns-3.", simai.lines, _accelerated),
    Artefact("exports/simai/nodes.csv", "What the numbers in it stand for.", simai.nodes, _accelerated),
)
ARTEFACTS = SHEETS + TABLES + BUYING + PICTURES + EXPORTS


def of(design: Design, among: tuple[Artefact, ...] = ARTEFACTS) -> Iterator[Artefact]:
    """Yield the artefacts that a design has."""
    return (artefact for artefact in among if artefact.concerns(design))
