"""The AWS components, as they really send their inputs, against the schema that the SDK's own classes are.

The mutations show that the check sees: each key that is sent, at any depth, is misspelt once, and refused by name.
"""

import asyncio
import copy
import sys

import aws_schema
import pulumi
import pytest
import yaml
from aws_site import ENVIRONMENT, Trust
from pulumi.runtime import mocks

from supernode import design as designing
from supernode import spec
from supernode.components import cloud as components
from supernode.errors import CouldNotRun
from supernode.plan import cloud

TYPES = {
    "aws:ec2/vpc:Vpc",
    "aws:ec2/subnet:Subnet",
    "aws:ec2/vpnGatewayAttachment:VpnGatewayAttachment",
    "aws:ec2/routeTable:RouteTable",
    "aws:ec2/route:Route",
    "aws:ec2/routeTableAssociation:RouteTableAssociation",
    "aws:ec2/securityGroup:SecurityGroup",
    "aws:ec2/placementGroup:PlacementGroup",
    "aws:ec2/launchTemplate:LaunchTemplate",
    "aws:ec2/instance:Instance",
}


class Recorder(pulumi.runtime.Mocks):
    """Writes down what each resource was asked with; a template has a version, an instance an address."""

    def __init__(self):
        self.seen = {}

    def new_resource(self, args):
        self.seen[args.typ, args.name] = args.inputs
        return f"{args.name}-id", {
            **args.inputs,
            "latestVersion": 1,
            "privateIp": "10.96.0.11",
            "instanceState": "running",
        }

    def call(self, args):
        return {"value": "ami-0123456789abcdef0"}


def sent(edit=lambda text: text, slots=None):
    """Declare the example's pools under mocks; return the inputs of every resource of AWS by type and name."""
    texts = {"environment": edit(ENVIRONMENT), "machines": yaml.safe_dump({"schema": 1, "slots": slots or {}})}
    design = designing.build(spec.read(texts))
    recorder = Recorder()
    asyncio.set_event_loop(asyncio.new_event_loop())
    mocks.set_mocks(recorder, project="supernode", stack="aws-p5", preview=False)

    @pulumi.runtime.test
    def run():
        components.declare(cloud.share(design, "aws-p5", Trust()))

    run()
    return {key: inputs for key, inputs in recorder.seen.items() if key[0].startswith("aws:")}


@pytest.fixture(scope="module")
def inputs():
    return sent()


