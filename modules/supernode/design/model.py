"""The Design: columns inside, rows outside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from supernode import catalog
from supernode.catalog import ServerKind, SwitchKind
from supernode.design import naming
from supernode.design.columns import ALL_RAILS, CORE, LEAF, SPINE, Columns, leaf_prefix, plane_offset
from supernode.design.cooling import CoolingUnit, units
from supernode.design.naming import KINDS, TIERS, rail_port, switch_name
from supernode.design.rows import Host, HostState, Link, RenderedFile, Rows, Switch
from supernode.spec import Allocation, Environment, Identity, Machines, Pool, SlotState, Software, sizing
from supernode.units import MbitPerS, Metre

if TYPE_CHECKING:
    from supernode.design.layers import ScaleUpLayer
    from supernode.design.vpn import Gateway, VpnLink
    from supernode.spec.environment import Networks
    from supernode.spec.vpn import RemoteNetworks

# The first private 4-byte number (RFC 6996). All spines share it, so that no path leads from spine to spine; where
# there are cores, the spines of each further pod share one of their own, and all cores the last one (RFC 7938).
SPINE_ASN = 4_200_000_000
POD_ASN = 4_290_000_000
CORE_ASN = 4_294_967_294
_NOBODY = Identity()


@dataclass(frozen=True, eq=False)
class Design:
    """What an environment is, down to the last port.

    Attributes:
        digest: SHA-256 of what it was computed from, in hex; run ids and states that mean nothing to it leave it alone.
        allocation_saved: False where allocation.yml did not exist and its numbers were computed for this once.
    """

    name: str
    digest: str
    environment: Environment
    allocation: Allocation
    allocation_saved: bool
    machines: Machines
    columns: Columns

    @cached_property
    def hosts(self) -> Sequence[Host]:
        """All hosts, by pool and ordinal; spares and quarantined ones too."""
        return Rows(len(self.columns.hosts), self._host)

    @cached_property
    def switches(self) -> Sequence[Switch]:
        """All switches: leaves by plane, unit and rail, then spines, then cores."""
        return Rows(len(self.columns.switches), self._switch)

    @cached_property
    def links(self) -> Sequence[Link]:
        """All cables, by their number."""
        return Rows(len(self.columns.links), self._link)

    @cached_property
    def cooling(self) -> tuple[CoolingUnit, ...]:
        """All cooling units, in the order of the document; none where nothing is cooled by liquid."""
        return units(self.environment)

    def cooling_of(self, rack: str) -> CoolingUnit | None:
        """Return the unit that cools a rack, if any."""
        return next((unit for unit in self.cooling if rack in unit.racks), None)

    @property
    def configured_switches(self) -> Sequence[Switch]:
        """The switches that take a configuration: none of an InfiniBand fabric."""
        return () if self.environment.fabric.infiniband else self.switches

    def host(self, name: str) -> Host:
        """Return a host by name; KeyError when there is none."""
        return self.hosts[self._host_index[name]]

    def switch(self, name: str) -> Switch:
        """Return a switch by name; KeyError when there is none."""
        return self.switches[self._switch_index[name]]

    def planned_spare(self, name: str) -> bool:
        """Return whether the allocation planned a host as a spare, whatever became of it since."""
        return bool(self.columns.hosts[self._host_index[name]]["spare"])

    def service_host(self, pool: str) -> Host:
        """Return the host on which a pool's daemon runs: the active one of the lowest ordinal.

        Where none is active it is the first one, which is then reported for what it is: out of service.

        Raises:
            KeyError: no such pool; the documents were checked for that.
        """
        hosts = [host for host in self.hosts if host.pool == pool]
        if not hosts:
            raise KeyError(pool)
        return next((host for host in hosts if host.state == "active"), hosts[0])

    def bios(self, host: Host) -> dict[str, str | int | bool]:
        """Return the BIOS attributes that a host is set to; one of a service pool takes those that its kind has."""
        kind, wanted = self.server_kind(host), self.environment.machines.bios
        return {name: value for name, value in wanted.items() if kind.on_fabric or name in kind.bios}

    def firmware(self, host: Host) -> dict[str, str]:
        """Return the firmware baseline of a host; the environment's is that of the machines on the fabric."""
        kind = self.server_kind(host)
        return {**kind.firmware, **(self.environment.machines.firmware if kind.on_fabric else {})}

    def networks_of(self, host: Host) -> Networks | RemoteNetworks:
        """Return the networks of a host's site."""
        return self.environment.networks_of(self._pools[host.pool])

    @cached_property
    def _pools(self) -> dict[str, Pool]:
        return {pool.name: pool for pool in self.environment.pools}

    def is_host(self, device: str) -> bool:
        """Return whether a designed name is a host's."""
        return device in self._host_index

    def links_of(self, device: str) -> Sequence[Link]:
        """Return the cables of a host or switch, by their number; KeyError when there is no such device."""
        order, starts = self._links_by_device
        at = self._host_index.get(device)
        at = self._switch_index[device] + len(self.columns.hosts) if at is None else at
        return [self._link(int(i)) for i in order[starts[at] : starts[at + 1]]]

    def files(self, host: str) -> tuple[RenderedFile, ...]:
        """Return the files that roles place on a host, rendered."""
        from supernode.design import roles

        return roles.files(self, self.host(host))

    def software(self) -> Software:
        """Return what images and the site's mirror hold: the packages are those of every role."""
        from supernode.design import roles

        return self.environment.software.model_copy(update={"packages": roles.packages(self)})

    def switch_files(self, switch: str) -> tuple[RenderedFile, ...]:
        """Return the whole configuration of a switch, rendered."""
        from supernode.design import render

        return render.switch_files(self, self.switch(switch))

    def stacks(self) -> tuple[str, ...]:
        """Return the names of the Pulumi stacks, the one with the spines first."""
        return self.columns.stacks

    def stack_sizes(self) -> Counter[str]:
        """Return how many machines and switches each stack holds."""
        both = np.concatenate([self.columns.hosts["stack"], self.columns.switches["stack"]])
        return Counter(
            {
                self.columns.stacks[i]: int(n)
                for i, n in enumerate(np.bincount(both, minlength=len(self.columns.stacks)))
            }
        )

    def leaf_prefix(self, su: int, rail: int, plane: int = 1) -> IPv4Network:
        """Return the prefix that a leaf announces: the /31s of all its host ports."""
        first = leaf_prefix(self.environment, self.allocation.ports, np.array([su]), np.array([rail]))[0]
        first += plane_offset(self.environment, plane)
        return IPv4Network((int(first), 33 - sizing.stride(self.allocation.ports).bit_length()))

    def plane_network(self, plane: int) -> IPv4Network:
        """Return the part of the rails' network that a plane's ports have, which is all that they reach."""
        whole, bits = self.environment.site.networks.routed("rails"), (self.environment.fabric.planes - 1).bit_length()
        first = int(whole.network_address) + plane_offset(self.environment, plane)
        return IPv4Network((first, whole.prefixlen + bits))

    def announced(self, switch: Switch) -> IPv4Network | None:
        """Return the prefix of a switch's host ports; None of one that has none."""
        return self.leaf_prefix(switch.su, switch.rail or 0, switch.plane) if switch.tier == "leaf" else None

    def oversubscription(self) -> float:
        """Return the rate of all cabled host ports over that of all uplinks, at the leaf where it is highest."""
        links, rates = self.columns.links, self.environment.fabric.rates
        leaves = int(np.count_nonzero(self.columns.switches["tier"] == LEAF))
        down = np.bincount(links["b"][links["tier"] == LEAF], minlength=leaves)[:leaves] * rates.rail
        up = np.bincount(links["a"][links["tier"] == SPINE], minlength=leaves)[:leaves] * rates.uplink
        return float(np.max(down / up))

    def server_kind(self, host: Host) -> ServerKind:
        """Return the catalogue's entry of a host."""
        return catalog.server(host.kind)

    def switch_kind(self, switch: Switch) -> SwitchKind:
        """Return the catalogue's entry of a switch."""
        return catalog.switch(switch.kind)

    @cached_property
    def scale_up(self) -> ScaleUpLayer | None:
        """How accelerators are joined beside the fabric, where the environment says it."""
        if self.environment.scale_up is None:
            return None
        from supernode.design import layers

        return layers.scale_up(self.environment)

    @cached_property
    def vpn(self) -> VpnLink | None:
        """The tunnel to the other site, where there is one."""
        if self.environment.vpn is None:
            return None
        from supernode.design import vpn

        return vpn.link(self.environment)

    @property
    def gateways(self) -> tuple[Gateway, ...]:
        """Both ends of the tunnel, this site's first; none where there is one site."""
        return self.vpn.gateways if self.vpn else ()

    @cached_property
    def device_names(self) -> frozenset[str]:
        """The names of all that is provisioned: hosts, switches that take a configuration, gateways."""
        rows = (self.hosts, self.configured_switches, self.gateways)
        return frozenset(device.name for devices in rows for device in devices)

    def gateway_files(self, gateway: str) -> tuple[RenderedFile, ...]:
        """Return the whole configuration of a gateway, rendered; KeyError when there is none of that name."""
        from supernode.design import vpn

        found = next((row for row in self.gateways if row.name == gateway), None)
        if found is None or self.vpn is None:
            raise KeyError(gateway)
        return vpn.files(self.vpn, found)

    @cached_property
    def host_splits(self) -> int:
        """Into how many ports a leaf's socket is divided on the side of the hosts."""
        return self._leaf.split_for(self.environment.fabric.rates.rail)

    @cached_property
    def _leaf(self) -> SwitchKind:
        return catalog.switch(self.environment.fabric.leaf)

    @cached_property
    def _spine(self) -> SwitchKind:
        return catalog.switch(self.environment.fabric.spine)

    @cached_property
    def _host_index(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.host_names)}

    @cached_property
    def _switch_index(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.switch_names)}

    @cached_property
    def management_addresses(self) -> dict[str, IPv4Address]:
        """The management address of every host and switch by name."""
        addresses = {host.name: host.management.ip for host in self.hosts}
        return addresses | {switch.name: switch.management.ip for switch in self.switches}

    @cached_property
    def slots(self) -> dict[str, str]:
        """The device of every slot that the design fills."""
        names = (*self.host_names, *self.switch_names)
        return dict(zip((*self.host_slots, *self.switch_slots), names, strict=True))

    @cached_property
    def host_names(self) -> list[str]:
        """The names of all hosts, in their order."""
        return naming.host_names(self.columns.hosts, [pool.name for pool in self.environment.pools])

    @cached_property
    def switch_names(self) -> list[str]:
        """The names of all switches, in their order."""
        return naming.switch_names(self.columns.switches)

    @cached_property
    def host_slots(self) -> list[str]:
        """The slots of all hosts, in their order."""
        return naming.slots(self.columns.hosts, self.columns.racks, self.host_names)

    @cached_property
    def switch_slots(self) -> list[str]:
        """The slots of all switches, in their order."""
        return naming.slots(self.columns.switches, self.columns.racks, self.switch_names)

    def states(self) -> list[HostState]:
        """Return the states of all hosts, in their order."""
        if not self.machines.slots:
            return ["spare" if spare else "active" for spare in self.columns.hosts["spare"].tolist()]
        return [self._state(i, slot) for i, slot in enumerate(self.host_slots)]

    @cached_property
    def _links_by_device(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        links, hosts = self.columns.links, len(self.columns.hosts)
        a = np.where(links["uplink"], links["a"].astype(np.int64) + hosts, links["a"])
        device = np.concatenate([a, links["b"].astype(np.int64) + hosts])
        link = np.tile(np.arange(len(links)), 2)
        order = np.lexsort((link, device))
        starts = np.searchsorted(device[order], np.arange(hosts + len(self.columns.switches) + 1))
        return link[order], starts

    def _slot(self, row: np.void) -> str:
        if not row["unit"]:  # a rented host stands in no rack
            return naming.host_name(self.environment.pools[row["pool"]].name, row["ordinal"])
        return naming.slot(self.columns.racks[row["rack"]], row["unit"])

    def _host_name(self, index: int) -> str:
        row = self.columns.hosts[index]
        return naming.host_name(self.environment.pools[row["pool"]].name, row["ordinal"])

    def _switch_name(self, index: int) -> str:
        row = self.columns.switches[index]
        return switch_name(*(int(row[key]) for key in ("tier", "plane", "pod", "rail", "su", "number")))

    def _in(self, network: IPv4Network, offset: Any) -> IPv4Address:
        return IPv4Address(int(network.network_address) + int(offset))

    def _management(
        self, offset: Any, networks: Networks | RemoteNetworks | None = None, *, rented: bool = False
    ) -> IPv4Interface:
        cloud, network = self.environment.cloud, (networks or self.environment.site.networks).management.cidr
        network = cloud.hosts if rented and cloud else network
        return IPv4Interface((self._in(network, offset), network.prefixlen))

    def _host(self, index: int) -> Host:
        row = self.columns.hosts[index]
        pool, slot = self.environment.pools[row["pool"]], self._slot(row)
        networks = self.environment.networks_of(pool)
        record = self.machines.slots.get(slot)
        return Host(
            name=self._host_name(index),
            slot=slot,
            rack=self.columns.racks[row["rack"]],
            unit=int(row["unit"]),
            pool=pool.name,
            kind=pool.kind,
            ordinal=int(row["ordinal"]),
            su=int(row["su"]),
            port=int(row["port"]),
            state=self._state(index, slot),
            stack=self.columns.stacks[row["stack"]],
            bmc=IPv4Address(0) if pool.cloud else self._in(networks.bmc.cidr, row["address"]),
            management=self._management(row["address"], networks, rented=bool(pool.cloud)),
            identity=record.identity if record else _NOBODY,
            cloud=pool.cloud or "",
        )

    def _state(self, index: int, slot: str) -> HostState:
        """Return what a bound slot says of itself; an unbound one is what the allocation planned."""
        record = self.machines.slots.get(slot)
        if record is None:
            return "spare" if self.columns.hosts[index]["spare"] else "active"
        states: dict[SlotState, HostState] = {SlotState.SPARE: "spare", SlotState.QUARANTINED: "quarantined"}
        return states.get(record.state, "active")

    def _switch(self, index: int) -> Switch:
        row = self.columns.switches[index]
        tier, slot = TIERS[row["tier"]], self._slot(row)
        record = self.machines.slots.get(slot)
        return Switch(
            name=self._switch_name(index),
            slot=slot,
            rack=self.columns.racks[row["rack"]],
            unit=int(row["unit"]),
            kind=(self._leaf if tier == "leaf" else self._spine).name,
            tier=tier,
            su=int(row["su"]),
            rail=None if row["rail"] == ALL_RAILS else int(row["rail"]),
            asn=self._asn(row),
            loopback=self._loopback(row),
            management=self._management(row["address"]),
            stack=self.columns.stacks[row["stack"]],
            identity=record.identity if record else _NOBODY,
            plane=int(row["plane"]),
            pod=int(row["pod"]),
        )

    def _asn(self, row: np.void) -> int | None:
        if self.environment.fabric.infiniband:
            return None
        if row["tier"] == LEAF:
            return SPINE_ASN + 1 + int(row["place"])
        if row["tier"] == CORE:
            return CORE_ASN
        return SPINE_ASN if row["pod"] <= 1 else POD_ASN + int(row["pod"])

    def _loopback(self, row: np.void) -> IPv4Address | None:
        if self.environment.fabric.infiniband:
            return None
        return self._in(self.environment.site.networks.routed("loopbacks"), int(row["place"]) + 1)

    def leaf_port(self, index: int, *, uplink: bool) -> str:
        """Name a leaf's port by its 0-based number among its host ports or its uplink ports."""
        split = self.host_splits
        if not uplink:
            return self._leaf.port_name(index // split, index % split, split)
        down = -(-self.allocation.ports // split)
        wide = self._leaf.split_for(self.environment.fabric.rates.uplink)
        return self._leaf.port_name(down + index // wide, index % wide, wide)

    def spine_port(self, index: int) -> str:
        """Name a spine's or core's port by its 0-based number."""
        split = self._spine.split_for(self.environment.fabric.rates.uplink)
        return self._spine.port_name(index // split, index % split, split)

    def _link(self, index: int) -> Link:
        row = self.columns.links[index]
        rates, uplink, tier = self.environment.fabric.rates, bool(row["uplink"]), int(row["tier"])
        a, b, rail, plane = int(row["a"]), int(row["b"]), None if uplink else int(row["a_port"]), int(row["plane"])
        even, bare = int(row["b_address"]), uplink or self.environment.fabric.infiniband
        return Link(
            cable=f"C{row['cable']:05d}",
            kind=KINDS[tier],
            a_device=self._switch_name(a) if uplink else self._host_name(a),
            a_port=self._lower_port(tier, int(row["a_port"]), plane),
            b_device=self._switch_name(b),
            b_port=self.leaf_port(int(row["b_port"]), uplink=False)
            if not uplink
            else self.spine_port(int(row["b_port"])),
            a_address=None if bare else IPv4Interface((even + 1, 31)),
            b_address=None if bare else IPv4Interface((even, 31)),
            rail=rail,
            rate=MbitPerS(rates.uplink if uplink else rates.rail),
            mtu=self.environment.fabric.mtu,
            length=Metre(round(float(row["length_m"]), 2)),
            shut=not uplink and self._state(a, self._slot(self.columns.hosts[a])) == "quarantined",
            plane=plane,
        )

    def _lower_port(self, tier: int, number: int, plane: int) -> str:
        if tier == LEAF:
            return rail_port(number, plane)
        return self.leaf_port(number, uplink=True) if tier == SPINE else self.spine_port(number)
