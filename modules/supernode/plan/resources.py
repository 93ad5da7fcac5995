"""What each resource of a stack is given: one pure mapping from the Design, for the program, the plan and an import.

Keys are those of docs/contracts.md, section 7; values are plain JSON. Secrets stay references.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from supernode import catalog
from supernode.design import Design, Host, Switch, VpnLink, cooling
from supernode.errors import CouldNotRun
from supernode.plan.cloud import CloudShare, share
from supernode.spec import SlotState


class BootFacts(Protocol):
    """What `boot` prepared for this environment; paths are relative to its folder."""

    @property
    def image(self) -> str:
        """Digest of the golden image: sha256, hexadecimal."""

    @property
    def ca(self) -> str:
        """The certificate file of the server of media and images."""

    @property
    def isos(self) -> Mapping[str, str]:
        """Digest of each machine's deploy ISO, by host name."""

    @property
    def serve_ca(self) -> str:
        """PEM of the server's CA."""

    @property
    def ssh_public_key(self) -> str:
        """The operator's."""


@dataclass(frozen=True)
class Stack:
    """One stack's share of an environment.

    Attributes:
        machines, switches: inputs by designed name.
        after: the switches of this stack that a machine waits for, by its name.
        cloud: the network of the rented pools, and their hosts.
        links: inputs of each tunnel to another site, by that site's name.
        behind: the machines that are reached by such a tunnel alone, by the site's name.
    """

    machines: Mapping[str, Mapping[str, Any]]
    switches: Mapping[str, Mapping[str, Any]]
    after: Mapping[str, tuple[str, ...]]
    cloud: CloudShare = field(default_factory=CloudShare)
    links: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    behind: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """How many resources can be worked on at once."""
        rented = sum(len(pool["hosts"]) for pool in self.cloud.pools.values())
        return len(self.machines) + len(self.switches) + len(self.links) + rented


def stack(design: Design, name: str, facts: BootFacts, key: str) -> Stack:
    """Compute what a stack holds.

    Args:
        design: the Design.
        name: one of `design.stacks()`.
        facts: what boot prepared.
        key: reference to the operator's private key.

    Raises:
        CouldNotRun: the design has no such stack, or boot prepared no deploy ISO for one of its machines.
    """
    if name not in design.stacks():
        raise CouldNotRun(f"stack {name}", f"environment {design.name} is cut into {', '.join(design.stacks())}")
    hosts = [host for host in design.hosts if host.stack == name and not host.cloud]
    switches = [switch for switch in design.configured_switches if switch.stack == name]
    return Stack(
        machines={host.name: machine(design, host, facts, key) for host in hosts},
        switches={switch.name: switch_config(design, switch, key) for switch in switches},
        after=_after(design, hosts, switches),
        cloud=share(design, name, facts),
        links={link.name: tunnel(design, link, key) for link in _links(design, name)},
        behind={link.name: _behind(design, link, hosts) for link in _links(design, name)},
    )


def _links(design: Design, name: str) -> tuple[VpnLink, ...]:
    """Return the tunnels of a stack: all of them are in the environment's first."""
    return (design.vpn,) if design.vpn and name == design.stacks()[0] else ()


def _behind(design: Design, link: VpnLink, hosts: list[Host]) -> tuple[str, ...]:
    pools = {pool.name for pool in design.environment.pools if pool.site == link.name}
    return tuple(host.name for host in hosts if host.pool in pools and host.state != "quarantined")


def tunnel(design: Design, link: VpnLink, key: str) -> dict[str, Any]:
    """Compute the inputs of one Tunnel; it fails its stack: what lies behind it would be late machine by machine."""
    return {
        "name": link.name,
        "sshUser": design.environment.access.switch_user,
        "sshKey": key,
        "gateways": [
            {
                "name": row.name,
                "address": str(row.address),
                "hostKey": row.host_key,
                "initiates": row.public is None,
                "files": [
                    {"path": file.path, "content": file.content, "mode": file.mode}
                    for file in design.gateway_files(row.name)
                ],
            }
            for row in link.gateways
        ],
    }


