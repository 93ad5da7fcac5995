"""Pools whose servers have no port for the fabric: they stand, boot and are configured, and no cable ends at them."""

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from supernode import design, spec
from supernode.bringup import stragglers
from supernode.design import allocating, expectations, export, hostvars, roles
from supernode.errors import Refusal
from supernode.plan import resources
from supernode.records import DeviceOutput, Outputs
from supernode.spec import Inputs, Machines, services
from supernode.verify import expected, gates
from supernode.verify.facts import device
from supernode.verify.facts.device import Facts

from .sites import ROOT, environment, large

HEAD = "  - {name: head, kind: lab-head, count: 2, spares: 1, racks: [x1]}"
SIZES = st.fixed_dictionaries({"count": st.integers(1, 40), "spares": st.integers(0, 3), "heads": st.integers(0, 4)})


def built(machines=None, pools=(HEAD,), **wishes):
    texts = {"environment": large(pools=pools, **wishes)}
    if machines:
        texts["machines"] = yaml.safe_dump({"schema": 1, "slots": machines})
    return design.build(spec.read(texts))


def fabric(found):
    """All of the fabric: what must be the same with and without a service pool."""
    wires = [(w.cable, w.a_device, w.a_port, w.b_device, w.b_port, w.a_address, w.length) for w in found.links]
    return wires, [(s.name, s.slot, s.asn, s.loopback) for s in found.switches], found.oversubscription()


def test_a_service_host_has_a_place_and_addresses_and_no_cable():
    found = built()
    row = found.host("head-001")
    assert (row.slot, row.su, row.port, row.stack) == ("x1u01", 0, 0, "site")
    assert (row.management.ip, row.bmc) not in {(h.management.ip, h.bmc) for h in found.hosts if h.name != row.name}
    assert list(found.links_of("head-001")) == []
    assert [h.state for h in found.hosts if h.pool == "head"] == ["active", "active", "spare"]
    assert "head-001" in "".join(export.bmc_csv(found))
    assert "head" not in "".join(export.cabling_csv(found))


@given(st.lists(SIZES, min_size=1, max_size=4))
@settings(max_examples=12, deadline=None)
def test_the_fabric_is_the_same_with_and_without_service_pools(steps):
    """They may come, grow and go: no number of the fabric moves."""
    alone = beside = None
    for step in steps:
        sizes = {"count": step["count"], "spares": step["spares"], "unit": 16}
        pools = [f"  - {{name: head, kind: lab-head, count: {step['heads']}, racks: [x1]}}"] if step["heads"] else []
        bare, more = environment(**sizes), environment(**sizes, pools=pools)
        alone, beside = allocating.extend(bare, alone), allocating.extend(more, beside)
        with_, without = (design.build(Inputs(e, a, Machines())) for e, a in ((more, beside), (bare, alone)))
        assert fabric(with_) == fabric(without)
        heads = [h for h in with_.hosts if h.pool == "head"]
        assert len(heads) == step["heads"]
        assert {h.stack for h in heads} <= {"site"}
        addresses = [d.management for d in (*with_.hosts, *with_.switches)]
        assert len(set(addresses)) == len(addresses)


def test_a_pool_that_leaves_the_fabric_gets_its_numbers_anew():
    more = "  - {name: extra, kind: KIND, count: 2, racks: [x1]}"
    before = allocating.extend(environment(pools=[more.replace("KIND", "lab-gpu8")]), None)
    after = allocating.extend(environment(pools=[more.replace("KIND", "lab-head")]), before)
    assert [(b.unit, b.port, b.cable) for b in after.hosts if b.pool == "extra"] == [(0, 0, 0)]


def test_stacks_of_a_full_one_go_on_beside_the_spines():
    found = built(limit=10, count=8, pools=("  - {name: head, kind: lab-head, count: 12, racks: [x1]}",))
    assert {h.stack for h in found.hosts if h.pool == "head"} == {"site", "site-fabric2"}
    assert max(found.stack_sizes().values()) <= 10


def test_roles_that_need_rails_leave_it_out():
    found = built()
    names = {role.name for role in roles.of(found, found.host("head-001"))}
    assert "rails" not in names
    assert {"base_system", "time_synced"} <= names
    assert not [key for key in hostvars.build(found, "head-001") if key.startswith("rails_")]


def test_nothing_is_asked_or_judged_of_rails_that_are_not_there():
    found = built()
    wanted = expected.read(expectations.build(found))
    asked = device.request(wanted, "head-001")
    assert not [key for key in asked["commands"] if key.startswith("ping")]
    assert asked["wait_lldp"] == 0
    judged = {row.check for row in gates.judge(wanted, Facts({})) if row.place.partition(":")[0] == "head-001"}
    assert judged >= {"reach", "identity", "time"}
    assert not judged & {"rails", "mtu", "rate", "cabling"}


def test_settings_of_the_fabrics_machines_are_not_put_on_others():
    found = design.build(spec.read({"environment": (ROOT / "inventories/lab/environment.yml").read_text()}))
    wanted = found.environment.machines.bios
    assert found.bios(found.host("gpu-001")) == wanted
    assert found.bios(found.host("head-001")) == {"SriovEnable": "Enabled"}
    assert set(wanted) == {"SriovEnable", "WorkloadProfile"}


def test_a_quarantined_one_needs_no_fence_and_a_spare_takes_over():
    slots = {"x1u01": {"state": "quarantined"}, "x1u03": {"state": "in_service"}, "x1u05": {"state": "spare"}}
    found = built(slots)
    ready = {h.name: DeviceOutput(h.name, "machine", h.slot, "") for h in found.hosts if h.state != "quarantined"}
    outputs = Outputs("site", found.digest, ready)
    assert stragglers.unfenced(found, outputs) == {}
    assert [(t.spare.name, t.slot) for t in stragglers.takeovers(found, outputs)] == [("head-003", "x1u01")]
    facts = type("Facts", (), {"isos": {h.name: "0" * 64 for h in found.hosts}, "image": "", "ca": ""})()
    waits = resources.stack(found, "site", facts, "file:key").after
    assert not waits.get("head-002")


@pytest.mark.parametrize(
    ("first", "second", "spare", "chosen"),
    [
        ("in_service", "in_service", "spare", "head-001"),
        ("quarantined", "in_service", "spare", "head-002"),
        ("quarantined", "quarantined", "in_service", "head-003"),
        ("quarantined", "quarantined", "spare", "head-001"),
    ],
    ids=["first", "next", "took over", "none is left"],
)
def test_a_daemon_runs_on_the_first_active_host(first, second, spare, chosen):
    states = dict(zip(("x1u01", "x1u03", "x1u05"), (first, second, spare), strict=True))
    found = built({slot: {"state": state} for slot, state in states.items()})
    assert found.service_host("head").name == chosen


def test_a_section_that_names_no_pool_is_told_which_there_are():
    env = environment(pools=[HEAD])
    assert list(services.pool_named(env, ("watch", "on"), "gpu")) == []
    (problem,) = services.pool_named(env, ("watch", "on"), "heads")
    assert (problem.what, problem.hint) == ("there is no pool heads to run on", "pools: gpu, head")


def test_a_fabric_of_nobody_is_refused():
    text = large(count=1, spares=0).replace("lab-gpu8", "lab-head")
    with pytest.raises(Refusal) as refused:
        spec.read({"environment": text})
    assert [p.path for p in refused.value.problems] == [("pools",)]
