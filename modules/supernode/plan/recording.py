"""What a run leaves behind of its design, so that the next plan can say what changed."""

from __future__ import annotations

import hashlib
from typing import Any

from supernode.design import Design, Host
from supernode.plan import resources
from supernode.spec import SlotState

SCHEMA = 1
# Devices up to which the text of every file is kept. Above it a digest is: the plan says that a file changes, not how.
FULL_TEXT_LIMIT = 1024


def snapshot(design: Design) -> dict[str, Any]:
    """Return the record of a design as a JSON document: `runs/<env>/last-design.json`."""
    full = len(design.hosts) + len(design.switches) <= FULL_TEXT_LIMIT
    return {
        "schema": SCHEMA,
        "environment": design.name,
        "design": design.digest,
        "hosts": {
            host.name: {"slot": host.slot, "stack": host.stack, "machine": known(design, host)} for host in design.hosts
        },
        "switches": {switch.name: {"slot": switch.slot, "stack": switch.stack} for switch in design.switches},
        "links": {link.cable: [link.a_device, link.a_port, link.b_device, link.b_port] for link in design.links},
        "files": files(design, full=full),
    }


def files(design: Design, *, full: bool) -> dict[str, dict[str, str]]:
    """Return every rendered file by device and path: its text, or "sha256:" and its digest."""
    placed = {host.name: design.files(host.name) for host in design.hosts if host.state != "quarantined"}
    placed |= {switch.name: design.switch_files(switch.name) for switch in design.switches}
    placed |= {gateway.name: design.gateway_files(gateway.name) for gateway in design.gateways}
    return {
        device: {file.path: file.content if full else digest(file.content) for file in rendered}
        for device, rendered in placed.items()
    }


def digest(content: str) -> str:
    """Return what stands for a text that is not kept."""
    return f"sha256:{hashlib.sha256(content.encode()).hexdigest()}"


def known(design: Design, host: Host) -> dict[str, Any]:
    """Return what the Design alone knows of a host's resource."""
    return rented(design, host) if host.cloud else machine(design, host)


def rented(design: Design, host: Host) -> dict[str, Any]:
    """Return what would make another instance of a rented host, were it another, and its state."""
    cloud = design.environment.cloud
    if cloud is None:  # the documents were checked for it
        raise KeyError(host.cloud)
    return {
        "name": host.name,
        "slot": host.slot,
        "state": host.state,
        "kind": host.kind,
        "zone": cloud.zone,
        "address": str(host.management),
        "image": cloud.image.model_dump(exclude_none=True),
        "capacity": cloud.capacity.model_dump(exclude_none=True),
    }


def machine(design: Design, host: Host) -> dict[str, Any]:
    """Return what the Design alone knows of a Machine's inputs, with their names."""
    environment = design.environment
    record = design.machines.slots.get(host.slot)
    return {
        "name": host.name,
        "slot": host.slot,
        "address": str(host.management.ip),
        "bmc": resources.controller(design, host),
        "identity": host.identity.hardware(),
        "state": host.state,
        "inService": record is None or record.state == SlotState.IN_SERVICE,
        "bios": design.bios(host),
        "firmware": design.firmware(host),
        "power": "On",
        "sshUser": environment.access.user,
    }
