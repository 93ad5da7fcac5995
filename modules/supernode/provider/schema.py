"""What the resources are called and made of: the package's schema as JSON, without pulumi.

The shapes are documented in docs/contracts.md, section 7. Types follow Pulumi's package schema
(https://www.pulumi.com/docs/iac/guides/building-extending/packages/schema/).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

PACKAGE = "supernode"
VERSION = "0.1.0"
MACHINE = "supernode:index:Machine"
SWITCH_CONFIG = "supernode:index:SwitchConfig"
TUNNEL = "supernode:index:Tunnel"

_TEXT: Mapping[str, Any] = {"type": "string"}
_FLAG: Mapping[str, Any] = {"type": "boolean"}
_NUMBER: Mapping[str, Any] = {"type": "number"}
_TEXTS: Mapping[str, Any] = {"type": "array", "items": _TEXT}
_MAP: Mapping[str, Any] = {"type": "object", "additionalProperties": _TEXT}
_ANY_MAP: Mapping[str, Any] = {"type": "object", "additionalProperties": {"$ref": "pulumi.json#/Any"}}

MACHINE_INPUTS: Mapping[str, Mapping[str, Any]] = {
    "name": {**_TEXT, "description": "The designed name."},
    "slot": {**_TEXT, "description": "Rack and unit, e.g. r01u05; the resource's id."},
    "address": {**_TEXT, "description": "The host's address on the management network."},
    "bmc": {
        **_ANY_MAP,
        "description": "address, username, password (a reference), ca (path or PEM text), pin (SHA-256 of its "
        "certificate), factory {username, password (a reference)}, media.",
    },
    "identity": {**_MAP, "description": "bmc_mac, management_mac, system_serial, board_serial, chassis_serial, uuid."},
    "hostKey": {**_TEXT, "description": "The key that the host was last known by; pinned where the state has none."},
    "state": {**_TEXT, "description": "active, spare or quarantined; a quarantined machine is never contacted."},
    "inService": {**_FLAG, "description": "Never powered off or reinstalled unless confirmed."},
    "media": {**_ANY_MAP, "description": "The deploy ISO: url, digest, ca (path or PEM text of its server's CA)."},
    "image": {**_TEXT, "description": "SHA-256 of the golden image that must run."},
    "enrolment": {**_TEXT, "description": "Where the machine's own report can be read."},
    "bios": {**_ANY_MAP, "description": "BIOS attributes by the names of the machine's attribute registry."},
    "firmware": {**_MAP, "description": "Component of the firmware inventory to the version it must have."},
    "power": {**_TEXT, "description": "On or Off."},
    "deadlineS": {**_NUMBER, "description": "Seconds for all phases together."},
    "sshUser": {**_TEXT, "description": "Who logs in."},
    "sshKey": {**_TEXT, "description": "A reference to the private key."},
    "strict": {**_FLAG, "description": "A machine that fails or is late fails the stack."},
    "interlock": {
        **_ANY_MAP,
        "description": "What must hold before each power-on: unit, kind, address, port, username, password (a "
        "reference), ca, minFlow (m3/s), maxAgeS, override (the reason why it is switched on all the same).",
    },
}
MACHINE_REQUIRED = ("name", "slot", "address", "bmc", "identity", "image", "media", "enrolment", "sshUser", "sshKey")
MACHINE_DEFAULTS: Mapping[str, Any] = {
    "hostKey": "",
    "state": "active",
    "inService": False,
    "bios": {},
    "firmware": {},
    "power": "On",
    "deadlineS": 2700,
    "strict": False,
    "interlock": {},
}
MACHINE_OUTPUTS: Mapping[str, Mapping[str, Any]] = {
    "status": {**_TEXT, "description": "ready, late or failed."},
    "phase": {**_TEXT, "description": "The phase it stopped in; empty when ready."},
    "reason": {**_TEXT, "description": "Why it stopped there, or why a change was refused."},
    "evidence": {**_TEXTS, "description": "What the management controller showed then, without secrets."},
    "serial": _TEXT,
    "uuid": _TEXT,
    "hostKeys": {**_TEXTS, "description": "The host's own public keys, in authorized_keys form."},
    "installedImage": {**_TEXT, "description": "SHA-256 of the image that runs; empty when unknown."},
    "powerState": {**_TEXT, "description": "As last read."},
    "biosApplied": {**_ANY_MAP, "description": "The wanted attributes as last read."},
    "firmwareFound": {**_MAP, "description": "The wanted components as last read."},
    "cooling": {
        **_MAP,
        "description": "What the interlock said before the last power-on: unit, verdict (clear, held, overridden), "
        "sensors, override.",
    },
}

SWITCH_INPUTS: Mapping[str, Mapping[str, Any]] = {
    "name": {**_TEXT, "description": "The designed name."},
    "slot": {**_TEXT, "description": "Rack and unit; the resource's id."},
    "address": {**_TEXT, "description": "Address on the management network."},
    "hostKey": {**_TEXT, "description": "The pinned public key, in authorized_keys form."},
    "sshUser": {**_TEXT, "description": "Who logs in; sudo without a password is expected."},
    "sshKey": {**_TEXT, "description": "A reference to the private key."},
    "files": {"type": "array", "items": _MAP, "description": "path, content, mode; placed all or none."},
    "strict": {**_FLAG, "description": "A switch that fails or is late fails the stack."},
}
SWITCH_REQUIRED = ("name", "slot", "address", "hostKey", "sshKey", "files")
SWITCH_DEFAULTS: Mapping[str, Any] = {"sshUser": "admin", "strict": False}
SWITCH_OUTPUTS: Mapping[str, Mapping[str, Any]] = {
    "status": _TEXT,
    "phase": _TEXT,
    "reason": _TEXT,
    "evidence": _TEXTS,
    "applied": {**_MAP, "description": "Path to SHA-256, as read back from the switch."},
    "drift": {**_TEXTS, "description": "How the running configuration differs from the file."},
}

TUNNEL_INPUTS: Mapping[str, Mapping[str, Any]] = {
    "name": {**_TEXT, "description": "The other site; the resource's id."},
    "gateways": {
        "type": "array",
        "items": _ANY_MAP,
        "description": "Both ends, this site's first: name, address, hostKey (the file of its public key), initiates, "
        "files (path, content, mode; the name between two @ stands for a gateway's public key).",
    },
    "sshUser": {**_TEXT, "description": "Who logs in; sudo without a password is expected."},
    "sshKey": {**_TEXT, "description": "A reference to the private key."},
    "strict": {**_FLAG, "description": "A tunnel that does not stand fails the stack."},
}
TUNNEL_REQUIRED = ("name", "gateways", "sshKey")
TUNNEL_DEFAULTS: Mapping[str, Any] = {"sshUser": "admin", "strict": True}
TUNNEL_OUTPUTS: Mapping[str, Mapping[str, Any]] = {
    "status": _TEXT,
    "phase": _TEXT,
    "reason": _TEXT,
    "evidence": _TEXTS,
    "publicKeys": {**_MAP, "description": "By gateway; the private ones are made there and stay there."},
    "hostKeys": {**_MAP, "description": "By gateway: the pinned key, in authorized_keys form."},
    "applied": {
        "type": "object",
        "additionalProperties": _MAP,
        "description": "By gateway: path to SHA-256, as read back from it.",
    },
}

CONFIG: Mapping[str, Mapping[str, Any]] = {
    "folder": {**_TEXT, "description": "The environment's folder; references are relative to it."},
    "reinstall": {**_TEXT, "description": "JSON list of slots in service that may be powered off and reinstalled."},
    "plan": {**_TEXT, "description": "Hash of the plan that was shown; without it reinstall counts for nothing."},
    "until": {**_TEXT, "description": "When reinstall ends, in seconds since 1970; without it it counts for nothing."},
    "powerOffOnDelete": {**_TEXT, "description": "true: a deleted machine is switched off."},
}


def package_schema() -> dict[str, Any]:
    """Return the package schema that the engine is served."""
    return {
        "name": PACKAGE,
        "version": VERSION,
        "displayName": "supernode",
        "description": "GPU machines by Redfish, the switches between them, and the tunnel to another site",
        "license": "Apache-2.0",
        "config": {"variables": CONFIG},
        "provider": {"inputProperties": CONFIG},
        "resources": {
            MACHINE: _resource(MACHINE_INPUTS, MACHINE_OUTPUTS, MACHINE_REQUIRED, "One machine in one slot."),
            TUNNEL: _resource(TUNNEL_INPUTS, TUNNEL_OUTPUTS, TUNNEL_REQUIRED, "A tunnel between two sites."),
            SWITCH_CONFIG: _resource(SWITCH_INPUTS, SWITCH_OUTPUTS, SWITCH_REQUIRED, "The files of one switch."),
        },
    }


def _resource(
    inputs: Mapping[str, Any], outputs: Mapping[str, Any], required: Iterable[str], description: str
) -> dict[str, Any]:
    return {
        "description": description,
        "inputProperties": inputs,
        "requiredInputs": list(required),
        "properties": {**inputs, **outputs},
        "required": [*inputs, *outputs],
    }
