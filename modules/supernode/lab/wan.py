"""The wide area network between two sites, and the other site's own network: what a lab with a tunnel has besides.

Namespaces, beside those of `wiring`:
    wan-near   the provider's router at this site: it translates addresses where the gateway has no public one
    wan-far    the provider's router at the other site
    site-<n>   the other site: a bridge for its machines, and its BMCs' addresses; the gateway is its only way out

The link between the two routers has the WAN's MTU. Neither of them knows a way to a site's own networks.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Interface, IPv4Network
from pathlib import Path
from typing import Any

from supernode.errors import CouldNotRun
from supernode.lab import netspace

NEAR, FAR, LEG, CORE, BRIDGE, UPLINK = "wan-near", "wan-far", "leg", "core", "mgmt", "wan"
# The routers' own link, and what translated packets come from; RFC 5737 has it for no one.
NEAR_CORE, FAR_CORE = IPv4Interface("192.0.2.1/30"), IPv4Interface("192.0.2.2/30")
TUN = Path("/dev/net/tun")
_ROUTER = {"ipv4/ip_forward": "1", "ipv4/conf/all/rp_filter": "0", "ipv4/conf/default/rp_filter": "0"}
_SITE = {"ipv4/ip_forward": "0", "ipv4/conf/all/rp_filter": "0", "ipv4/conf/default/rp_filter": "0"}


@dataclass(frozen=True)
class Leg:
    """One port of a gateway with the addresses that zero-touch provisioning gives it."""

    port: str
    addresses: tuple[IPv4Interface, ...]


@dataclass(frozen=True)
class GatewayRow:
    """A gateway as it is cabled.

    Attributes:
        site: whose networks its LAN leg is in.
        router: of its provider.
        translated: it has no address of its own on the WAN.
    """

    name: str
    site: str
    lan: Leg
    wan: Leg
    router: str
    translated: bool


@dataclass(frozen=True)
class RemoteSite:
    """The other site's networks, with the addresses that their router has there."""

    name: str
    management: IPv4Interface
    bmc: IPv4Interface

    @property
    def space(self) -> str:
        """Its namespace."""
        return f"site-{self.name}"


@dataclass(frozen=True)
class Wan:
    """What lies between and beyond; `near` is this site's gateway."""

    mtu: int
    tunnel_port: int
    near: GatewayRow
    far: GatewayRow
    site: RemoteSite

    @property
    def gateways(self) -> tuple[GatewayRow, GatewayRow]:
        """Both gateways."""
        return self.near, self.far

    def beyond(self, address: IPv4Interface) -> bool:
        """Tell whether an address is the other site's."""
        return any(address.ip in row.network for row in (self.site.management, self.site.bmc))


def read(document: Mapping[str, Any]) -> Wan | None:
    """Read what site.json says of another site; None where it says nothing.

    Raises:
        KeyError, ValueError: not the agreed document.
    """
    if "wan" not in document:
        return None
    rows = [_gateway(row) for row in document["gateways"]]
    other = document["sites"][0]
    routers = {
        name: IPv4Interface(f"{entry['gateway']}/{IPv4Network(entry['cidr']).prefixlen}")
        for name, entry in other["networks"].items()
    }
    site = RemoteSite(other["name"], routers["management"], routers["bmc"])
    near, far = (next(row for row in rows if (row.site == site.name) is there) for there in (False, True))
    return Wan(int(document["wan"]["mtu"]), int(document["wan"]["tunnel_port"]), near, far, site)


def _gateway(row: Mapping[str, Any]) -> GatewayRow:
    lan = Leg(row["lan"]["port"], tuple(IPv4Interface(address) for address in row["lan"]["addresses"]))
    wan = Leg(row["wan"]["port"], (IPv4Interface(row["wan"]["address"]),))
    return GatewayRow(row["name"], row["site"], lan, wan, row["wan"]["gateway"], bool(row["translated"]))


def spaces(wan: Wan) -> tuple[str, ...]:
    """Return the namespaces to make, by name; a gateway's is called as it is."""
    return (NEAR, FAR, wan.site.space, wan.near.name, wan.far.name)


def commands(wan: Wan) -> Iterator[str]:
    """Yield the `ip` commands, for a batch in the lab's own namespace after `wiring`'s."""
    yield f"link add {CORE} mtu {wan.mtu} netns {NEAR} type veth peer name {CORE} mtu {wan.mtu} netns {FAR}"
    for row, space in ((wan.near, NEAR), (wan.far, FAR)):
        yield f"link add {row.wan.port} netns {row.name} type veth peer name g-{row.wan.port} netns {space}"
    yield f"link add {wan.near.lan.port} netns {wan.near.name} type veth peer name m-gateway"
    yield f"link set m-gateway master {BRIDGE}"
    yield "link set m-gateway up"
    # The site's router has a leg on its provider's network, as every router has; the gateway stands beside it.
    yield f"link add {UPLINK} type veth peer name g-site netns {NEAR}"
    yield f"link set {UPLINK} up"
    yield f"route add {wan.far.wan.addresses[0].network} via {wan.near.router} dev {UPLINK} onlink"
    yield f"link add {wan.far.lan.port} netns {wan.far.name} type veth peer name m-gateway netns {wan.site.space}"


