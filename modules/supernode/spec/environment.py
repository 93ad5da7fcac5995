"""environment.yml, attribute by attribute."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema, model_validator

from supernode.spec import ranges
from supernode.spec.cloud import Cloud
from supernode.spec.collectives import Collectives
from supernode.spec.cooling import Cooling
from supernode.spec.gpu_driver import GpuDriver
from supernode.spec.parts import Document, HostName, Name, Network, Plain, Rate, Reference
from supernode.spec.scale_up import ScaleUp
from supernode.spec.scheduler import Scheduler
from supernode.spec.vpn import Dataset, RemoteNetworks, Vpn
from supernode.spec.watch import Watch


class Networks(Document):
    """The site's networks.

    Hosts and switches stand in `management`, controllers in `bmc`; `loopbacks` has one address a switch, `rails` the
    /31s. An InfiniBand fabric has no addresses, so neither of these.
    """

    management: Network
    bmc: Network
    loopbacks: Network | None = None
    rails: Network | None = None

    def routed(self, name: Literal["loopbacks", "rails"]) -> IPv4Network:
        """Return a range of the routed fabric's addresses.

        Raises:
            ValueError: this site has none, as in an InfiniBand fabric.
        """
        network = self.loopbacks if name == "loopbacks" else self.rails
        if network is None:
            raise ValueError(f"site.networks has no {name}")
        return network.cidr

    def declared(self) -> dict[str, Network]:
        """Return the networks that there are, by name."""
        rows = (
            ("management", self.management),
            ("bmc", self.bmc),
            ("loopbacks", self.loopbacks),
            ("rails", self.rails),
        )
        return {name: network for name, network in rows if network is not None}


class Serve(Document):
    """Where machines reach `supernode serve`."""

    address: IPv4Address
    port: Annotated[int, Field(ge=1, le=65535)] = 8443


class Site(Document):
    """What the building gives."""

    name: Name
    domain: HostName
    networks: Networks
    time_servers: Annotated[tuple[HostName, ...], Field(min_length=1)]
    name_servers: tuple[IPv4Address, ...] = ()
    serve: Serve


class Factory(Document):
    """The account that controllers come with from the factory; `{slot}` in the password is the machine's slot."""

    username: str
    password: Reference


class Bmc(Document):
    """How management controllers are reached.

    `{slot}` in a password is the machine's slot. With `factory`, a controller that still has the factory's password is
    given one of its own at first contact, which is kept where `password` says. `ca` is the file that signs the
    controllers' certificates; without it each slot's fingerprint must be in machines.yml.
    """

    username: str
    password: Reference
    factory: Factory | None = None
    ca: str | None = None


class Access(Document):
    """The account that provisioning makes on every host, and the one that it finds on every switch."""

    user: Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_-]*$", max_length=32)] = "supernode"
    switch_user: Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_-]*$", max_length=32)] = "admin"


