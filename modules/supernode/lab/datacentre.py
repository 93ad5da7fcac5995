"""The lab's inside: networks, switches, servers with their BMCs, the time server, and the faults that stand."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

from supernode import catalog
from supernode.errors import CouldNotRun, WrongInput
from supernode.lab import clock, exchange, gateways, netspace, switches, wiring
from supernode.lab.artefacts import Artefacts, Server
from supernode.lab.bmc.fleet import Fleet
from supernode.lab.bmc.hardware import Habits
from supernode.lab.chassis import Identity, Port, Power
from supernode.lab.console import Console
from supernode.lab.cooling.hall import Hall
from supernode.lab.cooling.unit import FAULTS as COOLING_FAULTS
from supernode.lab.deploy import ImageStore
from supernode.lab.disks import File, Images
from supernode.lab.factory import Factory
from supernode.lab.faults import CABLE_FAULTS, KINDS, WAN_FAULTS, Fault, Standing
from supernode.lab.infiniband import SubnetPlant
from supernode.lab.machine import Machine
from supernode.lab.places import Places
from supernode.lab.plant import CablePlant
from supernode.lab.servers import SETTINGS, Ports, ServerWorks
from supernode.lab.switches import RunningSwitch
from supernode.lab.vendor import serving
from supernode.lab.wan import GatewayRow, Surroundings, WanPlant

log = logging.getLogger(__name__)
ROUTER = {
    "ipv4/ip_forward": "1",
    "ipv4/conf/all/rp_filter": "0",
    "ipv4/conf/default/rp_filter": "0",
    "ipv4/conf/all/arp_ignore": "0",
}
SWITCHES_UP_S = 120.0
IDLE_SHARE = 0.4  # of what a machine draws at most; its accelerators do nothing here


class Datacentre:
    """One lab, from the inside of its namespaces.

    Attributes:
        phase: how far the start came; "ready" at its end.
        machines: by slot.
    """

    def __init__(self, places: Places, artefacts: Artefacts, nos: Path) -> None:
        self.places, self.artefacts, self.nos = places, artefacts, nos
        self.phase = "networks"
        self.factory = Factory(places.factory)
        self.images = Images(Path("/run/supernode-images"))
        self.stores: dict[str, ImageStore] = {}  # an image comes to each site by itself
        username = artefacts.site.bmc_username
        habits = Habits(password_change=True)
        self.fleet = Fleet(places.factory, lambda slot: (username, self.factory.password(slot)), habits)
        self.plant = self._plant()
        self.standing = Standing(places.faults)
        self.wan = WanPlant(artefacts.wan, nos) if artefacts.wan else None
        self.works = {server.slot: self._works(server) for server in artefacts.servers}
        self.machines = {slot: self._machine(works) for slot, works in self.works.items()}
        self.switches = {row.device: self._switch(row.device) for row in artefacts.systems}
        self.hall = Hall(artefacts.cooling, places.factory, self.factory, self.heat)
        self.switches |= {row.name: self._gateway(row) for row in (artefacts.wan.gateways if artefacts.wan else ())}
        self._tasks: set[asyncio.Task[None]] = set()

    async def build(self) -> None:
        """Make everything and power the switches; machines stay off.

        Raises:
            CouldNotRun: the kernel refused a network, or a switch does not come up.
        """
        await asyncio.to_thread(self._networks)
        self.phase = "bmcs"
        for server in self.artefacts.servers:
            await self._add_bmc(server)
        await self.hall.open()
        self._keep(self.hall.run())
        self.phase = "faults"
        for fault in self.standing.read():
            await self._inject(fault)
        self.phase = "switches"
        site = self.artefacts.site
        self._keep(clock.serve(self.nos, Path("/run/clock"), site.time_servers, site.block, log.info))
        self._keep(serving.serve(self.places.vendor, site.gateway.ip))
        for switch in self.switches.values():
            await asyncio.to_thread(switch.install)
            self._keep(switch.run())
        late = await switches.wait_for_login(self._switch_addresses(), SWITCHES_UP_S)
        if late:
            raise CouldNotRun(
                ", ".join(late), f"no login after {SWITCHES_UP_S:g} s", f"see {self.places.folder}/slots/*/console.log"
            )
        self.phase = "ready"

    async def _add_bmc(self, server: Server) -> None:
        machine, kind, space = self.machines[server.slot], catalog.server(server.kind), self._space(server)
        bmc = await self.fleet.add(machine, kind, str(server.bmc.ip), space=space)
        gateway = self.wan.wan.site.bmc if self.wan and space else self.artefacts.site.bmc_gateway
        bmc.address, bmc.gateway = server.bmc, str(gateway.ip) if gateway else ""

    def _space(self, server: Server) -> str:
        """Return the namespace of a server's site; empty at this one, which is the lab's own."""
        return self.wan.wan.site.space if self.wan and self.artefacts.beyond(server) else ""

    def status(self) -> dict[str, Any]:
        """Return what runs, for `supernode lab status`."""
        return {
            "lab": self.places.name,
            "phase": self.phase,
            "digest": self.artefacts.digest,
            "servers": [self._server_status(row) for row in self.artefacts.servers],
            "switches": [
                {
                    "slot": row.slot,
                    "device": row.device,
                    "state": self.switches[row.device].state if row.device in self.switches else "on",
                    "management": str(row.management.ip),
                }
                for row in self.artefacts.switches
            ],
            "cooling": self.hall.status(),
            "gateways": [
                {"device": row.name, "site": row.site, "state": self.switches[row.name].state}
                for row in (self.artefacts.wan.gateways if self.artefacts.wan else ())
            ],
            "cables": len(self.artefacts.cables),
            "faults": self.faults(),
        }

    def slot(self, target: str) -> str:
        """Return the slot of a server, by name or slot.

        Raises:
            CouldNotRun: no such server.
        """
        server = self.artefacts.server(target)
        if server is None:
            known = ", ".join(row.device for row in self.artefacts.servers[:6])
            raise WrongInput(
                target, "is no server of this lab", f"servers: {known}{' …' if len(self.artefacts.servers) > 6 else ''}"
            )
        return server.slot

    async def power(self, target: str, action: str) -> Mapping[str, Any]:
        """Do what the buttons on a machine's front do: `on`, `off` (at once), `shutdown` or `reset`."""
        machine = self.machines[self.slot(target)]
        actions: dict[str, Coroutine[Any, Any, None]] = {}
        if action == "on":
            actions[action] = machine.power_on()
        elif action in ("off", "shutdown"):
            actions[action] = machine.power_off(hard=action == "off")
        elif action == "reset":
            actions[action] = machine.reset(hard=True)
        else:
            raise CouldNotRun(target, f"no power action {action!r}", "on, off, shutdown, reset")
        await actions[action]
        return {"slot": machine.slot, "power": machine.power_state()}

    async def install(self, target: str, image: Path, files: Mapping[str, File]) -> Mapping[str, Any]:
        """Write an image, and files upon it, onto the disk of a machine that is off, as with a disk cloner."""
        slot = self.slot(target)
        if self.works[slot].container is not None:
            raise CouldNotRun(target, "is running", "power it off first")
        await asyncio.to_thread(self.works[slot].install, image, files)
        return {"slot": slot, "installed": True}

    async def fault(self, fault: Fault) -> Sequence[Mapping[str, Any]]:
        """Inject a fault and return those that stand; one that stands in this place already is replaced."""
        kind = KINDS[fault.name]
        if not (fault.name == "swap-cable" and any(fault.same_place(other) for other in self.standing.read())):
            await self._inject(fault)
        if kind.lasting:
            self.standing.add(fault)
        return self.faults()

    async def clear(self, fault: Fault) -> Sequence[Mapping[str, Any]]:
        """Take a fault away and return those that stand.

        Raises:
            CouldNotRun: it does not stand, or happens once and for all.
        """
        if fault.name == "host-hung":
            self.works[self.slot(fault.targets[0])].hang(False)
            return self.faults()
        if not self.standing.remove(fault):
            raise CouldNotRun(
                " ".join(fault.targets),
                f"has no fault {fault.name}",
                "`supernode lab fault ENV` lists those that stand",
            )
        await self._mend(fault)
        return self.faults()

    async def exchange(self, slot: str, bmc: str) -> None:
        """Put another machine into a slot; what stood wrong with the old one is gone with it."""
        keeps = exchange.keeps_settings(bmc)
        await self.machines[slot].power_off(hard=True)
        await self.fleet.remove(slot, erase=not keeps)
        self.works[slot] = await asyncio.to_thread(exchange.refitted, self.places.name, self.works[slot], self.factory)
        self.machines[slot] = self._machine(self.works[slot])
        server = self.works[slot].server
        for fault in self.standing.read():
            if KINDS[fault.name].targets[:1] == ("SERVER",) and self.slot(fault.targets[0]) == slot:
                self.standing.remove(fault)
        await self._add_bmc(server)

    def heat(self, rack: str) -> float:
        """Return what the machines of a rack give off now, in watts: those with power, at the share that idles."""
        found = 0.0
        for server in self.artefacts.servers:
            if server.slot.rpartition("u")[0] == rack and self.machines[server.slot].power_state() != Power.OFF:
                found += IDLE_SHARE * (catalog.server(server.kind).power_w or 0)
        return found

    def faults(self) -> Sequence[Mapping[str, Any]]:
        """Return the faults that stand."""
        return [fault.to_json() for fault in self.standing.read()]

    async def _inject(self, fault: Fault) -> None:
        target, arguments = next(iter(fault.targets), ""), fault.arguments
        if fault.name in CABLE_FAULTS:
            await asyncio.to_thread(self.plant.inject, fault)
        elif fault.name == "host-hung":
            self.works[self.slot(target)].hang(True)
        elif fault.name in WAN_FAULTS:
            await asyncio.to_thread(self._wan_fault, fault.name, arguments.get("mtu", 0))
        elif fault.name == exchange.NAME:
            await self.exchange(self.slot(target), arguments["bmc"])
        elif fault.name in COOLING_FAULTS:
            self.hall.set_fault(fault.name, target, arguments)
        elif fault.name == "gpu-lost":
            self.works[self.slot(target)].lose_gpu(fault.targets[1])
        elif fault.name == "kernel-message":
            self.works[self.slot(target)].kernel_log.write(arguments["text"], arguments["level"])
        else:
            self.fleet.set_fault(self.slot(target), fault.name, **arguments)

    async def _mend(self, fault: Fault) -> None:
        target = next(iter(fault.targets), "")
        if fault.name in CABLE_FAULTS:
            await asyncio.to_thread(self.plant.mend, fault)
        elif fault.name in COOLING_FAULTS:
            self.hall.clear_fault(fault.name, target)
        elif fault.name == "gpu-lost":
            self.works[self.slot(target)].regain_gpu(fault.targets[1])
        elif fault.name in WAN_FAULTS:
            await asyncio.to_thread(self._wan_fault, fault.name, None)
        else:
            self.fleet.clear_fault(self.slot(target), fault.name)

    def _wan_fault(self, name: str, mtu: int | None) -> None:
        """Block the tunnel, or give the WAN another MTU; None takes the fault away."""
        if self.wan is None:
            raise WrongInput(name, "needs another site, and this lab has one", "lab-hybrid has two")
        if name == "wan-mtu":
            self.wan.narrow(mtu or self.wan.wan.mtu)
        else:
            self.wan.let_through(blocked=mtu is not None)

    def _works(self, server: Server) -> ServerWorks:
        places = self.places.slot(server.slot)
        identity = self.factory.identity(self.places.name, server.slot)
        ports = Ports(server.device, wiring.server_ports(self.places.name, server))
        space = self._space(server)
        store = self.stores.setdefault(space, ImageStore(self.places.images / space, space))
        return ServerWorks(server, identity, places, self.images, store, ports, Console(places.console), self.plant)

    def _plant(self) -> CablePlant | SubnetPlant:
        if self.artefacts.netlist:
            return SubnetPlant(self.artefacts, self.places.folder / "subnet")
        return CablePlant(self.places.name, self.artefacts)

    def _machine(self, works: ServerWorks) -> Machine:
        labels = tuple(Port(port.designed, port.mac, port.rate) for port in works.ports.ports)
        return Machine(works.server.slot, works.server.kind, works.identity, labels, works, works.console)

    def _switch(self, device: str) -> RunningSwitch:
        switch = next(row for row in self.artefacts.switches if row.device == device)
        files = switches.provisioning(switch, self.artefacts, self.factory.switch_key(switch.slot))
        made = Identity.manufactured(self.places.name, switch.slot)
        return RunningSwitch(switch, self.places.slot(switch.slot), made, self.nos, files)

    def _gateway(self, row: GatewayRow) -> RunningSwitch:
        device, key = gateways.row(row), self.factory.switch_key(row.name)
        files = gateways.provisioning(row, self.artefacts, key)
        made = Identity.manufactured(self.places.name, row.name)
        return gateways.RunningGateway(device, self.places.slot(row.name), made, self.nos, files)

    def _networks(self) -> None:
        site = self.artefacts.site
        for name, value in ROUTER.items():
            Path("/proc/sys/net", name).write_text(value, encoding="ascii")
        netspace.batch([f"link set {wiring.UPLINK} up", f"route add {site.serve} dev {wiring.UPLINK}"])
        netspace.batch(wiring.commands(self.places.name, self.artefacts))
        # A machine that comes up is asked for at once, not up to a second later.
        Path("/proc/sys/net/ipv4/neigh", wiring.BRIDGE, "retrans_time_ms").write_text("100", encoding="ascii")
        for space in wiring.spaces(self.artefacts):
            netspace.set_sysctls(space, SETTINGS)
        if self.wan is not None:
            other = [row for row in self.artefacts.servers if self.artefacts.beyond(row)]
            ports = tuple(wiring.bridge_port(row.slot) for row in other)
            self.wan.build(Surroundings(site.block, site.gateway, tuple(row.bmc for row in other), ports))
        for space, lines in wiring.qdisc_commands(self.artefacts, self.artefacts.wires).items():
            netspace.batch(lines, space, "tc")
        self.plant.start()

    def _switch_addresses(self) -> dict[str, Any]:
        found = {row.device: row.management.ip for row in self.artefacts.systems}
        return found | {row.name: gateways.reached_at(row).ip for row in (self.wan.wan.gateways if self.wan else ())}

    def _server_status(self, server: Server) -> dict[str, Any]:
        machine, works = self.machines[server.slot], self.works[server.slot]
        return {
            "slot": server.slot,
            "device": server.device,
            "kind": server.kind,
            "bmc": str(server.bmc.ip),
            "management": str(server.management.ip),
            "power": machine.power_state(),
            "progress": machine.boot_progress(),
            "disk": "written" if works.installed() else "empty",
        }

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("a part of the lab ended", exc_info=task.exception())
            self.phase = f"failed: {task.exception()}"
