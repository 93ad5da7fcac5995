"""The AWS example with the real engine: what it would make, what comes back, and that a misspelt key stops it."""

import json
import os

import pytest
from aws_site import ENVIRONMENT, install
from echo_site import Site
from test_aws_components import TYPES, sent

from supernode.bringup import inventory
from supernode.errors import CouldNotRun

pytestmark = pytest.mark.engine
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBurst"


@pytest.fixture
def aws(tmp_path, monkeypatch):
    """The example's site, with the echo provider in AWS's place on PATH."""
    for name in ("PULUMI_BACKEND_URL", "PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE"):
        monkeypatch.delenv(name, raising=False)
    made = Site(tmp_path, "aws-p5")
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ECHO_WORLD", str(made.world))
    monkeypatch.setenv("PATH", f"{install(tmp_path / 'plugins')}{os.pathsep}{os.environ['PATH']}")
    return made


def asked(site):
    """Return, and forget, what AWS's provider was asked to check: inputs by type and name."""
    path = site.world / "aws.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    path.unlink()
    return {(row["type"], row["name"]): row["inputs"] for row in rows}


def keys(value):
    """Return the shape of a document: its keys at any depth, without its values."""
    if isinstance(value, dict):
        return {key: keys(item) for key, item in value.items() if key != "__defaults"}
    return [keys(item) for item in value] if isinstance(value, list) else ""


def test_the_example_is_previewed_made_enrolled_and_what_serves_is_kept(aws):
    design = aws.take(ENVIRONMENT)
    rows = aws.preview(design, refresh=False)
    made = {row.resource for row in rows if row.op == "create"}
    assert {"burst-001", "burst-002", "gpu-001", "spine01"} <= made
    assert {kind for kind, _ in asked(aws)} == TYPES

    outputs = aws.up(design)
    # What the mutations were made of is what the engine really carries.
    mocked = {name: keys(inputs) for name, inputs in sent().items()}
    assert {name: keys(inputs) for name, inputs in asked(aws).items()} == mocked
    burst = outputs.devices["burst-001"]
    assert (burst.kind, burst.slot, burst.address) == ("machine", "burst-001", "10.96.0.11")
    assert (burst.state, burst.phase) == ("late", "enrol")
    assert "host key" in burst.reason
    assert outputs.devices["gpu-001"].state == "ready"
    assert {event.host for event in aws.events} >= {"burst-001", "burst-002"}

    hosts = {"burst-001": KEY, "burst-002": KEY + "2"}
    enrolled = aws.bind({"burst-001": "in_service"}, hosts)
    outputs = aws.up(enrolled)
    assert outputs.devices["burst-001"].host_keys == (KEY,)
    assert {outputs.devices[name].state for name in hosts} == {"ready"}
    groups = inventory.build(enrolled, outputs, aws.root, aws.root / "key").groups
    assert groups["pool_burst"] == ("burst-001", "burst-002")
    assert {"burst-001", "gpu-001"} <= set(groups["role_base_system"])

    # Another image: who serves keeps the instance.
    aws.folder.write("environment", ENVIRONMENT.replace("/release/12/", "/release/13/"))
    rows = aws.preview(aws.bind({"burst-001": "in_service"}, hosts), refresh=False)
    assert [(row.op, row.resource) for row in rows] == [("update", "burst-002")]


def test_a_misspelt_nested_key_is_refused_by_name_before_anything_is_made(aws):
    design = aws.take(ENVIRONMENT)
    program = aws.project / "stacks" / "__main__.py"
    wrong = (
        'pulumi.CustomResource("aws:ec2/launchTemplate:LaunchTemplate", "wrong", '
        '{"networkInterfaces": [{"networkCardIndex": 0, "interfaceTyp": "efa"}]})'
    )
    program.write_text(f"{program.read_text()}\n{wrong}\n")
    with pytest.raises(CouldNotRun, match=r"networkInterfaces\[0\].interfaceTyp"):
        aws.preview(design, refresh=False)