def nested(value, path=()):
    """Yield the path of every key at any depth; what lies in a map of tags is a name of ours, no property."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield (*path, key)
            if key != "tags":
                yield from nested(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from nested(item, (*path, index))


def holder(document, path):
    for part in path[:-1]:
        document = document[part]
    return document


def spelt(path):
    words = ""
    for part in path:
        words += f"[{part}]" if isinstance(part, int) else f".{part}"
    return words.lstrip(".")


def mutations(inputs):
    """Return each nested key of each type once, whichever resource and list entry sends it first."""
    found = {}
    for (kind, name), document in inputs.items():
        for path in nested(document):
            found.setdefault((kind, tuple(part for part in path if isinstance(part, str))), (kind, name, path))
    return list(found.values())


def test_all_that_is_sent_is_what_the_types_take(inputs):
    assert {kind for kind, _ in inputs} == TYPES
    assert {key: problems for key, doc in inputs.items() if (problems := aws_schema.check(key[0], doc))} == {}


def test_each_misspelt_key_is_refused_by_name(inputs):
    rows = mutations(inputs)
    assert len(rows) > 70
    missed = []
    for kind, name, path in rows:
        document = copy.deepcopy(inputs[kind, name])
        wrong = f"{path[-1]}x"
        holder(document, path)[wrong] = holder(document, path).pop(path[-1])
        refused = [problem.path for problem in aws_schema.check(kind, document)]
        missed += [] if spelt((*path[:-1], wrong)) in refused else [(kind, spelt(path), refused)]
    assert missed == []


def test_each_value_of_another_type_is_refused_by_name(inputs):
    missed = []
    for kind, name, path in mutations(inputs):
        document = copy.deepcopy(inputs[kind, name])
        value = holder(document, path)[path[-1]]
        holder(document, path)[path[-1]] = {"strange": True} if isinstance(value, str | bool | int | float) else "text"
        refused = [problem.path for problem in aws_schema.check(kind, document)]
        missed += [] if any(found.startswith(spelt(path)) for found in refused) else [(kind, spelt(path), refused)]
    assert missed == []


def test_each_required_key_that_is_missing_is_refused_by_name(inputs):
    required = 0
    for kind, name, path in mutations(inputs):
        document = copy.deepcopy(inputs[kind, name])
        del holder(document, path)[path[-1]]
        found = [problem.path for problem in aws_schema.check(kind, document)]
        assert found in ([], [spelt(path)])
        required += bool(found)
    assert required >= 10


def test_argument_classes_and_typed_dicts_are_of_one_mind(inputs):
    """The SDK says the same twice; were one of them misread here, they would differ."""
    from pulumi_aws.ec2 import _inputs

    names = [name.removesuffix("Dict") for name in dir(_inputs) if name.endswith("ArgsDict")]
    used = [name for name in names if name.startswith(("LaunchTemplate", "Instance", "SecurityGroup"))]
    assert len(used) > 50
    for name in used:
        cls, typed = getattr(_inputs, name), getattr(_inputs, f"{name}Dict")
        known = aws_schema.properties(cls)
        wire = aws_schema.sdk.input_type_py_to_pulumi_names(cls)
        assert {wire[key] for key in typed.__annotations__} == set(known), name
        assert {wire[key] for key in typed.__required_keys__} == {key for key, (_, must) in known.items() if must}, name


def test_a_host_has_an_interface_on_each_card_and_its_address_on_the_first(inputs):
    template = inputs["aws:ec2/launchTemplate:LaunchTemplate", "burst-002"]
    cards = template["networkInterfaces"]
    assert [card["networkCardIndex"] for card in cards] == list(range(32))
    assert (cards[0]["interfaceType"], cards[0]["deviceIndex"], cards[0]["privateIpAddress"]) == (
        "efa",
        0,
        "10.96.0.12",
    )
    assert {(c["interfaceType"], c["deviceIndex"], "privateIpAddress" in c) for c in cards[1:]} == {
        ("efa-only", 1, False)
    }
    assert template["metadataOptions"]["httpTokens"] == "required"
    assert template["instanceMarketOptions"] == {"marketType": "capacity-block"}
    assert inputs["aws:ec2/instance:Instance", "burst-002"]["rootBlockDevice"]["encrypted"] is True


def test_ssh_alone_is_let_in_and_hosts_do_all_among_themselves(inputs):
    group = inputs["aws:ec2/securityGroup:SecurityGroup", "hosts"]
    among, ssh = group["ingress"]
    assert (among["self"], among["protocol"]) == (True, "-1")
    assert (ssh["fromPort"], ssh["toPort"], ssh["cidrBlocks"]) == (22, 22, ["10.10.0.0/24"])
    assert group["egress"][0]["self"] is True


def test_on_demand_and_an_image_by_its_id_send_nothing_of_blocks():
    found = sent(
        lambda text: text.replace("  capacity: {block: cr-0123456789abcdef0}\n", "").replace(
            "{ssm: /aws/service/debian/release/12/latest/amd64}", "{ami: ami-00000000000000001}"
        )
    )
    template = found["aws:ec2/launchTemplate:LaunchTemplate", "burst-001"]
    assert template["imageId"] == "ami-00000000000000001"
    assert not {"instanceMarketOptions", "capacityReservationSpecification"} & set(template)
    assert aws_schema.check("aws:ec2/launchTemplate:LaunchTemplate", template) == []


@pytest.mark.parametrize(
    ("state", "key", "status", "phase"),
    [
        ("running", "ssh-ed25519 A", "ready", ""),
        ("running", "", "late", "enrol"),
        ("stopped", "ssh-ed25519 A", "late", "boot"),
        ("pending", "", "late", "boot"),
    ],
)
def test_a_host_is_ready_when_it_runs_and_its_key_is_known(state, key, status, phase):
    args = components.CloudHostArgs("burst-001", "burst-001", "10.96.0.11", "", key, False)
    found = components.standing(args, state)
    assert (found["status"], found["phase"]) == (status, phase)
    assert bool(found["reason"]) == (status == "late")


def test_without_the_sdk_the_error_says_what_to_install(monkeypatch):
    design = designing.build(spec.read({"environment": ENVIRONMENT}))
    monkeypatch.delitem(sys.modules, "supernode.components.aws.pool", raising=False)
    monkeypatch.setitem(sys.modules, "pulumi_aws", None)
    with pytest.raises(CouldNotRun, match="needs the Python package pulumi_aws") as error:
        components.declare(cloud.share(design, "aws-p5", Trust()))
    assert "supernode[aws]" in error.value.hint


def test_without_a_rented_pool_no_sdk_is_loaded(monkeypatch):
    monkeypatch.setitem(sys.modules, "pulumi_aws", None)
    components.declare(cloud.CloudShare())
