"""Rented pools, whoever rents them out: what a provider's components are given, and what they must tell of each host.

`plan.cloud` computes the inputs. A provider is one module here, which alone imports that provider's SDK: it is loaded
when a stack has such a pool, and no sooner.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pulumi

from supernode.errors import CouldNotRun
from supernode.plan.cloud import CloudShare

HOST = "supernode:cloud:CloudHost"
# The module of each provider, and the extra that installs its SDK.
_PROVIDERS = {"aws": ("supernode.components.aws.pool", "pulumi_aws", "aws")}


@dataclass(frozen=True)
class Door:
    """One TCP port that a network of the site may reach, and what for."""

    port: int
    network: str
    what: str


@dataclass(frozen=True)
class CloudNetworkArgs:
    """The one network of a stack's rented hosts.

    Attributes:
        name: the environment's.
        gateway: id of the VPN gateway by which the site is reached.
        routes: the site's networks that lie behind it.
        let_in: all that reaches a host from outside the network.
    """

    name: str
    provider: str
    region: str
    zone: str
    cidr: str
    subnet: str
    gateway: str
    routes: Sequence[str]
    let_in: Sequence[Door]

    @classmethod
    def of(cls, inputs: Mapping[str, Any]) -> CloudNetworkArgs:
        """Take what `plan.cloud` computed."""
        keys = ("name", "provider", "region", "zone", "cidr", "subnet", "gateway", "routes")
        doors = [Door(row["port"], row["from"], row["what"]) for row in inputs["letIn"]]
        return cls(**{key: inputs[key] for key in keys}, let_in=doors)


@dataclass(frozen=True)
class CloudHostArgs:
    """One rented host.

    Attributes:
        host_key: its public host key, where machines.yml knows it; empty before it was enrolled.
        in_service: what would replace the instance is left undone.
    """

    name: str
    slot: str
    address: str
    user_data: str
    host_key: str
    in_service: bool


@dataclass(frozen=True)
class Card:
    """The interface on one network card; the first one has the host's address."""

    card: int
    device: int
    type: str


@dataclass(frozen=True)
class CloudPoolArgs:
    """The hosts of one pool, all alike.

    Attributes:
        image: {"ami": id} or {"ssm": parameter}.
        capacity: {"block": id}, {"reservation": id}, or nothing: on demand.
    """

    name: str
    environment: str
    instance_type: str
    cards: Sequence[Card]
    image: Mapping[str, str]
    capacity: Mapping[str, str]
    root_gb: int
    hosts: Sequence[CloudHostArgs]

    @classmethod
    def of(cls, inputs: Mapping[str, Any]) -> CloudPoolArgs:
        """Take what `plan.cloud` computed."""
        return cls(
            name=inputs["name"],
            environment=inputs["environment"],
            instance_type=inputs["instanceType"],
            cards=[Card(**card) for card in inputs["cards"]],
            image=inputs["image"],
            capacity=inputs["capacity"],
            root_gb=inputs["rootGb"],
            hosts=[_host(name, host) for name, host in inputs["hosts"].items()],
        )


def _host(name: str, inputs: Mapping[str, Any]) -> CloudHostArgs:
    return CloudHostArgs(
        name, inputs["slot"], inputs["address"], inputs["userData"], inputs["hostKey"], inputs["inService"]
    )


class CloudHost(pulumi.ComponentResource):
    """One rented host under its designed name; what it registers is what provisioning reads back of it.

    An instance that runs and whose host key nobody recorded is `late` in `enrol`: nobody may log in to it yet.
    """

    def __init__(self, args: CloudHostArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(HOST, args.name, None, opts)
        self.args = args

    def tell(self, instance: pulumi.Input[str], address: pulumi.Input[str], state: pulumi.Output[str]) -> None:
        """Register what came of it: the provider's id of the instance, its address, and "running" where it runs."""
        status = state.apply(lambda said: standing(self.args, said))
        self.register_outputs(
            {
                "slot": self.args.slot,
                "address": address,
                "instance": instance,
                "hostKeys": [self.args.host_key] if self.args.host_key else [],
                "status": status["status"],
                "phase": status["phase"],
                "reason": status["reason"],
            }
        )


def standing(args: CloudHostArgs, state: str) -> dict[str, str]:
    """Say how a host stands by what its provider says of the instance: ready, or late and why."""
    if state != "running":
        return {"status": "late", "phase": "boot", "reason": f"the instance is {state}"}
    if not args.host_key:
        how = f"`supernode assign ENVIRONMENT {args.slot} --host-key`"
        reason = f"its SSH host key is not known: read it from the instance's console and record it: {how}"
        return {"status": "late", "phase": "enrol", "reason": reason}
    return {"status": "ready", "phase": "", "reason": ""}


class Maker(Protocol):
    """What a provider's module offers."""

    def declare(self, network: CloudNetworkArgs, pools: Sequence[CloudPoolArgs]) -> None:
        """Declare the network and the pools in the running program."""


def declare(share: CloudShare) -> None:
    """Declare a stack's cloud share; without pools nothing is declared and no SDK is loaded.

    Raises:
        CouldNotRun: the provider's SDK is not installed.
    """
    if share.pools:
        network = CloudNetworkArgs.of(share.network)
        _maker(network.provider).declare(network, [CloudPoolArgs.of(inputs) for inputs in share.pools.values()])


def _maker(provider: str) -> Maker:
    module, sdk, extra = _PROVIDERS[provider]
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != sdk:
            raise
        hint = f"install it: pip install 'supernode[{extra}]', in a checkout uv sync --extra {extra}"
        raise CouldNotRun(
            f"a pool of {provider}", f"needs the Python package {sdk}, which is not there", hint
        ) from None
    maker: Maker = found
    return maker
