"""The cloud part of environment.yml: where rented machines stand, and how they are had."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Annotated, Literal

from pydantic import Field

from supernode.spec.parts import Document

ImageId = Annotated[str, Field(pattern=r"^ami-[0-9a-f]{8,17}$")]
Parameter = Annotated[str, Field(pattern=r"^/[A-Za-z0-9/._-]+$", max_length=1011)]
ReservationId = Annotated[str, Field(pattern=r"^cr-[0-9a-f]{8,17}$")]
GatewayId = Annotated[str, Field(pattern=r"^vgw-[0-9a-f]{8,17}$")]


class CloudImage(Document):
    """What instances boot from: an image by its id, or a parameter of the provider that names one; one of the two."""

    ami: ImageId | None = None
    ssm: Parameter | None = None


class Capacity(Document):
    """How instances are had: from a capacity block or a reservation, by its id; with neither, on demand."""

    block: ReservationId | None = None
    reservation: ReservationId | None = None


class Cloud(Document):
    """The cloud side of the site: one network of its own, behind the site's VPN.

    `cidr` is the network's, `subnet` the part of it in which the hosts stand (all of it, if not given). `gateway` is
    the VPN gateway by which the site is reached: hosts have private addresses alone, and no way to the internet. SSH is
    let in from `ssh_from`, which is the management network, if not given.
    """

    provider: Literal["aws"]
    region: Annotated[str, Field(pattern=r"^[a-z]{2}(-[a-z]+)+-\d$")]
    zone: Annotated[str, Field(pattern=r"^[a-z]{2}(-[a-z]+)+-\d[a-z0-9-]*[a-z]$")]
    cidr: IPv4Network
    subnet: IPv4Network | None = None
    gateway: GatewayId
    ssh_from: IPv4Network | None = None
    image: CloudImage
    capacity: Capacity = Capacity()
    root_gb: Annotated[int, Field(ge=8, le=16384)] = 200

    @property
    def hosts(self) -> IPv4Network:
        """The network in which the hosts stand."""
        return self.subnet or self.cidr
