"""The components under Pulumi's mocks: which resources they declare, and in which order."""

import asyncio
import time

import pulumi
import pytest
from pulumi.runtime import mocks

from supernode.components.fabric import Fabric, FabricArgs
from supernode.components.supernode import Supernode, SupernodeArgs
from supernode.components.vpn import VpnLink, VpnLinkArgs


class Recorder(pulumi.runtime.Mocks):
    """Writes down every resource once it is made; switches and tunnels take their time: what does not wait is first."""

    def __init__(self):
        self.seen = []

    def new_resource(self, args):
        if args.typ in ("supernode:index:SwitchConfig", "supernode:index:Tunnel"):
            time.sleep(0.3)
        self.seen.append(args)
        return f"{args.name}-id", {**args.inputs, "status": "ready"}

    def call(self, args):
        return {}


@pytest.fixture
def recorder():
    made = Recorder()
    asyncio.set_event_loop(asyncio.new_event_loop())  # the thread's own may have ended with another test
    mocks.set_mocks(made, project="supernode", stack="lab", preview=False)
    return made


def declare(spares=("gpu-002",)):
    """Declare two switches and three machines; the spares wait for the fabric."""
    fabric = Fabric("fabric", FabricArgs({name: {"name": name, "slot": name} for name in ("su01-leaf0", "spine01")}))
    machines = {name: {"name": name, "slot": name, "inService": False} for name in ("gpu-001", "gpu-002", "gpu-003")}
    after = {name: list(fabric.switches.values()) for name in spares}
    return fabric, Supernode("supernode", SupernodeArgs(machines, after))


@pulumi.runtime.test
def test_one_resource_for_each_machine_and_switch(recorder):
    fabric, supernode = declare()

    def check(_statuses):
        seen = {(args.typ, args.name) for args in recorder.seen}
        assert seen == {
            ("supernode:fabric:Fabric", "fabric"),
            ("supernode:cluster:Supernode", "supernode"),
            ("supernode:index:SwitchConfig", "su01-leaf0"),
            ("supernode:index:SwitchConfig", "spine01"),
            *(("supernode:index:Machine", f"gpu-00{n}") for n in (1, 2, 3)),
        }

    return pulumi.Output.all(*(m.status for m in supernode.machines.values()), *fabric.switches.values()).apply(check)


@pulumi.runtime.test
def test_a_spare_is_declared_after_the_switches_that_fence(recorder):
    _, supernode = declare(spares=("gpu-001", "gpu-002", "gpu-003"))

    def check(_statuses):
        order = [args.name for args in recorder.seen if args.typ.startswith("supernode:index:")]
        assert set(order[:2]) == {"su01-leaf0", "spine01"}

    return pulumi.Output.all(*(m.status for m in supernode.machines.values())).apply(check)


@pulumi.runtime.test
def test_a_machine_at_the_other_site_is_declared_after_its_tunnel_and_the_others_are_not(recorder):
    link = VpnLink("vpn-branch", VpnLinkArgs("branch", {"name": "branch", "gateways": [], "sshKey": "file:key"}))
    machines = {name: {"name": name, "slot": name} for name in ("gpu-001", "edge-001")}
    supernode = Supernode("supernode", SupernodeArgs(machines, {"edge-001": [link.tunnel]}))

    def check(_statuses):
        order = [args.name for args in recorder.seen if args.typ.startswith("supernode:index:")]
        assert order == ["gpu-001", "branch", "edge-001"]

    return pulumi.Output.all(*(m.status for m in supernode.machines.values())).apply(check)


@pulumi.runtime.test
def test_inputs_reach_the_provider_as_they_are_and_outputs_come_back(recorder):
    _, supernode = declare()

    def check(status):
        assert status == "ready"
        inputs = next(args.inputs for args in recorder.seen if args.name == "gpu-001")
        assert inputs == {"name": "gpu-001", "slot": "gpu-001", "inService": False}

    return supernode.machines["gpu-001"].status.apply(check)


def test_arguments_cannot_be_changed_afterwards():
    with pytest.raises(AttributeError):
        FabricArgs({}).switches = {}
