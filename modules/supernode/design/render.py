"""Files, rendered from templates/ with what the Design knows; a name that a template does not get is an error."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import jinja2

from supernode import packaged
from supernode.design.model import Design
from supernode.design.naming import rail_port
from supernode.design.rows import Host, Link, RenderedFile, Switch

LLDP_INTERVAL_S = 5
# Devices that /etc/hosts names. Above it the site's DNS does: a line for each, on each, grows with the square.
HOSTS_FILE_LIMIT = 1024
FIRST_TABLE = 100  # routing table of rail 0; rail N has 100 + N
LEAST_PATHS = 64  # equal paths that BGP may use; a switch with more uplinks gets as many
FIRST_METRIC = 1000  # above what the management port's default route gets


@cache
def _templates() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(packaged.root() / "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - configuration files, no HTML
    )


def text(template: str, **values: Any) -> str:
    """Render one template.

    Raises:
        jinja2.UndefinedError: the template names what it was not given.
    """
    return _templates().get_template(template).render(**values)


def base_system(design: Design, host: Host) -> list[RenderedFile]:
    """Return kernel settings, the neighbour protocol's, the names of the others, and what packages may start."""
    return [
        RenderedFile("/etc/sysctl.d/60-supernode.conf", text("host/sysctl.conf.j2"), role="base_system"),
        RenderedFile("/etc/lldpd.d/supernode.conf", _lldpd(host.name, "rail*"), role="base_system"),
        RenderedFile("/etc/hosts", _hosts(design, host), role="base_system"),
        RenderedFile("/usr/sbin/policy-rc.d", text("host/policy-rc.d.j2"), role="base_system", mode="0755"),
    ]


def time_synced(design: Design, _host: Host) -> list[RenderedFile]:
    """Return the clock's configuration."""
    return [RenderedFile("/etc/chrony/chrony.conf", _chrony(design), role="time_synced")]


def _chrony(design: Design) -> str:
    return text("chrony/chrony.conf.j2", servers=design.environment.site.time_servers)


def _lldpd(name: str, pattern: str) -> str:
    return text("switch/lldpd.conf.j2", name=name, interval=LLDP_INTERVAL_S, pattern=pattern)


def _hosts(design: Design, host: Host) -> str:
    names = [(name, address) for name, address in design.management_addresses.items() if name != host.name]
    return text("host/hosts.j2", host=host, domain=design.environment.site.domain, names=names)


def rails(design: Design, host: Host) -> list[RenderedFile]:
    """Return the names, addresses and routes of a host's rails."""
    nics = design.server_kind(host).nics
    planes = range(1, design.environment.fabric.planes + 1)
    ports = [(rail_port(nic.rail, plane), _function(nic.pci, plane)) for plane in planes for nic in nics if nic.pci]
    names = {"rails": [{"name": name, "pci": pci} for name, pci in ports]}
    files = [RenderedFile("/etc/supernode/rails.json", json.dumps(names, indent=2) + "\n", role="rails")]
    for link in design.links_of(host.name):
        path = f"/etc/systemd/network/50-{link.a_port}.network"
        number = (link.plane - 1) * len(nics) + (link.rail or 0)
        values = {"host": host, "rail": _rail(link, number), "rails": design.plane_network(link.plane)}
        files.append(RenderedFile(path, text("networkd/rail.network.j2", **values), role="rails"))
    files.append(
        RenderedFile("/etc/sysctl.d/61-supernode-rails.conf", text("networkd/rails-sysctl.conf.j2"), role="rails")
    )
    return files


def _function(pci: str, plane: int) -> str:
    """Return the PCI function of a NIC's port; a NIC that is divided shows its ports one function after another."""
    device, dot, function = pci.rpartition(".")
    return f"{device}.{int(function, 16) + plane - 1:x}" if dot else pci


def _rail(link: Link, number: int) -> dict[str, Any]:
    if link.a_address is None or link.b_address is None or link.rail is None:
        raise ValueError(f"cable {link.cable} is no rail")
    return {
        "name": link.a_port,
        "cable": link.cable,
        "peer_device": link.b_device,
        "peer_port": link.b_port,
        "mtu": link.mtu,
        "address": link.a_address,
        "source": link.a_address.ip,
        "peer_address": link.b_address.ip,
        "table": FIRST_TABLE + number,
        "metric": FIRST_METRIC + number,
    }


def switch_files(design: Design, switch: Switch) -> tuple[RenderedFile, ...]:
    """Return a switch's whole configuration; nothing where the subnet manager's is all that there is."""
    if design.environment.fabric.infiniband:
        return ()
    match = design.switch_kind(switch).port_pattern.format(n="*", cage="*")
    files = {
        "/etc/frr/frr.conf": _frr(design, switch),
        "/etc/frr/daemons": text("frr/daemons.j2", switch=switch),
        "/etc/systemd/network/20-swp.network": text(
            "switch/swp.network.j2", match=match, mtu=design.environment.fabric.mtu
        ),
        "/etc/systemd/networkd.conf.d/60-supernode.conf": text("switch/networkd.conf.j2"),
        "/etc/sysctl.d/60-supernode.conf": text("switch/sysctl.conf.j2"),
        "/etc/lldpd.d/supernode.conf": _lldpd(switch.name, match),
    }
    return tuple(RenderedFile(path, content, _mode(path), role="switch") for path, content in files.items())


def _mode(path: str) -> str:
    return "0640" if path.startswith("/etc/frr/") else "0644"


def _frr(design: Design, switch: Switch) -> str:
    networks = design.environment.site.networks
    announced = [f"{switch.loopback}/32"]
    if (prefix := design.announced(switch)) is not None:
        announced.append(str(prefix))
    links = design.links_of(switch.name)
    return text(
        "frr/frr.conf.j2",
        switch=switch,
        ports=[_port(link, switch.name) for link in links],
        paths=max(LEAST_PATHS, sum(link.kind != "rail" for link in links)),
        announced=announced,
        rails=networks.routed("rails"),
        loopbacks=networks.routed("loopbacks"),
        leaf_length=design.leaf_prefix(1, 0).prefixlen,
    )


def _port(link: Link, mine: str) -> dict[str, Any]:
    if link.a_device == mine:
        ends = (link.a_port, link.b_device, link.b_port, link.a_address)
    else:
        ends = (link.b_port, link.a_device, link.a_port, link.b_address)
    keys = ("name", "peer", "peer_port", "address")
    return {**dict(zip(keys, ends, strict=True)), "cable": link.cable, "shut": link.shut}
