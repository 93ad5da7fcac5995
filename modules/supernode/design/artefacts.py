"""Every artefact of a design by its file name: what `supernode design --out` writes and the golden tests keep.

A new format is one module that yields lines, and one row here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from supernode.design import export, infiniband
from supernode.design.model import Design
from supernode.design.pictures import fabric, racks


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
TABLES = (
    Artefact(
        "addresses.csv",
        "Loopbacks and both ends of every rail, where no device's files have them.",
        export.addresses_csv,
        lambda design: large(design) and not _infiniband(design),
    ),
)
PICTURES: tuple[Artefact, ...] = (
    Artefact("fabric.svg", "The fabric, whole or in units.", fabric.lines),
    Artefact("racks.svg", "The racks in elevation.", racks.lines),
)
ARTEFACTS = SHEETS + TABLES + PICTURES


def of(design: Design, among: tuple[Artefact, ...] = ARTEFACTS) -> Iterator[Artefact]:
    """Yield the artefacts that a design has."""
    return (artefact for artefact in among if artefact.concerns(design))
