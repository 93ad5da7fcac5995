"""The NoCloud seed of a machine: what makes a golden image this host. It holds no secret: the token travels beside."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Protocol

from supernode.design.model import Design
from supernode.design.rows import Host
from supernode.errors import Problem, Refusal

# Where Debian's cloud images name their package sources.
_OTHER_SOURCES = ("/etc/apt/sources.list", "/etc/apt/sources.list.d/debian.sources")


class Image(Protocol):
    """The golden image, as far as a seed cares."""

    @property
    def digest(self) -> str:
        """SHA-256 of the raw image, in hex."""


def build(design: Design, host_name: str, image: Image, serve_ca: str, ssh_public_key: str) -> dict[str, str]:
    """Return meta-data, user-data and network-config, each a JSON document, which is YAML too.

    Args:
        design: where the host stands.
        host_name: the host.
        image: its digest and the machine's identity are the instance id: a new image or machine runs first boot again.
        serve_ca: PEM of the CA behind `supernode serve`.
        ssh_public_key: the operator's.

    Raises:
        Refusal: no machine is bound to the host's slot, so that its management port cannot be told.
    """
    host = design.host(host_name)
    if not host.identity.management_mac:
        what = f"slot {host.slot} ({host.name}) has no management_mac, so its seed cannot name the management port"
        hint = f"run `supernode assign {design.name} --sheet <folder>` with what was delivered"
        raise Refusal([Problem(("slots", host.slot, "identity", "management_mac"), what, hint, "machines")])
    who = hashlib.sha256(json.dumps([host.identity.hardware(), image.digest], sort_keys=True).encode()).hexdigest()
    meta = {"instance-id": f"{host.name}-{who[:12]}", "local-hostname": host.name}
    return {
        "meta-data": _json(meta),
        "user-data": "#cloud-config\n" + _json(_user_data(design, host, serve_ca, ssh_public_key)),
        "network-config": _json(_network(design, host)),
    }


def user_data(design: Design, host: Host, serve_ca: str, ssh_public_key: str) -> str:
    """Return the user-data of a rented host, whose name, keys and CA come by the provider's metadata service.

    It is the seed of a machine, and beside it what else the deploy step leaves there: the CA. The image's own package
    sources are emptied: nothing leads to them, and the site's mirror has what every role installs.
    """
    document = _user_data(design, host, serve_ca, ssh_public_key)
    document["write_files"] = [
        _file("/etc/supernode/ca.pem", serve_ca),
        *(_file(path, "# by supernode: packages come from the site's mirror alone\n") for path in _OTHER_SOURCES),
        *document["write_files"],
    ]
    return "#cloud-config\n" + _json(document)


def _json(document: Any) -> str:
    return json.dumps(document, indent=2) + "\n"


def _user_data(design: Design, host: Host, serve_ca: str, ssh_public_key: str) -> dict[str, Any]:
    return {
        "hostname": host.name,
        "fqdn": f"{host.name}.{design.environment.site.domain}",
        "users": [
            {
                "name": design.environment.access.user,
                "sudo": "ALL=(ALL) NOPASSWD:ALL",
                "lock_passwd": True,
                "shell": "/bin/bash",
                "ssh_authorized_keys": [ssh_public_key.strip()],
            }
        ],
        "disable_root": True,
        "ssh_pwauth": False,
        "ssh_deletekeys": True,
        "ssh_genkeytypes": ["ed25519"],
        "ca_certs": {"trusted": [serve_ca]},
        "apt": {"preserve_sources_list": True},
        "write_files": _files(design),
    }


def _files(design: Design) -> list[dict[str, str]]:
    """Return the mirror's source and its trust: unsigned, its origin proven by TLS with the site's own CA alone."""
    serve = design.environment.site.serve
    contents = {
        "/etc/apt/sources.list.d/supernode.list": f"deb [trusted=yes] https://{serve.address}:{serve.port}/mirror ./\n",
        "/etc/apt/apt.conf.d/90supernode": f'Acquire::https::{serve.address}::CAInfo "/etc/supernode/ca.pem";\n',
    }
    return [_file(path, content) for path, content in contents.items()]


def _file(path: str, content: str) -> dict[str, str]:
    return {"path": path, "content": content, "permissions": "0644", "owner": "root:root"}


def _network(design: Design, host: Host) -> dict[str, Any]:
    site = design.environment.site
    port: dict[str, Any] = {
        "match": {"macaddress": host.identity.management_mac.lower()},
        "addresses": [str(host.management)],
    }
    gateway = design.networks_of(host).management.gateway
    if gateway:
        port["routes"] = [{"to": "0.0.0.0/0", "via": str(gateway)}]
    if site.name_servers:
        port["nameservers"] = {"addresses": [str(address) for address in site.name_servers]}
    return {"version": 2, "ethernets": {"management": port}}
