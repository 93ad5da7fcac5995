"""Simulated gateways: the appliances' operating system with a leg on the WAN, and a tun device for wireguard-go.

As from the factory and zero-touch provisioning: addresses, the operator's key, its own host key; nothing of a tunnel.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Interface
from typing import ClassVar

from supernode.lab.artefacts import Artefacts, Switch
from supernode.lab.disks import File
from supernode.lab.factory import SwitchKey
from supernode.lab.switches import RunningSwitch
from supernode.lab.wan import GatewayRow, Leg

# A gateway has no fabric: what the same image brings for a switch stays off.
_OFF = ("frr.service", "lldpd.service", "fabric-ports.service")


class RunningGateway(RunningSwitch):
    """One gateway, always powered."""

    binds: ClassVar[tuple[str, ...]] = ("--bind=/dev/net/tun",)

    def label(self) -> None:
        """Write what it shows of its hardware."""
        self.board.make_gateway(self.identity)


def row(gateway: GatewayRow) -> Switch:
    """Return a gateway as the appliance that it is; it stands in no rack, so its name is its place."""
    return Switch(gateway.name, gateway.name, "gateway", gateway.lan.addresses[0])


def provisioning(gateway: GatewayRow, artefacts: Artefacts, key: SwitchKey) -> Mapping[str, File]:
    """Return the files that a new gateway has after zero-touch provisioning.

    Out leads its provider; at this site, the operator and the time servers are reached by way of the site's router.
    """
    off = {f"etc/systemd/system/{unit}.d/off.conf": File("[Unit]\nConditionPathExists=/dev/fabric\n") for unit in _OFF}
    legs = {"10-lan": (gateway.lan, tuple(_inner_routes(gateway, artefacts)))}
    legs["20-wan"] = (gateway.wan, (("0.0.0.0/0", gateway.router),))
    return {
        **off,
        **{f"etc/systemd/network/{name}.network": File(_network(*leg)) for name, leg in legs.items()},
        "etc/hostname": File(f"{gateway.name}\n"),
        "etc/hosts": File(f"127.0.0.1 localhost {gateway.name}\n"),
        "etc/ssh/authorized_keys/admin": File(artefacts.authorized_keys),
        "etc/ssh/ssh_host_ed25519_key": File(key.private, 0o600),
        "etc/ssh/ssh_host_ed25519_key.pub": File(key.public + "\n"),
    }


def _inner_routes(gateway: GatewayRow, artefacts: Artefacts) -> Iterator[tuple[str, str]]:
    site, lan = artefacts.site, gateway.lan.addresses[0]
    if site.gateway.ip in lan.network:
        beyond = [address for address in (site.serve, *site.time_servers) if address not in lan.network]
        yield from ((f"{address}/32", str(site.gateway.ip)) for address in beyond)


def _network(leg: Leg, routes: tuple[tuple[str, str], ...]) -> str:
    addresses = "".join(f"Address={address}\n" for address in leg.addresses)
    told = "".join(f"\n[Route]\nDestination={to}\nGateway={via}\n" for to, via in routes)
    return f"[Match]\nName={leg.port}\n\n[Network]\nLLDP=no\nIPv6AcceptRA=no\nLinkLocalAddressing=no\n{addresses}{told}"


def reached_at(gateway: GatewayRow) -> IPv4Interface:
    """Return where the site's operator finds it: on its own network, else on the WAN."""
    return gateway.lan.addresses[0] if gateway.translated else gateway.wan.addresses[0]
