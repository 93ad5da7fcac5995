"""What comes back of rented hosts, what the engine tells of them, and that no run takes them out."""

from types import SimpleNamespace

from pulumi.automation.errors import CommandError

from supernode import design as designing
from supernode import packaged, spec
from supernode.bringup import stragglers
from supernode.bringup.provision import events, state
from supernode.bringup.provision.command import explain
from supernode.records import DeviceOutput, Outputs

TEXT = (packaged.root() / "inventories" / "examples" / "aws-p5" / "environment.yml").read_text()
HOST = "urn:pulumi:aws-p5::supernode::supernode:cloud:CloudPool$supernode:cloud:CloudHost"


def test_what_a_rented_host_registers_comes_back_like_a_machine():
    told = {"slot": "burst-001", "address": "10.96.0.11", "instance": "i-1", "hostKeys": ["ssh-ed25519 A"]}
    rows = [
        {"urn": f"{HOST}::burst-001", "type": "supernode:cloud:CloudHost", "outputs": {**told, "status": "ready"}},
        {"urn": f"{HOST}::burst-002", "type": "supernode:cloud:CloudHost", "outputs": {}},
        {"urn": f"{HOST}$aws:ec2/instance:Instance::burst-001", "type": "aws:ec2/instance:Instance", "outputs": {}},
    ]
    outputs = state.read("aws-p5", {"aws-p5": {"version": 3, "deployment": {"resources": rows}}})
    assert set(outputs.devices) == {"burst-001", "burst-002"}
    found = outputs.devices["burst-001"]
    assert (found.kind, found.address, found.host_keys, found.state) == (
        "machine",
        "10.96.0.11",
        ("ssh-ed25519 A",),
        "ready",
    )
    assert outputs.devices["burst-002"].state == "failed"  # what registered nothing was not made


def test_an_instance_speaks_under_the_hosts_name_and_its_errors_name_it():
    assert events.is_ours("aws:ec2/instance:Instance")
    assert not events.is_ours("aws:ec2/launchTemplate:LaunchTemplate")
    said = SimpleNamespace(
        severity="error", urn=f"{HOST}$aws:ec2/launchTemplate:LaunchTemplate::burst-001", message="no such image"
    )
    assert events.error_of(SimpleNamespace(diagnostic_event=said)) == "burst-001: no such image"


def test_a_plugin_that_is_not_there_is_named_with_how_to_get_it():
    text = "error: no resource plugin 'pulumi-resource-aws' found in the workspace at version v7.0.0 or on your $PATH"
    error = explain(CommandError(text), "aws-p5", "aws-p5", {}, [])
    assert "plugin for aws is not installed" in str(error)
    assert "pulumi plugin install resource aws" in error.hint


def test_a_rented_host_that_is_late_is_reported_and_not_quarantined():
    slots = {"burst-001": {"state": "new"}}
    machines = "schema: 1\nslots:\n" + "".join(f"  {slot}: {{state: {row['state']}}}\n" for slot, row in slots.items())
    design = designing.build(spec.read({"environment": TEXT, "machines": machines}))
    late = DeviceOutput("burst-001", "machine", "burst-001", "10.96.0.11", "late", "enrol", "no key")
    outputs = Outputs(design.name, design.digest, {"burst-001": late})
    assert stragglers.to_quarantine(design, outputs) == ([], "")
    found = next(row for row in stragglers.findings(design, outputs) if row.place == "burst-001")
    assert (found.verdict, "late in enrol: no key" in found.cause) == ("fail", True)
