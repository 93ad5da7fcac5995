"""What came back: the resource states of an environment's stacks, as Outputs. Pure: exported deployments in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from supernode.errors import CouldNotRun
from supernode.records import DeviceOutput, Outputs

# The only layout of a deployment that this reads; the engine writes it into each export.
DEPLOYMENT_VERSION = 3
_KINDS = {
    "supernode:index:Machine": "machine",
    "supernode:index:SwitchConfig": "switch",
    "supernode:cloud:CloudHost": "machine",  # a component: what it registers has the same names
}
_TUNNEL = "supernode:index:Tunnel"
_STACK = "pulumi:pulumi:Stack"


def read(environment: str, deployments: Mapping[str, Mapping[str, Any]]) -> Outputs:
    """Read what the stacks of an environment hold.

    Args:
        environment: its name.
        deployments: for each stack, the document that `pulumi stack export` writes.

    Raises:
        CouldNotRun: an export of another version.
    """
    devices: dict[str, DeviceOutput] = {}
    designs: set[str] = set()
    for stack, export in sorted(deployments.items()):
        for resource in _resources(stack, export):
            found = resource.get("outputs") or {}
            if resource["type"] == _STACK and found.get("design"):
                designs.add(str(found["design"]))
            elif resource["type"] in _KINDS:
                device = _device(_KINDS[resource["type"]], resource, found)
                devices[device.name] = device
            elif resource["type"] == _TUNNEL:
                devices |= {gateway.name: gateway for gateway in _gateways(found)}
    # Stacks of different designs mean that a run was cut: that is no design at all, and nobody may take it for one.
    return Outputs(environment, designs.pop() if len(designs) == 1 else "", devices)


def count(export: Mapping[str, Any]) -> int:
    """Count the machines and switches of one exported stack."""
    return sum(1 for resource in _resources("", export) if resource["type"] in _KINDS)


def _resources(stack: str, export: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    version = export.get("version")
    if version != DEPLOYMENT_VERSION:
        raise CouldNotRun(
            f"stack {stack}", f"its state has version {version}, this supernode reads {DEPLOYMENT_VERSION}"
        )
    for resource in (export.get("deployment") or {}).get("resources") or ():
        if not resource.get("delete"):  # what a replacement has yet to remove is no longer the resource
            yield resource


def _gateways(found: Mapping[str, Any]) -> Iterator[DeviceOutput]:
    """Yield both ends of a tunnel: its state is theirs."""
    for row in found.get("gateways") or ():
        name = str(row["name"])
        key = (found.get("hostKeys") or {}).get(name)
        yield DeviceOutput(
            name=name,
            kind="gateway",
            slot="",
            address=str(row["address"]),
            state=str(found.get("status") or "failed"),
            phase=str(found.get("phase") or ""),
            reason=str(found.get("reason") or ""),
            host_keys=(str(key),) if key else (),
            evidence=tuple(str(line) for line in found.get("evidence") or ()),
            applied=dict((found.get("applied") or {}).get(name) or {}),
        )


def _device(kind: str, resource: Mapping[str, Any], found: Mapping[str, Any]) -> DeviceOutput:
    keys = found.get("hostKeys") if kind == "machine" else [found.get("hostKey")]
    return DeviceOutput(
        name=str(resource["urn"]).rpartition("::")[2],
        kind=kind,
        slot=str(found.get("slot") or ""),
        address=str(found.get("address") or ""),
        state=str(found.get("status") or "failed"),
        phase=str(found.get("phase") or ""),
        reason=str(found.get("reason") or ""),
        host_keys=tuple(str(key) for key in keys or () if key),
        serial=str(found.get("serial") or ""),
        uuid=str(found.get("uuid") or ""),
        image=str(found.get("installedImage") or ""),
        power=str(found.get("powerState") or ""),
        evidence=tuple(str(line) for line in found.get("evidence") or ()),
        cooling={str(key): str(value) for key, value in (found.get("cooling") or {}).items()},
        applied={str(path): str(digest) for path, digest in (found.get("applied") or {}).items()},
    )
