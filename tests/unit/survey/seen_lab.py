"""What a survey would see of a cluster that stands as a design says, made from the design; tests then bend it.

Composed, but for the switches' configuration, which is the text that the design renders for FRR.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from supernode import catalog
from supernode.bringup.survey import devices
from supernode.bringup.survey.observed import (
    ControllerSeen,
    Hop,
    HostSeen,
    Observations,
    OwnAddress,
    Placement,
    SwitchSeen,
)
from supernode.design import Design
from supernode.units import Milliseconds
from supernode.verify.facts import fib
from supernode.verify.facts.clock import Clock
from supernode.verify.facts.lldp import Neighbour
from supernode.verify.facts.ports import Port
from supernode.verify.facts.raw import Raw

KEY = "ssh-ed25519 AAAA"


def serial(slot):
    return f"SN{slot.upper()}"


def uuid(number):
    return f"0f2b{number:04d}-1111-4222-8333-444455556666"


@dataclass
class Seen:
    design: Design
    links: dict = field(default_factory=dict)
    controllers: dict = field(default_factory=dict)
    hosts: dict = field(default_factory=dict)
    switches: dict = field(default_factory=dict)

    def __post_init__(self):
        for link in self.design.links:
            self.links[link.cable] = ((link.a_device, link.a_port), (link.b_device, link.b_port))
        for number, host in enumerate(self.design.hosts, 1):
            self.controllers[host.name] = self._controller(host, number)
            self.hosts[host.name] = self._host(host, number)
        for switch in self.design.switches:
            self.switches[switch.name] = self._switch(switch)

    def exchange(self, one, other):
        """Exchange the far plugs of two cables."""
        (a, b), (c, d) = self.links[one], self.links[other]
        self.links[one], self.links[other] = (a, d), (c, b)

    def observations(self):
        heard = {}
        for a, b in self.links.values():
            for (device, port), (far, far_port) in ((a, b), (b, a)):
                heard.setdefault(device, {})[port] = (Neighbour(far, (far_port,), "0 day, 00:01:00"),)
        hosts = [h if h.why else replace(h, neighbours=heard.get(n, {})) for n, h in self.hosts.items()]
        switches = [s if s.why else replace(s, neighbours=heard.get(n, {})) for n, s in self.switches.items()]
        return Observations(tuple(self.controllers.values()), tuple(hosts), tuple(switches))

    def _controller(self, host, number):
        site, kind = self.design.environment.site, catalog.server(host.kind)
        bios = {name: a.default for name, a in kind.bios.items()} | dict(self.design.environment.machines.bios)
        network = site.networks.bmc
        return ControllerSeen(
            address=str(host.bmc),
            fingerprint=f"{number:064x}",
            identity={
                "system_serial": serial(host.slot),
                "uuid": uuid(number),
                "bmc_mac": f"02:00:00:00:01:{number:02x}",
                "management_mac": f"02:00:00:00:02:{number:02x}",
            },
            vendor=kind.vendor,
            model=kind.model,
            placement=Placement(host.rack, host.unit),
            own=OwnAddress(f"{host.bmc}/{network.cidr.prefixlen}", str(network.gateway or "")),
            gpus=kind.gpus,
            power="On",
            bios=bios,
            firmware=dict(kind.firmware),
            clock_offset_s=0.2,
        )

    def _host(self, host, number):
        env = self.design.environment
        kind, site = catalog.server(host.kind), env.site
        ports = {"management": _port("management", 1500, str(host.management), f"02:00:00:00:02:{number:02x}")}
        hops = [Hop("default", str(site.networks.management.gateway), "management")]
        for link in self.design.links_of(host.name):
            ports[link.a_port] = _port(link.a_port, link.mtu, str(link.a_address))
            hops += [Hop(str(site.networks.rails.cidr), str(link.b_address.ip), link.a_port)]
            hops += [Hop(str(link.a_address.network), "", link.a_port)]
        return HostSeen(
            address=str(host.management.ip),
            host_key=f"{KEY}{number:04d}",
            hostname=host.name,
            vendor=kind.vendor,
            model=kind.model,
            ports=ports,
            hops=tuple(hops),
            fqdn=f"{host.name}.{site.domain}",
            serial=serial(host.slot),
            uuid=uuid(number),
            nics={nic.pci: f"rail{nic.rail}" for nic in kind.nics},
            clock=Clock(True, True, "x", 2, Milliseconds(1), Milliseconds(1), "Normal"),
            time_servers=tuple(site.time_servers),
            name_servers=tuple(map(str, site.name_servers)),
            mirror=f"{site.serve.address}:{site.serve.port}",
            suite=env.software.suite,
            kernels=(env.software.kernel,),
            packages=tuple(sorted(env.software.packages)),
        )

    def _switch(self, switch):
        files = {file.path: file.content for file in self.design.switch_files(switch.name)}
        read = devices.switch(
            str(switch.management.ip), f"{KEY}{switch.name}", {"frr": Raw(0, files["/etc/frr/frr.conf"])}
        )
        ports = {
            "eth0": _port("eth0", 1500, str(switch.management), f"02:00:00:00:03:{switch.management.ip.packed[3]:02x}")
        }
        fibs = {}
        for link in self.design.links_of(switch.name):
            name = link.a_port if link.a_device == switch.name else link.b_port
            ports[name] = _port(name, link.mtu)
        from supernode.design import expectations

        for prefix, width in expectations.build(self.design).switches[switch.name].fib.items():
            fibs[prefix] = width
        import ipaddress

        routes = tuple(fib.Route(ipaddress.IPv4Network(p), tuple(f"swp{n}" for n in range(w))) for p, w in fibs.items())
        kind, number = catalog.switch(switch.kind), switch.management.ip.packed[3]
        labels = {"vendor": kind.vendor, "model": kind.model, "serial": f"SW{number:04d}"}
        return replace(read, hostname=switch.name, ports=ports, routes=routes, unseen={}, **labels)


def _port(name, mtu, address="", mac=""):
    return Port(name, mtu, True, True, "UP", (address,) if address else (), mac=mac)


def lacking(address, why="no answer in 10 s", kind=HostSeen):
    return kind(address, why=why)


__all__ = ["Seen", "SwitchSeen", "lacking", "serial"]