class Rack(Document):
    """A rack; racks of a row stand side by side in the order of this file unless `position` says otherwise.

    It draws from its `feeds`, each of which can carry it alone: it stops when all of them fail.

    r[0001-4096] stands for as many racks; with `per_row`, each row has so many of them and the next follows.
    """

    name: Annotated[
        str,
        Field(pattern=r"^[a-z][a-z0-9]*$", max_length=16),
        WithJsonSchema({"type": "string", "pattern": ranges.NAME, "examples": ["r01", "r[0001-4096]"]}),
    ]
    units: Annotated[int, Field(ge=1, le=99)]
    row: Annotated[int, Field(ge=1)] = 1
    position: Annotated[int, Field(ge=1)] | None = None
    power_w: Annotated[int, Field(gt=0)] | None = None
    feeds: tuple[Name, ...] = ()
    per_row: Annotated[int, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _one_rack(self) -> Rack:
        if self.per_row is not None:
            raise ValueError("per_row belongs to a range of racks, such as r[0001-4096]")
        return self


class Pool(Document):
    """Servers of one kind that do one job; `spares` come on top of `count`.

    With fewer than `minimum` of them ready a run ends after provisioning. A pool with `cloud` is rented from that
    provider: it stands in the environment's cloud part, in no rack and beside the fabric.
    `site` is a site of `vpn` where they stand there and not here.
    """

    name: Name
    kind: str
    count: Annotated[int, Field(ge=1)]
    spares: Annotated[int, Field(ge=0)] = 0
    minimum: Annotated[int, Field(ge=1)] = 1
    racks: tuple[str, ...] = ()
    cloud: Literal["aws"] | None = None
    site: Name | None = None
    disk: Annotated[str, Field(pattern="^/dev/disk/by-(id|path)/")] | None = None


class Rates(Document):
    """What a rail port and an uplink carry."""

    rail: Rate
    uplink: Rate


class Fabric(Document):
    """The compute fabric, a Clos network of one family.

    `rail-optimised`: rail r of every host ends on leaf r of its unit, and all leaves meet in the spines. `rail-only`:
    each rail has spines of its own, so that rails meet inside the hosts alone. `fat-tree`: all rails of a host end on
    the one leaf of its unit, and every tier carries what the one below does. `leaf-spine`: the same in two tiers, with
    the stated oversubscription.

    `unit` is the number of hosts of a full scalable unit. Where it is given, every unit gets the uplinks of a full one,
    as reference designs ask; where it is not, the uplinks follow the hosts that are there.

    `spines` counts those of one pod, plane and, in `rail-only`, rail; without it a rule computes them, and with them
    whether there are two tiers or three, unless `tiers` says so (`spec.clos`). `planes` divides every NIC into as many
    ports, each of which ends in a fabric of its own; two planes are also what is called dual-ToR.

    In an InfiniBand fabric `mtu` is 2048 or 4096, which it is where nothing is said, and the first `subnet_managers`
    active hosts run one each: one is master, the others stand by.
    """

    family: Literal["rail-optimised", "rail-only", "fat-tree", "leaf-spine"]
    transport: Literal["roce-v2", "infiniband"]
    leaf: str
    spine: str
    spines: Annotated[int, Field(ge=1, le=512)] | None = None
    tiers: Literal[2, 3] | None = None
    planes: Annotated[int, Field(ge=1, le=8)] = 1
    racks: Annotated[tuple[str, ...], Field(min_length=1)]
    rates: Rates
    oversubscription: Annotated[float, Field(gt=0, le=32)] = 1.0
    mtu: Annotated[int, Field(ge=1500, le=9216)] = 9000
    unit: Annotated[int, Field(ge=1, le=512)] | None = None
    subnet_managers: Annotated[int, Field(ge=1, le=8)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _largest_packet(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("transport") == "infiniband":
            return {"mtu": 4096, **data}
        return data

    @property
    def infiniband(self) -> bool:
        """Tell whether a subnet manager rules it, and no switch has a configuration or an address of its own."""
        return self.transport == "infiniband"

    @property
    def by_host(self) -> bool:
        """Tell whether all rails of a host end on one leaf, instead of each on its own."""
        return self.family in {"fat-tree", "leaf-spine"}


class Software(Document):
    """What goes into the golden image; a package may be pinned as name=version."""

    suite: Plain
    kernel: Plain
    packages: tuple[Plain, ...] = ()


class MachinePolicy(Document):
    """What every machine is set to, and how a run may treat the machines.

    `change_at_once` is the share of the machines in service that one run may change. Where more than `quarantine_share`
    of the machines that a run had to make failed, it is the site and not the machines: nobody is quarantined.
    """

    bios: dict[str, str | int | bool] = Field(default_factory=dict)
    firmware: dict[str, str] = Field(default_factory=dict)
    deadline_s: Annotated[float, Field(gt=0)] = 900
    change_at_once: Annotated[float, Field(gt=0, le=1)] = 0.25
    quarantine_share: Annotated[float, Field(gt=0, le=1)] = 0.5
    strict: bool = False


class Stacks(Document):
    """How the engine's state is cut; `limit` counts machines and switches of one stack."""

    limit: Annotated[int, Field(ge=1, le=1000)] = 400


class Budgets(Document):
    """From T0 to T1: 45 minutes."""

    provision_s: Annotated[float, Field(gt=0)] = 1200
    configure_s: Annotated[float, Field(gt=0)] = 900
    verify_s: Annotated[float, Field(gt=0)] = 600


class Verify(Document):
    """Contract floors of the checks.

    `rate_floor` is the share of the declared rate that a cable must carry; it wins over the computed mark even when it
    is looser. Without it the mark is computed, and is advice until a clean run has reached it.
    """

    time_offset_ms: Annotated[float, Field(gt=0)] = 100
    rate_floor: Annotated[float, Field(gt=0, le=1)] | None = None


class Environment(Document):
    """The whole of environment.yml."""

    version: Annotated[Literal[1], Field(alias="schema")]
    name: Name
    site: Site
    bmc: Bmc
    access: Access = Access()
    racks: Annotated[tuple[Rack, ...], Field(min_length=1)]
    pools: Annotated[tuple[Pool, ...], Field(min_length=1)]
    fabric: Fabric
    software: Software
    machines: MachinePolicy = MachinePolicy()
    stacks: Stacks = Stacks()
    budgets: Budgets = Budgets()
    verify: Verify = Verify()
    cloud: Cloud | None = None
    cooling: Cooling | None = None
    gpu_driver: GpuDriver | None = None
    scheduler: Scheduler | None = None
    watch: Watch | None = None
    collectives: Collectives | None = None
    scale_up: ScaleUp | None = None
    vpn: Vpn | None = None
    data: tuple[Dataset, ...] = ()

    def networks_of(self, pool: Pool) -> Networks | RemoteNetworks:
        """Return the networks in which a pool's machines and their controllers stand."""
        here = pool.site in (None, self.site.name) or self.vpn is None
        return self.site.networks if here or self.vpn is None else self.vpn.remote.networks
