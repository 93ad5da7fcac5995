"""All that one device was asked, and its facts: what the gates get to see."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, TypeVar

from supernode.clients.slurm import Node
from supernode.verify.expected import HostWanted, Wanted
from supernode.verify.facts import (
    clock,
    collectives,
    fib,
    gpus,
    identity,
    infiniband,
    lldp,
    ping,
    ports,
    scraped,
    slurm,
    tunnel,
)
from supernode.verify.facts.flows import Measured
from supernode.verify.facts.raw import NotSeenError, Raw, answers

PATIENCE_S = 15
T = TypeVar("T")


@dataclass(frozen=True)
class DeviceFacts:
    """What was seen of one device; None is *not seen*, and `unseen` says why, by the fact's name.

    Attributes:
        reached: the device answered on its management address with its pinned key.
        sweeps: by (port, "leaf" or "peer"); of a gateway by ("tunnel" or "wan", "peer").
        tunnel: of a gateway alone.
        subnet: the InfiniBand subnet, from a host that manages it.
    """

    name: str
    reached: bool
    why: str = ""
    identity: identity.Identity | None = None
    ports: Mapping[str, ports.Port] | None = None
    neighbours: Mapping[str, tuple[lldp.Neighbour, ...]] | None = None
    clock: clock.Clock | None = None
    routes: tuple[fib.Route, ...] | None = None
    sweeps: Mapping[tuple[str, str], ping.Sweep] = field(default_factory=dict)
    gpus: gpus.Gpus | None = None
    collectives: collectives.Read | None = None
    cooling: scraped.Metrics | None = None
    watch: scraped.Watched | None = None
    node: Node | None = None
    unseen: Mapping[str, str] = field(default_factory=dict)
    tunnel: tunnel.Tunnel | None = None
    subnet: infiniband.SubnetFacts | None = None


@dataclass(frozen=True)
class Facts:
    """Everything that was seen, and when (seconds since the epoch)."""

    devices: Mapping[str, DeviceFacts]
    flows: tuple[Measured, ...] = ()
    at: float = 0.0

    def of(self, name: str) -> DeviceFacts:
        """Return a device's facts; one that nobody asked was not reached."""
        return self.devices.get(name) or DeviceFacts(name, reached=False, why="not asked")


def command(script: str, request: Mapping[str, Any]) -> str:
    """Return the shell command that runs one of the on-host scripts with a request.

    Both travel as base64 in quotes of their own, so that no shell finds anything to expand. They show in the host's
    process list, and hold no secret.
    """
    text = resources.files("supernode.verify.facts").joinpath(f"{script}.py").read_bytes()
    body, asked = (base64.b64encode(part).decode() for part in (text, json.dumps(request).encode()))
    return f"python3 -c 'import base64;exec(base64.b64decode(\"{body}\"))' '{asked}'"


def request(wanted: Wanted, name: str, patience_s: float = PATIENCE_S) -> dict[str, Any]:
    """Return what one device is asked."""
    host = wanted.hosts.get(name)
    if name in wanted.gateways:
        return {"commands": tunnel.commands(wanted.gateways[name], wanted.gateways[wanted.gateways[name].peer])}
    rows = host.ports if host is not None else wanted.switches[name].ports
    commands = {"addresses": ports.COMMAND, "lldp": lldp.COMMAND, **identity.COMMANDS}
    if wanted.subnet is not None and name in wanted.subnet.managers:
        commands.update(infiniband.COMMANDS)
    if host is None:
        commands["routes"] = fib.COMMAND
    else:
        commands["clock"] = clock.COMMAND
        commands.update(_pings(wanted, name, host))
        commands.update(gpus.COMMANDS if host.gpus is not None else {})
        commands.update(_services(wanted, name))
        commands.update({"node": slurm.command(name)} if host.gres else {})
    files = dict(identity.FILES)
    if host is not None and host.collectives is not None:
        commands["rdma"] = collectives.COMMAND
        files.update(collectives.files(host.collectives.files))
    heard = len(rows) if wanted.subnet is None else 0
    return {"commands": commands, "files": files, "wait_lldp": heard, "patience_s": patience_s}


