"""The Ansible inventory: what the Design knows of each host, and where the engine's Outputs say that it is.

nodes         every host that can be reached
spares        those of them that wait for another to fail
pool_<pool>   by pool
rack_<rack>   by rack
role_<role>   whom a role concerns: the hosts of its play
unavailable   quarantined, late or failed: in no other group, so no play meets them
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from supernode.design import hostvars, roles
from supernode.errors import CouldNotRun
from supernode.records import DeviceOutput, Outputs

if TYPE_CHECKING:
    from supernode.design import Design, Host

NODES, SPARES, UNAVAILABLE = "nodes", "spares", "unavailable"
KNOWN_HOSTS = "known_hosts"
SCHEMA = 1


@dataclass(frozen=True)
class Inventory:
    """What Ansible is given.

    Attributes:
        groups: hosts by group, in design order.
        hosts: every host, in design order.
        hostvars: connection and role variables; those that are unavailable have the reason only.
    """

    groups: Mapping[str, tuple[str, ...]]
    hosts: tuple[str, ...]
    hostvars: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON document that `from_json` reads back."""
        return {"schema": SCHEMA, **dataclasses.asdict(self)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Inventory:
        """Read what `to_json` wrote.

        Raises:
            ValueError: another schema version.
        """
        if document.get("schema") != SCHEMA:
            raise ValueError(f"inventory of schema {document.get('schema')!r}, this version reads {SCHEMA}")
        groups = {group: tuple(members) for group, members in document["groups"].items()}
        return cls(groups, tuple(document["hosts"]), document["hostvars"])


def build(design: Design, outputs: Outputs, state: Path, key: Path) -> Inventory:
    """Join the Design with what provisioning left.

    Args:
        design: what is wanted.
        outputs: what the engine's state says of it.
        state: the environment's folder of state; only named here, never read.
        key: the operator's private key; only named here, never read.

    Raises:
        CouldNotRun: the two are not of one design, or name different devices.
    """
    _refuse_another_design(design, outputs)
    groups: dict[str, list[str]] = {NODES: [], SPARES: [], UNAVAILABLE: []}
    variables: dict[str, dict[str, Any]] = {}
    for host in design.hosts:
        output = outputs.devices.get(host.name)
        reason = _unavailable(host, output)
        if reason or output is None:
            groups[UNAVAILABLE].append(host.name)
            variables[host.name] = {"supernode_unavailable": reason}
            continue
        for group in _groups(design, host):
            groups.setdefault(group, []).append(host.name)
        variables[host.name] = {
            **connection(output.address, design.environment.access.user, state, key),
            **hostvars.build(design, host.name),
        }
    return Inventory({name: tuple(members) for name, members in groups.items()}, tuple(variables), variables)


def only(built: Inventory, names: Collection[str]) -> Inventory:
    """Return the inventory of these hosts alone, in the groups that they are in."""
    groups = {group: tuple(host for host in members if host in names) for group, members in built.groups.items()}
    hosts = tuple(host for host in built.hosts if host in names)
    return Inventory(groups, hosts, {host: built.hostvars[host] for host in hosts})


def connection(address: str, user: str, state: Path, key: Path) -> dict[str, str | int]:
    """Return the variables by which Ansible reaches a host: one key, one pinned list of host keys, no question."""
    # Quoted twice: the shell-like split takes one pair, ssh's own reading of a list of files the other.
    known = f"-o 'UserKnownHostsFile=\"{state / KNOWN_HOSTS}\"' -o GlobalKnownHostsFile=/dev/null"
    return {
        "ansible_host": address,
        "ansible_user": user,
        "ansible_python_interpreter": "/usr/bin/python3",
        "ansible_ssh_private_key_file": str(key),
        "ansible_ssh_common_args": f"{known} -o StrictHostKeyChecking=yes",
        # What ansible.cfg says to ssh, mitogen takes from here.
        "mitogen_ssh_keepalive_interval": 10,
        "mitogen_ssh_keepalive_count": 3,
    }


def known_hosts(outputs: Outputs) -> str:
    """Return the text of the known_hosts file: a line for each key of each device, under its address and its name."""
    return "".join(sorted(_known(outputs)))


def _known(outputs: Outputs) -> Iterator[str]:
    for device in outputs.devices.values():
        for key in device.host_keys:
            kind, blob = key.split()[:2]
            yield f"{device.address},{device.name} {kind} {blob}\n"


def _groups(design: Design, host: Host) -> tuple[str, ...]:
    named = (group_name("role", role.name) for role in roles.of(design, host))
    own = (NODES, group_name("pool", host.pool), group_name("rack", host.rack), *named)
    return (*own, SPARES) if host.state == "spare" else own


def group_name(kind: str, name: str) -> str:
    """Return a group's name, in letters, digits and underscores as Ansible asks: `pool_gpu`."""
    return re.sub(r"\W", "_", f"{kind}_{name}")


def _unavailable(host: Host, output: DeviceOutput | None) -> str:
    """Say why a host cannot be configured; empty when it can."""
    if host.state == "quarantined":
        return "quarantined"
    if output is None or output.state == "ready":
        return ""
    return f"{output.state} in {output.phase}: {output.reason}"


def _refuse_another_design(design: Design, outputs: Outputs) -> None:
    again = f"`supernode bringup {design.name} --only provision`"
    if outputs.environment != design.name:
        raise CouldNotRun(design.name, f"the outputs are those of {outputs.environment}", f"run {again}")
    if not outputs.design:
        raise CouldNotRun(design.name, "its stacks were provisioned from different designs", f"run {again}")
    if outputs.design != design.digest:
        was, now = outputs.design[:8], design.digest[:8]
        raise CouldNotRun(design.name, f"it was provisioned from another design ({was}, now {now})", f"run {again}")
    quarantined = {host.name for host in design.hosts if host.state == "quarantined"}
    designed = design.device_names
    missing = designed - quarantined - set(outputs.devices)
    unknown = set(outputs.devices) - designed
    if missing or unknown:
        parts = [f"designed and not provisioned: {', '.join(sorted(missing))}"] if missing else []
        parts += [f"provisioned and not designed: {', '.join(sorted(unknown))}"] if unknown else []
        raise CouldNotRun(design.name, "; ".join(parts), f"run {again}")
