"""`supernode kinds`: the hardware that the catalogue knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from supernode.cli.output import emit

if TYPE_CHECKING:
    from rich.console import RenderableType


def kinds(as_json: Annotated[bool, typer.Option("--json", help="print them as JSON")] = False) -> None:
    """List the kinds of servers, switches and cooling units that an environment may name, with their sources.

    Example: supernode kinds
    """
    from supernode import catalog

    servers = [_server(name) for name in catalog.server_kinds()]
    switches = [_switch(name) for name in catalog.switch_kinds()]
    cooling = [_cdu(name) for name in catalog.cdu_kinds()]
    document = {"servers": servers, "switches": switches, "cooling": cooling}
    emit(document, as_json=as_json, text=lambda: _text(servers, switches, cooling))


def _server(name: str) -> dict[str, Any]:
    """Describe a server kind; rates in Mbit/s."""
    from supernode import catalog

    kind = catalog.server(name)
    return {
        "kind": name,
        "model": f"{kind.vendor} {kind.model}",
        "gpus": kind.gpus,
        "gpu": kind.gpu,
        "rails": len(kind.nics),
        "rail_mbit_s": kind.nics[0].rate if kind.nics else 0,
        "height_u": kind.height_u,
        "boot": kind.boot,
        "source": kind.source,
    }


def _switch(name: str) -> dict[str, Any]:
    """Describe a switch kind; rates in Mbit/s."""
    from supernode import catalog

    kind = catalog.switch(name)
    return {
        "kind": name,
        "model": f"{kind.vendor} {kind.model}",
        "os": kind.os,
        "ports": kind.ports,
        "port_mbit_s": kind.rate,
        "splits": list(kind.splits),
        "height_u": kind.height_u,
        "source": kind.source,
    }


def _cdu(name: str) -> dict[str, Any]:
    """Describe a kind of cooling unit."""
    from supernode import catalog

    kind = catalog.cdu(name)
    return {
        "kind": name,
        "model": f"{kind.vendor} {kind.model}",
        "protocol": kind.protocol,
        "signals": [signal.key for signal in kind.signals],
        "freshness": kind.freshness,
        "source": kind.source,
    }


def _text(
    servers: list[dict[str, Any]], switches: list[dict[str, Any]], cooling: list[dict[str, Any]]
) -> RenderableType:
    from rich.console import Group
    from rich.table import Table

    from supernode.units import format_rate

    upper = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("server", "model", "GPUs", "rails", "U"):
        upper.add_column(column, overflow="fold")
    for row in servers:
        gpus = f"{row['gpus']} x {row['gpu']}" if row["gpus"] else "none"
        rails = f"{row['rails']} x {format_rate(row['rail_mbit_s'])}" if row["rails"] else "none"
        upper.add_row(row["kind"], row["model"], gpus, rails, str(row["height_u"]))
    lower = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("switch", "model", "system", "ports", "splits", "U"):
        lower.add_column(column, overflow="fold")
    for row in switches:
        ports, splits = f"{row['ports']} x {format_rate(row['port_mbit_s'])}", ", ".join(map(str, row["splits"]))
        lower.add_row(row["kind"], row["model"], row["os"], ports, splits, str(row["height_u"]))
    units = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("cooling unit", "model", "by", "signals", "fresh by"):
        units.add_column(column, overflow="fold")
    for row in cooling:
        units.add_row(row["kind"], row["model"], row["protocol"], str(len(row["signals"])), row["freshness"])
    sources = [f"{row['kind']}: {row['source']}" for row in (*servers, *switches, *cooling)]
    return Group(upper, "", lower, "", units, "", "sources", *sources)
