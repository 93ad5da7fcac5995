"""What the cloud share of a stack is given: one network, and its pools, as plain JSON for the components.

The keys are those of docs/contracts.md, section 7. Nothing in it is secret: user-data names keys that are public.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network
from typing import Any, Protocol

from supernode import catalog
from supernode.design import Design, Host, scheduler, seed, watching
from supernode.errors import CouldNotRun
from supernode.spec import Cloud, Pool, SlotState

SLURMD_PORT = 6818  # Slurm's own, which the design leaves as it is
USER_DATA_LIMIT = 16 * 1024  # of one instance, before it is encoded (EC2 User Guide, "User data")


class Trust(Protocol):
    """What a host has to know before anybody has logged in to it; both are public."""

    @property
    def serve_ca(self) -> str:
        """PEM of the CA behind `supernode serve`."""

    @property
    def ssh_public_key(self) -> str:
        """The operator's."""


@dataclass(frozen=True)
class CloudShare:
    """The cloud's part of one stack.

    Attributes:
        network: inputs of the one network; empty where no pool of the stack is rented.
        pools: inputs by pool.
    """

    network: Mapping[str, Any] = field(default_factory=dict)
    pools: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def share(design: Design, stack: str, trust: Trust) -> CloudShare:
    """Compute a stack's cloud share.

    Raises:
        CouldNotRun: boot has not prepared what the hosts have to know.
    """
    cloud = design.environment.cloud
    hosts = [host for host in design.hosts if host.cloud and host.stack == stack]
    if cloud is None or not hosts:
        return CloudShare()
    if not (trust.serve_ca and trust.ssh_public_key):
        hint = f"run `supernode bringup {design.name}`, or `supernode image {design.name}` alone"
        raise CouldNotRun(hosts[0].name, "its user-data has no key and no CA yet", hint)
    pools = [pool for pool in design.environment.pools if any(host.pool == pool.name for host in hosts)]
    return CloudShare(
        _network(design, cloud),
        {pool.name: _pool(design, cloud, pool, [h for h in hosts if h.pool == pool.name], trust) for pool in pools},
    )


def _network(design: Design, cloud: Cloud) -> dict[str, Any]:
    management = design.environment.site.networks.management.cidr
    return {
        "name": design.name,
        "provider": cloud.provider,
        "region": cloud.region,
        "zone": cloud.zone,
        "cidr": str(cloud.cidr),
        "subnet": str(cloud.hosts),
        "gateway": cloud.gateway,
        "routes": [str(network) for network in _site(design, cloud)],
        "letIn": _let_in(design, cloud.ssh_from or management),
    }


def _let_in(design: Design, operators: IPv4Network) -> list[dict[str, Any]]:
    """Return who of the site may come in, and to which port: SSH, and the daemons that ask the hosts for something."""
    rows: list[dict[str, Any]] = [{"port": 22, "from": str(operators), "what": "SSH"}]
    daemons = [
        (watching.service_host(design), watching.NODE_PORT, "metrics"),
        (scheduler.controller(design), SLURMD_PORT, "jobs"),
    ]
    for host, port, what in daemons:
        if host is not None and not host.cloud:
            rows.append({"port": port, "from": str(IPv4Network(host.management.ip)), "what": what})
    return rows


def _site(design: Design, cloud: Cloud) -> list[IPv4Network]:
    """Return what the hosts have to reach on the site: those who log in to them, mirror, time and names; no BMC."""
    site = design.environment.site
    wanted = [site.networks.management.cidr, *([cloud.ssh_from] if cloud.ssh_from else [])]
    servers = [site.serve.address, *site.name_servers, *_addresses(site.time_servers)]
    for address in servers:
        if not any(address in network for network in (*wanted, cloud.cidr)) and not address.is_link_local:
            wanted.append(IPv4Network(address))
    return list(dict.fromkeys(wanted))


def _addresses(names: tuple[str, ...]) -> list[IPv4Address]:
    found = []
    for name in names:
        try:
            found.append(IPv4Address(name))
        except ValueError:
            continue  # a name: whoever serves names says where it stands
    return found


def _pool(design: Design, cloud: Cloud, pool: Pool, hosts: list[Host], trust: Trust) -> dict[str, Any]:
    shape = catalog.server(pool.kind).cloud
    if shape is None:  # the documents were checked for it
        raise KeyError(pool.kind)
    return {
        "name": pool.name,
        "environment": design.name,
        "instanceType": shape.instance_type,
        "cards": [{"card": card.card, "device": card.device, "type": card.type} for card in shape.cards],
        "image": cloud.image.model_dump(exclude_none=True),
        "capacity": cloud.capacity.model_dump(exclude_none=True),
        "rootGb": cloud.root_gb,
        "hosts": {host.name: _host(design, host, trust) for host in hosts},
    }


def _host(design: Design, host: Host, trust: Trust) -> dict[str, Any]:
    """Compute one instance's inputs; a slot that machines.yml does not know counts as in service, as on metal."""
    record = design.machines.slots.get(host.slot)
    text = seed.user_data(design, host, trust.serve_ca, trust.ssh_public_key)
    if len(text.encode()) > USER_DATA_LIMIT:
        raise CouldNotRun(host.name, f"its user-data has {len(text.encode())} bytes, {USER_DATA_LIMIT} are taken")
    return {
        "slot": host.slot,
        "address": str(host.management.ip),
        "userData": text,
        "hostKey": host.identity.ssh_host_key,
        "inService": record is None or record.state == SlotState.IN_SERVICE,
    }
