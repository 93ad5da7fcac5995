"""Numbers are given once: whatever an environment grows or shrinks to, what stays keeps all its numbers."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supernode import design
from supernode.design import allocating
from supernode.errors import Refusal
from supernode.spec import Inputs, Machines

from .sites import environment

SIZES = st.fixed_dictionaries(
    {
        "count": st.integers(1, 48),
        "spares": st.integers(0, 6),
        "spines": st.integers(1, 6),
        "limit": st.sampled_from([20, 40]),
        "unit": st.just(16),
    }
)


def grow(steps):
    """Yield the design after each step, each from the allocation that the step before left."""
    saved, limit = None, None
    for step in steps:
        limit = limit or step["limit"]
        env = environment(**{**step, "limit": limit})
        saved = allocating.extend(env, saved)
        yield design.build(Inputs(env, saved, Machines()))


def hosts(found):
    keys = ("slot", "su", "port", "stack", "bmc", "management")
    return {
        h.name: [getattr(h, key) for key in keys] + [link.cable for link in found.links_of(h.name)] for h in found.hosts
    }


def switches(found):
    keys = ("slot", "asn", "loopback", "management", "stack")
    return {s.name: [getattr(s, key) for key in keys] for s in found.switches}


def wires(found):
    return {link.cable: (link.a_device, link.a_port, link.b_device, link.b_port) for link in found.links}


@given(st.lists(SIZES, min_size=2, max_size=4))
@settings(max_examples=12, deadline=None)
def test_what_stays_keeps_all_its_numbers(steps):
    before = None
    for found in grow(steps):
        if before is not None:
            for table in (hosts, switches):
                old, new = table(before), table(found)
                assert {name: new[name] for name in old if name in new} == {
                    name: old[name] for name in old if name in new
                }
        before = found


@given(st.lists(SIZES, min_size=1, max_size=3))
@settings(max_examples=8, deadline=None)
def test_numbers_are_unique_and_the_wishes_are_met(steps):
    found = list(grow(steps))[-1]
    last = steps[-1]
    states = [host.state for host in found.hosts]
    assert (states.count("active"), states.count("spare")) == (last["count"], last["spares"])
    assert sum(s.tier == "spine" for s in found.switches) == last["spines"]
    devices = [*found.hosts, *found.switches]
    for key in ("name", "slot", "management"):
        values = [getattr(device, key) for device in devices]
        assert len(set(values)) == len(values)
    ends = [(w.a_device, w.a_port) for w in found.links] + [(w.b_device, w.b_port) for w in found.links]
    assert len(set(ends)) == len(ends)
    assert len({link.cable for link in found.links}) == len(found.links)
    addresses = [a for w in found.links for a in (w.a_address, w.b_address) if a]
    assert len(set(addresses)) == len(addresses)
    assert max(found.stack_sizes().values()) <= steps[0]["limit"]
    assert found.oversubscription() <= found.environment.fabric.oversubscription


@given(st.lists(SIZES, min_size=2, max_size=3))
@settings(max_examples=8, deadline=None)
def test_growth_moves_no_cable_while_spines_stay(steps):
    """More hosts only add cables; it takes more spines (fewer lanes to each) to move one."""
    steps = [{**step, "spines": 2, "count": 10 + 30 * at, "unit": None} for at, step in enumerate(steps)]
    before: dict = {}
    for found in grow(steps):
        after = wires(found)
        assert before.items() <= after.items()
        before = after


def test_an_allocation_that_fits_is_left_alone():
    env = environment(count=100, spines=4)
    saved = allocating.extend(env, None)
    assert allocating.extend(env, saved) == saved


def test_a_removed_number_is_given_again_only_when_it_is_the_lowest():
    small, big = environment(count=8, spares=0), environment(count=10, spares=0)
    first = allocating.extend(big, None)
    shrunk = allocating.extend(small, first)
    assert [b.count for b in shrunk.hosts] == [8]
    again = allocating.extend(big, shrunk)
    names = [host.name for host in design.build(Inputs(big, again, Machines())).hosts]
    assert names[-1] == "gpu-010"


def test_the_site_s_own_addresses_are_left_out():
    env = environment(count=60)
    found = design.build(Inputs(env, None, Machines()))
    taken = {str(host.management.ip) for host in found.hosts} | {str(switch.management.ip) for switch in found.switches}
    assert "10.0.0.40" not in taken
    assert "10.1.0.40" not in {str(host.bmc) for host in found.hosts}


def test_a_stale_allocation_is_refused_with_what_to_do():
    env = environment(count=9)
    saved = allocating.extend(environment(count=8), None)
    with pytest.raises(Refusal, match="pool gpu has 8 active hosts, 9 are wanted") as caught:
        design.build(Inputs(env, saved, Machines()))
    problem = caught.value.problems[0]
    assert problem.document == "allocation"
    assert "supernode allocate site" in problem.hint


def test_without_an_allocation_the_numbers_are_computed_and_not_saved():
    found = design.build(Inputs(environment(), None, Machines()))
    assert not found.allocation_saved
    assert design.build(Inputs(environment(), found.allocation, Machines())).allocation_saved


def test_more_spines_take_lanes_from_the_old_ones():
    few = environment(count=60, spines=1)
    many = environment(count=60, spines=4)
    before = design.build(Inputs(few, allocating.extend(few, None), Machines()))
    after = design.build(Inputs(many, allocating.extend(many, before.allocation), Machines()))
    assert {sum(w.kind == "uplink" for w in after.links_of(f"spine{n:02d}")) for n in range(1, 5)} == {8}
    old, new = wires(before), wires(after)
    assert {c: new[c] for c in old if c in new} == {c: old[c] for c in old if c in new}
    assert len(set(old) - set(new)) == 8 * (4 - 1)  # three of four lanes on each of eight leaves


def test_another_pool_shares_units_and_moves_nothing():
    pool = "  - {name: big, kind: lab-gpu8, count: 3, racks: [x1]}"
    one, two = environment(count=10), environment(count=10, pools=[pool])
    before = design.build(Inputs(one, allocating.extend(one, None), Machines()))
    after = design.build(Inputs(two, allocating.extend(two, before.allocation), Machines()))
    assert hosts(before).items() <= hosts(after).items()
    assert [host.name for host in after.hosts][-3:] == ["big-001", "big-002", "big-003"]
    assert {host.su for host in after.hosts} == {1}


def test_a_limit_of_five_cuts_the_lab_into_more_than_three_stacks_and_growth_moves_nothing():
    small, big = environment(limit=5), environment(limit=5, count=70, spines=4)
    before = design.build(Inputs(small, allocating.extend(small, None), Machines()))
    after = design.build(Inputs(big, allocating.extend(big, before.allocation), Machines()))
    assert before.stacks()[:2] == ("site", "site-su1")
    assert len(before.stacks()) > 3
    assert max(after.stack_sizes().values()) <= 5
    stack = {d.name: d.stack for d in (*before.hosts, *before.switches)}
    assert stack.items() <= {d.name: d.stack for d in (*after.hosts, *after.switches)}.items()
    assert any(name.startswith("site-su2") for name in after.stacks())


def test_the_first_unit_lives_with_the_spines_where_both_fit():
    found = design.build(Inputs(environment(count=130), None, Machines()))
    assert found.stacks() == ("site", "site-su2", "site-su3")
    assert {s.stack for s in found.switches if s.tier == "spine" or s.su == 1} == {"site"}


def test_a_declared_unit_gets_the_uplinks_of_a_full_one():
    full = design.build(Inputs(environment(count=2, unit=32), None, Machines()))
    found = design.build(Inputs(environment(count=2), None, Machines()))
    lanes = [sum(w.kind == "uplink" for w in d.links_of("su01-leaf0")) for d in (full, found)]
    assert lanes == [2, 2]
    tight = environment(count=2, unit=48, uplink="10 Mbit/s")
    assert sum(w.kind == "uplink" for w in design.build(Inputs(tight, None, Machines())).links_of("su01-leaf0")) == 12


def test_a_host_that_becomes_a_spare_keeps_its_numbers():
    first, second = environment(count=9, spares=0), environment(count=7, spares=2)
    before = design.build(Inputs(first, allocating.extend(first, None), Machines()))
    after = design.build(Inputs(second, allocating.extend(second, before.allocation), Machines()))
    assert hosts(after) == hosts(before)
    assert [host.name for host in after.hosts if host.state == "spare"] == ["gpu-008", "gpu-009"]
    back = design.build(Inputs(first, allocating.extend(first, after.allocation), Machines()))
    assert hosts(back) == hosts(before)
    assert {host.state for host in back.hosts} == {"active"}