@dataclass(frozen=True)
class Surroundings:
    """What the WAN and the other site are made around.

    Attributes:
        block: the lab's addresses, to which this site's router leads.
        router: that router's address.
        bmcs: the addresses of the other site's controllers; ports: the bridge's sides of its servers' links.
    """

    block: IPv4Network
    router: IPv4Interface
    bmcs: tuple[IPv4Interface, ...]
    ports: tuple[str, ...]


def inside(wan: Wan, around: Surroundings) -> dict[str, list[str]]:
    """Return the `ip` commands of each namespace: routers, and the other site."""
    far_leg = wan.far.wan.addresses[0].network
    near = [
        *_bridge(LEG, (f"g-{wan.near.wan.port}", "g-site"), (f"{wan.near.router}/{_length(wan.near)}",)),
        *_core(NEAR_CORE),
        f"route add {far_leg} via {FAR_CORE.ip}",
        f"route add {around.block} via {around.router.ip} dev {LEG} onlink",
    ]
    far = [*_bridge(LEG, (f"g-{wan.far.wan.port}",), (f"{wan.far.router}/{_length(wan.far)}",)), *_core(FAR_CORE)]
    far += [] if wan.near.translated else [f"route add {wan.near.wan.addresses[0].network} via {NEAR_CORE.ip}"]
    site = [
        *_bridge(BRIDGE, ("m-gateway", *around.ports), ()),
        *(f"address add {address.ip}/32 dev lo" for address in around.bmcs),
        f"route add default via {wan.site.bmc.ip} dev {BRIDGE} onlink",
    ]
    return {NEAR: near, FAR: far, wan.site.space: site}


def _length(row: GatewayRow) -> int:
    return row.wan.addresses[0].network.prefixlen


def _core(address: IPv4Interface) -> Iterator[str]:
    yield f"address add {address} dev {CORE}"
    yield f"link set {CORE} up"


def _bridge(name: str, ports: Sequence[str], addresses: Sequence[str]) -> Iterator[str]:
    yield "link set lo up"
    yield f"link add {name} type bridge"
    yield from (f"address add {address} dev {name}" for address in addresses)
    yield f"link set {name} up"
    for port in ports:
        yield f"link set {port} master {name}"
        yield f"link set {port} up"


def firewall(wan: Wan, *, tunnel_blocked: bool = False) -> str:
    """Return the near provider's ruleset: translation, and what it lets through."""
    blocked = f"udp dport {wan.tunnel_port} drop; udp sport {wan.tunnel_port} drop;" if tunnel_blocked else ""
    translated = f'oifname "{CORE}" masquerade;' if wan.near.translated else ""
    return f"""flush ruleset
table ip wan {{
  chain forward {{ type filter hook forward priority filter; policy accept; {blocked}
  }}
  chain leaving {{ type nat hook postrouting priority srcnat; policy accept; {translated}
  }}
}}
"""


@dataclass
class WanPlant:
    """The WAN while the lab runs.

    Attributes:
        system: the appliances' file system, whose nft is used.
    """

    wan: Wan
    system: Path

    def build(self, around: Surroundings) -> None:
        """Make everything but the gateways themselves.

        Raises:
            CouldNotRun: the kernel refused something, or has no tun device for the gateways.
        """
        if not TUN.exists():
            raise CouldNotRun(str(TUN), "is not there, and gateways need it", "modprobe tun")
        netspace.batch(commands(self.wan))
        for space, values in ((NEAR, _ROUTER), (FAR, _ROUTER), (self.wan.site.space, _SITE)):
            netspace.set_sysctls(space, values)
        for space in (self.wan.near.name, self.wan.far.name):
            netspace.set_sysctls(space, _SITE)
        for space, lines in inside(self.wan, around).items():
            netspace.batch(lines, space)
        self.let_through(blocked=False)

    def let_through(self, *, blocked: bool) -> None:
        """Have the provider drop the tunnel's packets, or carry them."""
        text = firewall(self.wan, tunnel_blocked=blocked)
        done = subprocess.run(
            ["ip", "netns", "exec", NEAR, "chroot", str(self.system), "nft", "-f", "-"],
            input=text, text=True, capture_output=True, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise CouldNotRun("nft", f"refused the WAN's rules: {done.stderr.strip()}", "supernode lab doctor")

    def narrow(self, mtu: int) -> None:
        """Give the link between the providers another MTU: larger packets are answered with what fits."""
        for space in (NEAR, FAR):
            netspace.batch([f"link set {CORE} mtu {mtu}"], space)
