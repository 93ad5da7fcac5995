"""`supernode design`: the whole cluster on one screen, or in a folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from supernode.cli import inputs
from supernode.cli.output import emit, emit_lines, errors_end_the_process, say

if TYPE_CHECKING:
    from rich.table import Table

    from supernode.design import Design
    from supernode.design.vpn import VpnLink


MANY = 40  # names that the summary still writes out


def design(
    environment: Annotated[str, typer.Argument(help="a folder under inventories/, or a path")],
    out: Annotated[
        Path | None, typer.Option(help="write cabling.csv, bmc.csv, switches.csv, cooling.csv, site.json and all files")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print the summary as JSON")] = False,
    full: Annotated[bool, typer.Option("--full", help="with --json: every host, switch and cable, one a line")] = False,
) -> None:
    """Compute the design: hosts, switches, every cable with both its ends and its length, addresses, files.

    Nothing is contacted and nothing but --out is written.

    Example: supernode design lab --out design-lab
    """
    if full and not as_json:
        raise typer.BadParameter("--full prints JSON Lines: add --json", param_hint="--full")
    folder, locate = inputs.find(environment)
    with errors_end_the_process(locate):
        computed = inputs.design(folder)
    if out is not None:
        say(f"wrote {write(computed, out)} files under {out}")
        from supernode.design.artefacts import TABLES_ONLY, large

        if large(computed):
            say(f"above {TABLES_ONLY} devices only tables are written: `supernode show` prints the files of one device")
    if full:
        emit_lines(records(computed))
        return
    emit(_brief(computed) if as_json else None, as_json=as_json, text=lambda: summary(computed))


def _brief(computed: Design) -> dict[str, Any]:
    from supernode.design import summary as figures

    return figures.build(computed)


def records(computed: Design) -> Iterator[dict[str, Any]]:
    """Yield the whole design, one record for each thing, each with its `type`."""
    import dataclasses

    yield {
        "type": "design",
        "name": computed.name,
        "digest": computed.digest,
        "allocation_saved": computed.allocation_saved,
        "stacks": dict(computed.stack_sizes()),
    }
    rows: tuple[tuple[str, Iterable[Any]], ...] = (
        ("host", computed.hosts),
        ("switch", computed.switches),
        ("link", computed.links),
        ("cooling", computed.cooling),
        ("tunnel", [computed.vpn] if computed.vpn else []),
    )
    for name, items in rows:
        for item in items:
            yield {"type": name, **{k: v for k, v in dataclasses.asdict(item).items() if k != "identity"}}


def write(computed: Design, folder: Path) -> int:
    """Write the artefacts and, under files/<device>/, what stands on each device; return how many files."""
    from supernode.design import artefacts

    count = 0
    for artefact in artefacts.of(computed):
        path = folder / artefact.name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8") as stream:
            stream.writelines(artefact.lines(computed))
        count += 1
    if artefacts.large(computed):
        return count
    placed = [(host.name, computed.files(host.name)) for host in computed.hosts]
    placed += [(switch.name, computed.switch_files(switch.name)) for switch in computed.switches]
    for device, files in placed:
        for file in files:
            path = folder / "files" / device / file.path.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(file.content, encoding="utf-8")
            count += 1
    return count


def summary(computed: Design) -> Table:
    """Return the design on one screen."""
    from rich.table import Table

    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in _facts(computed):
        table.add_row(name, value)
    return table


def _facts(computed: Design) -> Iterable[tuple[str, str]]:
    import numpy as np

    from supernode import catalog
    from supernode.design import physical
    from supernode.design.naming import KINDS, TIERS
    from supernode.units import MbitPerS, format_rate

    env = computed.environment
    fabric, networks = env.fabric, env.site.networks
    yield "environment", f"{computed.name}  (design {computed.digest[:12]})"
    all_states, columns = computed.states(), computed.columns
    for index, pool in enumerate(env.pools):
        mine = np.flatnonzero(columns.hosts["pool"] == index)
        first, last = computed.hosts[int(mine[0])], computed.hosts[int(mine[-1])]
        states = Counter(all_states[i] for i in mine.tolist())
        kind = catalog.server(pool.kind)
        said = ", ".join(f"{count} {state}" for state, count in states.items())
        has = f"{states['active'] * kind.gpus} GPUs" if kind.gpus else "not on the fabric"
        yield f"pool {pool.name}", f"{said}; {has}; {kind.vendor} {kind.model}"
        racks = _some(list(dict.fromkeys(columns.racks[i] for i in columns.hosts["rack"][mine].tolist())))
        yield "", f"{first.name} … {last.name} in {racks}, slots {first.slot} … {last.slot}"
    tiers = dict(zip(TIERS, np.bincount(columns.switches["tier"], minlength=3).tolist(), strict=True))
    yield "fabric", f"{fabric.family}, {fabric.transport}, MTU {fabric.mtu}"
    cores = f", {tiers['core']} cores" if tiers["core"] else ""
    yield "", f"{tiers['leaf']} leaves ({fabric.leaf}), {tiers['spine']} spines{cores} ({fabric.spine})"
    counted = np.bincount(columns.links["tier"], minlength=3).tolist()
    kinds = {kind: count for kind, count in zip(KINDS, counted, strict=True) if count}
    rates = {"rail": fabric.rates.rail, "uplink": fabric.rates.uplink, "core": fabric.rates.uplink}
    said = ", ".join(f"{count} {kind} cables of {format_rate(MbitPerS(rates[kind]))}" for kind, count in kinds.items())
    yield "cables", said
    lengths = zip(*np.unique(columns.links["length_m"], return_counts=True), strict=True)
    yield "lengths", ", ".join(f"{count} x {round(float(length), 2):g} m" for length, count in lengths)
    yield from physical.facts(computed)
    yield from _layers(computed)
    yield (
        "oversubscription",
        f"{computed.oversubscription():.2f} at the fullest leaf, {fabric.oversubscription:g} declared",
    )
    for name, network in networks.declared().items():
        yield f"network {name}", f"{network.cidr}" + (f", gateway {network.gateway}" if network.gateway else "")
    for unit in computed.cooling:
        yield f"cooling {unit.name}", f"{unit.kind} at {unit.address}, racks {', '.join(unit.racks)}"
    if computed.vpn is not None:
        yield from _tunnel(computed.vpn)
    yield "stacks", _some([f"{name} ({count})" for name, count in computed.stack_sizes().items()])
    devices = len(computed.hosts) + len(computed.switches)
    yield "machines", f"{len(computed.machines.slots)} of {devices} slots are bound in machines.yml"
    if not computed.allocation_saved:
        yield "allocation", f"not saved: run `supernode allocate {computed.name}` and commit the file"


def _layers(computed: Design) -> Iterable[tuple[str, str]]:
    from supernode.design import layers

    if computed.scale_up:
        from supernode.families.nearest import described

        up = computed.scale_up.figures()
        said = f"{up['domains']} of {described(computed.scale_up.parameters)}: {up['cards']} cards"
        yield "scale-up", f"{said}, {up['ports_per_card']} ports each, {up['links']} links"
        yield "", _reach(up)
    yield "scale-out", _reach(layers.scale_out(computed))


def _reach(figures: Mapping[str, Any]) -> str:
    far = f"at most {figures['diameter']} hops, {figures['mean_hops']:.2f} in the mean"
    return f"{far}, bisection {figures['bisection_gbps']:,.0f} Gbit/s"


def _some(names: list[str]) -> str:
    """Name all of a few, and of many the first ones and the last."""
    return ", ".join(names if len(names) <= MANY else [*names[:3], "…", f"{names[-1]} ({len(names)})"])


def _tunnel(link: VpnLink) -> Iterable[tuple[str, str]]:
    yield f"tunnel {link.name}", f"MTU {link.mtu} over a WAN of {link.wan_mtu}, UDP port {link.port}"
    for gateway in link.gateways:
        found = f"{gateway.public}" if gateway.public else "behind address translation"
        yield "", f"{gateway.name} of {gateway.site}: {found}; lets pass {', '.join(map(str, gateway.own))}"
