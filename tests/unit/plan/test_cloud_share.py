"""The cloud share of a stack, what a change of it means, and what it would cost."""

import json
from dataclasses import dataclass, replace
from decimal import Decimal

import pytest
import yaml

from supernode import catalog, packaged, plan, spec
from supernode import design as designing
from supernode.catalog.cloud import Price
from supernode.errors import CouldNotRun
from supernode.plan import cloud, cost
from supernode.records import DeviceOutput, Outputs

TEXT = (packaged.root() / "inventories" / "examples" / "aws-p5" / "environment.yml").read_text()


@dataclass(frozen=True)
class Trust:
    serve_ca: str = "PEM\n"
    ssh_public_key: str = "ssh-ed25519 AAAA supernode"


def built(edit=lambda text: text, slots=None):
    texts = {"environment": edit(TEXT)}
    if slots:
        texts["machines"] = yaml.safe_dump({"schema": 1, "slots": slots})
    return designing.build(spec.read(texts))


def test_the_share_is_plain_json_with_routes_to_what_hosts_need_and_to_no_controller():
    share = cloud.share(built(), "aws-p5", Trust())
    assert json.loads(json.dumps([share.network, share.pools]))
    assert share.network["routes"] == ["10.10.0.0/24"]
    assert share.network["letIn"] == [{"port": 22, "from": "10.10.0.0/24", "what": "SSH"}]
    pool = share.pools["burst"]
    assert list(pool["hosts"]) == ["burst-001", "burst-002"]
    assert pool["capacity"] == {"block": "cr-0123456789abcdef0"}
    assert len(pool["cards"]) == 32
    assert pool["hosts"]["burst-001"]["address"] == "10.96.0.11"
    assert pool["hosts"]["burst-001"]["inService"]


def test_servers_outside_the_management_network_get_a_route_of_their_own():
    found = built(
        lambda text: text.replace(
            "time_servers: [10.10.0.2,", "time_servers: [192.0.2.9, ntp.example, 169.254.169.123,"
        )
    )
    assert cloud.share(found, "aws-p5", Trust()).network["routes"] == ["10.10.0.0/24", "192.0.2.9/32"]


def test_the_watch_alone_may_read_metrics():
    watched = built(lambda text: text + "\nwatch: {pool: gpu, webhook: 'https://alerts.example/hook'}\n")
    doors = cloud.share(watched, "aws-p5", Trust()).network["letIn"]
    assert doors[1:] == [{"port": 9100, "from": "10.10.0.11/32", "what": "metrics"}]


def test_without_a_rented_pool_there_is_no_share_and_without_a_key_no_user_data():
    assert cloud.share(built(), "aws-p5-su2", Trust()) == cloud.CloudShare()
    with pytest.raises(CouldNotRun, match="no key and no CA"):
        cloud.share(built(), "aws-p5", Trust(serve_ca=""))


def test_user_data_that_is_too_large_is_refused_here():
    with pytest.raises(CouldNotRun, match="user-data has"):
        cloud.share(built(), "aws-p5", Trust(serve_ca="A" * cloud.USER_DATA_LIMIT))


def test_a_pool_is_estimated_from_the_catalogues_price():
    (found,) = cost.estimate(built())
    assert (found.per_hour, found.per_day, found.per_month) == (
        Decimal("110.08"),
        Decimal("2641.92"),
        Decimal("80358.40"),
    )
    (line,) = cost.lines((found,))
    assert "an estimate of USD 110.08 an hour, 2,641.92 a day, 80,358.40 a month" in line
    assert catalog.price("p5.48xlarge").source in line
    assert "2025-12-21" in line
    assert "has a price of its own" in line
    assert found.to_json()["per_day"] == 2641.92


@pytest.mark.parametrize("price", [None, Price("USD", "somewhere", catalog.price("p5.48xlarge").date, {})])
def test_an_unknown_price_is_said_and_is_not_zero(monkeypatch, price):
    monkeypatch.setattr(catalog, "price", lambda kind: price)
    (found,) = cost.estimate(built())
    assert "cost unknown; no price of p5.48xlarge in us-east-1" in cost.lines((found,))[0]
    assert found.to_json()["per_month"] is None


def test_metal_has_no_price():
    assert catalog.price("dgx-h100") is None
    assert [row.pool for row in cost.estimate(built())] == ["burst"]


def outputs_of(design, **state):
    device = DeviceOutput("burst-001", "machine", "burst-001", "10.96.0.11", **state)
    return Outputs(design.name, design.digest, {"burst-001": device})


def steps(design, last=None, outputs=None):
    return {step.device: step for step in plan.compare(design, last, outputs).steps if step.device.startswith("burst")}


def test_a_rented_host_needs_no_binding_and_is_created():
    found = steps(built())
    assert (found["burst-001"].kind, found["burst-001"].reason) == (
        "create",
        "a p5.48xlarge in us-east-1b, with 10.96.0.11",
    )


def test_one_that_is_there_and_unchanged_has_no_step_and_a_late_one_is_tried_again():
    design = built()
    last = plan.snapshot(design)
    assert "burst-001" not in steps(design, last, outputs_of(design))
    late = steps(design, last, outputs_of(design, state="late", phase="enrol", reason="no host key"))
    assert late["burst-001"].kind == "update"


@pytest.mark.parametrize(("state", "kind"), [("in_service", "refuse"), ("new", "replace")])
def test_what_would_make_another_instance_is_refused_while_it_serves(state, kind):
    was = built()
    now = built(
        lambda text: text.replace("root_gb", "ssh_from: 10.10.0.0/24\n  root_gb").replace(
            "/release/12/", "/release/13/"
        ),
        {"burst-001": {"state": state}},
    )
    found = steps(now, plan.snapshot(was), outputs_of(now))["burst-001"]
    assert (found.kind, "its image changed" in found.reason) == (kind, True)


def test_costs_are_in_the_plan_and_no_part_of_its_hash(monkeypatch):
    design = built()
    before = plan.compare(design, None, None)
    assert before.to_json()["costs"][0]["estimate"] is True
    price = catalog.price("p5.48xlarge")
    monkeypatch.setattr(catalog, "price", lambda kind: replace(price, per_hour={}))
    after = plan.compare(design, None, None)
    assert after.hash == before.hash
    assert after.costs != before.costs


def test_an_instance_that_leaves_the_design_ends():
    fewer = built(lambda text: text.replace("count: 2", "count: 1"))
    gone = steps(fewer, plan.snapshot(built()), outputs_of(fewer))["burst-002"]
    assert (gone.kind, gone.reason) == ("delete", "it has left the design; its instance ends")
