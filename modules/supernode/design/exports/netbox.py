"""NetBox 4: what its bulk import takes, in this order: racks, devices, interfaces, cables."""

from __future__ import annotations

from collections.abc import Iterator

from supernode.catalog import infiniband
from supernode.design.model import Design
from supernode.design.rows import Link

# Names of NetBox's interface types by Mbit/s; another rate is "other".
_ETHERNET = {100_000: "100gbase-x-qsfp28", 200_000: "200gbase-x-qsfp56", 400_000: "400gbase-x-osfp",
             800_000: "800gbase-x-osfp"}  # fmt: skip


def racks(design: Design) -> Iterator[str]:
    """Yield racks.csv."""
    yield "site,name,status,u_height\n"
    site = design.environment.site.name
    yield from (f"{site},{rack.name},active,{rack.units}\n" for rack in design.environment.racks)


def devices(design: Design) -> Iterator[str]:
    """Yield devices.csv: manufacturer and device type are the catalogue's, which NetBox has to know before."""
    yield "name,role,manufacturer,device_type,status,site,rack,position,face\n"
    site = design.environment.site.name
    for host in (host for host in design.hosts if not host.cloud):
        kind = design.server_kind(host)
        role = "gpu-server" if kind.gpus else "server"
        yield f'{host.name},{role},{kind.vendor},"{kind.model}",planned,{site},{host.rack},{host.unit},front\n'
    for switch in design.switches:
        sort = design.switch_kind(switch)
        made, place = f'{sort.vendor},"{sort.model}"', f"{switch.rack},{switch.unit}"
        yield f"{switch.name},{switch.tier},{made},planned,{site},{place},rear\n"


def interfaces(design: Design) -> Iterator[str]:
    """Yield interfaces.csv: the ports that have a cable, host ports by rail."""
    yield "device,name,type,enabled,mtu,speed,description\n"
    for link in design.links:
        kind = _type(design, link)
        for device, port in ((link.a_device, link.a_port), (link.b_device, link.b_port)):
            enabled = str(not link.shut or device == link.a_device).lower()
            yield f"{device},{port},{kind},{enabled},{link.mtu},{round(link.rate * 1000)},{link.cable}\n"


def cables(design: Design) -> Iterator[str]:
    """Yield cables.csv; lengths are metres."""
    sides = ",".join(f"side_{side}_{column}" for side in "ab" for column in ("device", "type", "name"))
    yield f"{sides},status,label,length,length_unit\n"
    for link in design.links:
        a, b = f"{link.a_device},dcim.interface,{link.a_port}", f"{link.b_device},dcim.interface,{link.b_port}"
        yield f"{a},{b},planned,{link.cable},{link.length:g},m\n"


def _type(design: Design, link: Link) -> str:
    if design.environment.fabric.infiniband:
        return f"infiniband-{infiniband.speed(link.rate).lower()}"
    return _ETHERNET.get(round(link.rate), "other")
