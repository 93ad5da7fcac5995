"""Reading the catalogue's files, each once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

import yaml

from supernode.catalog import cloud, libraries, plugs, topology
from supernode.catalog.cdu import CduKind, kind_of
from supernode.catalog.cloud import Price
from supernode.catalog.model import BiosAttribute, Disk, Nic, Processors, ServerKind, SwitchKind
from supernode.units import MbitPerS, parse_rate

Names = Sequence[str] | None


@cache
def _documents() -> Mapping[str, Mapping[str, Any]]:
    folder = resources.files("supernode.catalog") / "data"
    files = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".yml")), key=lambda entry: entry.name)
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return {entry.name.removesuffix(".yml"): yaml.load(entry.read_text("utf-8"), Loader=loader) for entry in files}  # noqa: S506


def _names(sort: str) -> tuple[str, ...]:
    return tuple(name for name, document in _documents().items() if document["sort"] == sort)


def server_kinds() -> tuple[str, ...]:
    """Return the names of all server kinds."""
    return _names("server")


def switch_kinds() -> tuple[str, ...]:
    """Return the names of all switch kinds."""
    return _names("switch")


def cdu_kinds() -> tuple[str, ...]:
    """Return the names of all kinds of cooling units."""
    return _names("cdu")


def _document(name: str, known: tuple[str, ...], sort: str) -> dict[str, Any]:
    if name not in known:
        raise KeyError(f"no {sort} kind {name!r}; known: {', '.join(known)}")
    return {key: value for key, value in _documents()[name].items() if key != "sort"}


@cache
def server(kind: str) -> ServerKind:
    """Return a server kind.

    Raises:
        KeyError: no such kind; its text lists those that exist.
    """
    row = _document(kind, server_kinds(), "server")
    rate = parse_rate(row.pop("nic_rate")) if row["nics"] else MbitPerS(0)
    row["nics"] = tuple(_nics(row["nics"], rate, row.pop("hcas", None), row.pop("labels", None)))
    row["nic_splits"] = tuple(row.get("nic_splits", (1,)))
    row["gpu_pci"] = tuple(row.get("gpu_pci", ()))
    row["topology"] = topology.read(row.get("topology"))
    row["processors"] = Processors(**row["processors"]) if "processors" in row else None
    row["cloud"] = cloud.shape(row["cloud"], len(row["nics"])) if "cloud" in row else None
    row.pop("price", None)  # it changes by itself, and no machine with it: see `price`
    row["disk"] = Disk(**row["disk"])
    row["links"] = tuple(row.get("links", ("ethernet",)))
    row["bios"] = {
        name: BiosAttribute(entry["type"], entry["default"], tuple(entry.get("values", ())))
        for name, entry in row["bios"].items()
    }
    return ServerKind(name=kind, **row)


def _nics(listed: int | Sequence[str], rate: MbitPerS, hcas: Names, labels: Names) -> Iterator[Nic]:
    """Yield the ports from their PCI addresses, or from their number where no source says those."""
    pcis = [""] * listed if isinstance(listed, int) else listed
    unknown = [""] * len(pcis)
    for rail, (pci, hca, label) in enumerate(zip(pcis, hcas or unknown, labels or unknown, strict=True)):
        yield Nic(rail, pci, rate, hca, label)


def price(kind: str) -> Price | None:
    """Return what a server kind costs where it is rented; None where no source was read.

    Raises:
        KeyError: no such kind.
    """
    row = _document(kind, server_kinds(), "server").get("price")
    return cloud.price(row) if row else None


@cache
def switch(kind: str) -> SwitchKind:
    """Return a switch kind.

    Raises:
        KeyError: no such kind; its text lists those that exist.
    """
    row = _document(kind, switch_kinds(), "switch")
    row["rate"] = parse_rate(row["rate"])
    row["splits"] = tuple(row["splits"])
    row["capacity"] = parse_rate(row["capacity"]) if row.get("capacity") else None
    return SwitchKind(name=kind, **row)


@cache
def cdu(kind: str) -> CduKind:
    """Return a kind of cooling unit.

    Raises:
        KeyError: no such kind; its text lists those that exist.
    """
    return kind_of(kind, _document(kind, cdu_kinds(), "cdu"))


@cache
def optics() -> tuple[plugs.Product, ...]:
    """Return all cables, transceivers and fibres, the cheaper of two that do the same before the dearer."""
    rows = (_document(name, _names("optics"), "optics") for name in _names("optics"))
    return tuple(product for row in rows for product in plugs.products(row["vendor"], row["source"], row["products"]))


@cache
def library(name: str) -> libraries.CollectiveLibrary:
    """Return a collective library.

    Raises:
        KeyError: no such library; its text lists those that exist.
    """
    return libraries.read(name, _document(name, _names("library"), "library"))
