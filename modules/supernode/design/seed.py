"""The NoCloud seed of a machine: what makes a golden image this host."""

from __future__ import annotations

import json
from typing import Any, Protocol

from supernode.design.model import Design
from supernode.design.rows import Host
from supernode.errors import Problem, Refusal


class Image(Protocol):
    """The golden image, as far as a seed cares."""

    @property
    def digest(self) -> str:
        """SHA-256 of the raw image, in hex."""


def build(
    design: Design, host_name: str, image: Image, serve_ca: str, token: str, ssh_public_key: str
) -> dict[str, str]:
    """Return meta-data, user-data and network-config, each a JSON document, which is YAML too.

    Args:
        design, host_name: the host and where it stands.
        image: its digest is part of the instance id, so that a new image runs first boot again.
        serve_ca: PEM of the CA behind `supernode serve`.
        token: one-time, for the host's report of its own keys.
        ssh_public_key: the operator's.

    Raises:
        Refusal: no machine is bound to the host's slot, so that its management port cannot be told.
    """
    host = design.host(host_name)
    if not host.identity.management_mac:
        what = f"slot {host.slot} ({host.name}) has no management_mac, so its seed cannot name the management port"
        hint = f"run `supernode assign {design.name} --sheet <folder>` with what was delivered"
        raise Refusal([Problem(("slots", host.slot, "identity", "management_mac"), what, hint, "machines")])
    meta = {"instance-id": f"{host.name}-{image.digest[:12]}", "local-hostname": host.name}
    return {
        "meta-data": _json(meta),
        "user-data": "#cloud-config\n" + _json(_user_data(design, host, serve_ca, token, ssh_public_key)),
        "network-config": _json(_network(design, host)),
    }


def _json(document: Any) -> str:
    return json.dumps(document, indent=2) + "\n"


def _serve(design: Design) -> str:
    serve = design.environment.site.serve
    return f"https://{serve.address}:{serve.port}"


def _user_data(design: Design, host: Host, serve_ca: str, token: str, ssh_public_key: str) -> dict[str, Any]:
    user = design.environment.access.user
    enrolment = {"report": f"{_serve(design)}/report/{host.name}", "token": token, "ca": "/etc/supernode/serve-ca.pem"}
    return {
        "hostname": host.name,
        "fqdn": f"{host.name}.{design.environment.site.domain}",
        "preserve_hostname": False,
        "manage_etc_hosts": False,
        "ssh_pwauth": False,
        "disable_root": True,
        "users": [
            {
                "name": user,
                "gecos": "supernode",
                "shell": "/bin/bash",
                "lock_passwd": True,
                "sudo": "ALL=(ALL) NOPASSWD:ALL",
                "ssh_authorized_keys": [ssh_public_key.strip()],
            }
        ],
        "ca_certs": {"trusted": [serve_ca]},
        "write_files": [
            {"path": "/etc/supernode/serve-ca.pem", "content": serve_ca, "permissions": "0644", "owner": "root:root"},
            {
                "path": "/etc/supernode/enrolment.json",
                "content": _json(enrolment),
                "permissions": "0600",
                "owner": "root:root",
            },
            {
                "path": "/etc/apt/sources.list.d/supernode.list",
                "content": _apt(design),
                "permissions": "0644",
                "owner": "root:root",
            },
        ],
    }


def _apt(design: Design) -> str:
    """The mirror is flat and unsigned; its origin is proven by TLS with the site's own CA alone."""
    return f"deb [trusted=yes] {_serve(design)}/mirror ./\n"


def _network(design: Design, host: Host) -> dict[str, Any]:
    network = design.environment.site.networks.management
    port: dict[str, Any] = {
        "match": {"macaddress": host.identity.management_mac.lower()},
        "set-name": "mgmt0",
        "addresses": [str(host.management)],
        "dhcp4": False,
    }
    if network.gateway:
        port["routes"] = [{"to": "0.0.0.0/0", "via": str(network.gateway)}]
    return {"version": 2, "ethernets": {"mgmt0": port}}