def _services(wanted: Wanted, name: str) -> dict[str, tuple[str, ...]]:
    """Return what is asked of the host that a service runs on."""
    found = {}
    if wanted.cooling is not None and wanted.cooling.host == name:
        found["cooling"] = scraped.cooling_command(wanted.cooling)
    if wanted.watch is not None and wanted.watch.host == name:
        found["watch"] = scraped.watch_command(wanted.watch)
    return found


def _pings(wanted: Wanted, name: str, host: HostWanted) -> dict[str, tuple[str, ...]]:
    found = {}
    for port, row in host.ports.items():
        targets = {"leaf": row.peer_address, "peer": next_address(wanted, name, port)}
        for who, address in targets.items():
            if address:
                for size, argv in ping.commands(row.address, address, row.mtu):
                    found[f"ping {port} {who} {size}"] = argv
    return found


def next_host(wanted: Wanted, name: str, port: str) -> str:
    """Return the next host on the same rail (the first after the last), or "" where there is no other."""
    names = [n for n, h in wanted.hosts.items() if port in h.ports]
    return names[(names.index(name) + 1) % len(names)] if len(names) > 1 else ""


def next_address(wanted: Wanted, name: str, port: str) -> str:
    """Return the rail address of `next_host`, or ""."""
    other = next_host(wanted, name, port)
    return wanted.hosts[other].ports[port].address if other else ""


def parse(name: str, text: str) -> DeviceFacts:
    """Read what the facts script printed on one device."""
    try:
        raw = answers(text)
    except (NotSeenError, ValueError) as error:
        return DeviceFacts(name, reached=True, unseen={"everything": str(error)})
    unseen: dict[str, str] = {}

    def seen(fact: str, read: Callable[[], T]) -> T | None:
        try:
            return read()
        except (NotSeenError, KeyError, ValueError, TypeError) as error:
            unseen[fact] = f"{type(error).__name__}: {error}" if not isinstance(error, NotSeenError) else str(error)
            return None

    if tunnel.HANDSHAKES in raw:
        return DeviceFacts(
            name,
            reached=True,
            routes=seen("routes", lambda: fib.parse(raw["routes"])),
            sweeps=seen("sweeps", lambda: _sweeps(raw)) or {},
            unseen=unseen,
            tunnel=seen("tunnel", lambda: tunnel.parse(raw)),
        )
    return DeviceFacts(
        name,
        reached=True,
        identity=seen("identity", lambda: identity.parse(raw)),
        ports=seen("ports", lambda: ports.parse(raw["addresses"], raw["hardware"])),
        neighbours=seen("neighbours", lambda: lldp.parse(raw["lldp"])),
        clock=seen("clock", lambda: clock.parse(raw["clock"])) if "clock" in raw else None,
        routes=seen("routes", lambda: fib.parse(raw["routes"])) if "routes" in raw else None,
        cooling=seen("cooling", lambda: scraped.metrics(raw["cooling"])) if "cooling" in raw else None,
        watch=seen("watch", lambda: scraped.watched(raw["watch"])) if "watch" in raw else None,
        sweeps=seen("sweeps", lambda: _sweeps(raw)) or {},
        gpus=seen("gpus", lambda: gpus.parse(raw)) if "gpus" in raw else None,
        node=seen("node", lambda: slurm.read(raw["node"])) if "node" in raw else None,
        collectives=seen("collectives", lambda: collectives.parse(raw)) if "rdma" in raw else None,
        unseen=unseen,
        subnet=seen("subnet", lambda: infiniband.parse(raw)) if "ibnetdiscover" in raw else None,
    )


def _sweeps(raw: Mapping[str, Raw]) -> dict[tuple[str, str], ping.Sweep]:
    rows: dict[tuple[str, str], dict[str, ping.Ping]] = {}
    for key, row in raw.items():
        if key.startswith("ping "):
            _, port, who, size = key.split(" ")
            rows.setdefault((port, who), {})[size] = ping.parse(row)
    return {key: ping.Sweep(found["small"], found["full"], found["over"]) for key, found in rows.items()}
