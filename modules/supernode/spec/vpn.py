"""The sections `vpn` and `data` of environment.yml: a second site behind a tunnel, and what may never leave its own.

The remote site's networks have no other way to this one than the tunnel between the two gateways.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from typing import Annotated

from pydantic import Field

from supernode.spec.parts import Document, Name, Network

PortName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9._-]*$", max_length=15)]
Port = Annotated[int, Field(ge=1, le=65535)]


class Wan(Document):
    """A gateway's leg on the wide area network.

    `public` is where the other gateway reaches it; without it the gateway stands behind address translation, is reached
    by nobody, and keeps the tunnel open by itself.
    """

    port: PortName = "wan0"
    address: IPv4Interface
    gateway: IPv4Address
    public: IPv4Address | None = None


class Gateway(Document):
    """One end of the tunnel; `host_key` is the file of its public key, which came with it.

    `address` is its own in this site's management network. At the remote site it holds the networks' gateway addresses.
    """

    name: Name
    port: PortName = "eth0"
    address: IPv4Address | None = None
    host_key: Annotated[str, Field(min_length=1)]
    wan: Wan


class RemoteNetworks(Document):
    """The networks of a site behind the tunnel; its gateway is the router of both."""

    management: Network
    bmc: Network


class RemoteSite(Document):
    """A site that is reached by the tunnel alone."""

    name: Name
    networks: RemoteNetworks
    gateway: Gateway


class Vpn(Document):
    """A WireGuard tunnel to another site.

    `tunnel` holds the addresses of its two ends, `wan_mtu` is what the way between the gateways carries in one packet,
    `mtu` what a packet inside may have: as much as fits where it is not given. The file has a list for more sites; one
    is what is built today.
    """

    tunnel: IPv4Network
    port: Port = 51820
    wan_mtu: Annotated[int, Field(ge=576, le=9216)] = 1500
    mtu: Annotated[int, Field(ge=576, le=9216)] | None = None
    gateway: Gateway
    sites: Annotated[tuple[RemoteSite, ...], Field(min_length=1, max_length=1)]

    @property
    def remote(self) -> RemoteSite:
        """The site at the other end."""
        return self.sites[0]

    @property
    def inner_mtu(self) -> int:
        """What a packet inside the tunnel may have."""
        return self.mtu or self.wan_mtu - OVERHEAD


# IPv4 20, UDP 8, and WireGuard's header and authentication 16 + 16 (https://www.wireguard.com/protocol/).
OVERHEAD = 60
LEAST_MTU = 1280  # below it IPv6 does not work, and hosts' path discovery is known to give up


class Dataset(Document):
    """Data by the prefix of the servers that hold it; a private one stays on its site."""

    name: Name
    prefix: IPv4Network
    site: Name
    private: bool = False
    exported_to: tuple[Name, ...] = ()