def _after(design: Design, hosts: list[Host], switches: list[Switch]) -> dict[str, tuple[str, ...]]:
    """Fence first: a spare waits for all switches here, every machine for those that shut a quarantined slot's ports.

    Which machine takes over for a quarantined one is written nowhere (the spare's own slot becomes active): all wait.
    """
    here = {switch.name for switch in switches}
    quarantined = {host.name for host in design.hosts if host.state == "quarantined"}
    fencing = {link.b_device for name in quarantined for link in design.links_of(name) if link.kind == "rail"} & here
    wanted = {host.name: here if host.state == "spare" else fencing for host in hosts if host.name not in quarantined}
    return {name: tuple(sorted(waits)) for name, waits in wanted.items() if waits}


def machine(design: Design, host: Host, facts: BootFacts, key: str) -> dict[str, Any]:
    """Compute the inputs of one Machine; a slot that machines.yml does not know counts as in service."""
    environment = design.environment
    record = design.machines.slots.get(host.slot)
    base = f"https://{environment.site.serve.address}:{environment.site.serve.port}"
    if host.name not in facts.isos:
        hint = f"run `supernode bringup {design.name}`, or `supernode image {design.name}` alone"
        raise CouldNotRun(host.name, "it has no deploy medium yet", hint)
    iso = facts.isos[host.name]
    return {
        "name": host.name,
        "slot": host.slot,
        "address": str(host.management.ip),
        "bmc": controller(design, host),
        "identity": host.identity.hardware(),
        "hostKey": host.identity.ssh_host_key,
        "state": str(host.state),
        "inService": record is None or record.state == SlotState.IN_SERVICE,
        "media": {"url": f"{base}/boot/{host.name}/{iso}.iso", "digest": iso, "ca": facts.ca},
        "image": facts.image,
        "enrolment": f"{base}/enrolled/{host.name}",
        "bios": design.bios(host),
        "firmware": design.firmware(host),
        "power": "On",
        "deadlineS": environment.machines.deadline_s,
        "sshUser": environment.access.user,
        "sshKey": key,
        "strict": environment.machines.strict,
        "interlock": _interlock(design, host),
    }


def _interlock(design: Design, host: Host) -> dict[str, Any]:
    """Say what the cooling unit of the machine's rack must show before it is switched on; {} where there is none."""
    unit = design.cooling_of(host.rack)
    return dict(cooling.interlock(design.environment, unit, host)) if unit else {}


def controller(design: Design, host: Host) -> dict[str, Any]:
    """Say how a machine's controller is reached and what it must show; what is not known stays out.

    Passwords are references, `pin` is the SHA-256 of its certificate, `ca` a file of the environment's folder.
    """
    wanted = design.environment.bmc
    reached: dict[str, Any] = {
        "address": str(host.bmc),
        "username": wanted.username,
        "password": _of_slot(wanted.password, host),
        "media": catalog.server(host.kind).boot,
    }
    if wanted.factory:
        factory = wanted.factory
        reached["factory"] = {"username": factory.username, "password": _of_slot(factory.password, host)}
    trusted = {"ca": wanted.ca, "pin": host.identity.bmc_fingerprint}
    return reached | {key: value for key, value in trusted.items() if value}


def _of_slot(reference: str, host: Host) -> str:
    return reference.replace("{slot}", host.slot)


def switch_config(design: Design, switch: Switch, key: str) -> dict[str, Any]:
    """Compute the inputs of one SwitchConfig."""
    files = design.switch_files(switch.name)
    return {
        "name": switch.name,
        "slot": switch.slot,
        "address": str(switch.management.ip),
        "hostKey": switch.identity.ssh_host_key,
        "sshUser": design.environment.access.switch_user,
        "sshKey": key,
        "files": [{"path": file.path, "content": file.content, "mode": file.mode} for file in files],
        "strict": design.environment.machines.strict,
    }
