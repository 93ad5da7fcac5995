"""Fabrics of every family grow, shrink, gain planes, spines and a third tier: nothing that stays is renumbered."""

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st

from supernode import design, spec
from supernode.design import allocating
from supernode.design.columns import CORE, LEAF, SPINE
from supernode.errors import Refusal
from supernode.spec import Inputs, Machines, clos

from .clos_sites import text
from .test_allocation_growth import switches, wires

EDITS = st.fixed_dictionaries(
    {
        "hosts": st.integers(1, 60),
        "spares": st.integers(0, 3),
        "spines": st.sampled_from([None, None, 1, 2, 3, 4]),
        "tiers": st.sampled_from([None, None, 2, 3]),
        "planes": st.sampled_from([1, 1, 2]),
        "unit": st.sampled_from([8, 4, 4]),
    }
)
EXAMPLES = int(os.environ.get("SUPERNODE_EXAMPLES", "15"))
FAMILIES = ("rail-optimised", "rail-only", "fat-tree", "leaf-spine")


def environment(family, **edit):
    small = {"kind": "hpn7-node", "leaf": "sn5600", "spine": "sn5600", "rail": 200, "uplink": 800}
    wishes = {**small, **edit, "family": family, "transport": "roce-v2"}
    return spec.read({"environment": text(**wishes, switch_racks=4)}).environment


def unique(*columns):
    rows = np.stack([np.asarray(column, dtype=np.int64) for column in columns], axis=1)
    return len(np.unique(rows, axis=0)) == len(rows)


def sound(found):
    """No name, place, address, port or cable number twice, and no cable from one plane to another."""
    hosts, switches, links = found.columns.hosts, found.columns.switches, found.columns.links
    names = [switch.name for switch in found.switches]
    assert len(set(names)) == len(names)
    assert unique(np.concatenate([hosts["address"], switches["address"]]))
    assert unique(*(np.concatenate([hosts[key], switches[key]]) for key in ("rack", "unit")))
    assert unique(switches["place"])
    assert unique(links["cable"])
    down, up = links[links["tier"] == LEAF], links[links["tier"] != LEAF]
    assert unique(down["a"], down["a_port"], down["plane"])
    assert unique(down["b_address"])
    assert unique(up["a"], up["a_port"], up["tier"])
    ends = [(w.a_device, w.a_port) for w in found.links[:: max(1, len(links) // 99)]]
    ends += [(w.b_device, w.b_port) for w in found.links[:: max(1, len(links) // 99)]]
    assert len(set(ends)) == len(ends)
    assert unique(np.concatenate([down["b"], up["b"]]), np.concatenate([down["b_port"], up["b_port"]]))
    prefixes = [prefix for switch in found.switches if (prefix := found.announced(switch))]
    assert len(set(prefixes)) == len(prefixes)
    assert np.array_equal(switches["plane"][links["b"]], links["plane"])
    assert np.array_equal(switches["plane"][up["a"]], up["plane"])
    assert np.array_equal(switches["tier"][links["b"]], links["tier"])
    assert np.array_equal(switches["tier"][up["a"]] + 1, up["tier"])
    half = clos.half(found.environment)
    three = bool(np.any(up["tier"] == CORE))
    assert not three or (up["b_port"][up["tier"] == SPINE] < half).all()
    assert (up["a_port"][up["tier"] == CORE] >= half).all()


@pytest.mark.parametrize("family", FAMILIES)
@given(edits=st.lists(EDITS, min_size=2, max_size=4))
@settings(max_examples=EXAMPLES, deadline=None, phases=[Phase.generate], suppress_health_check=[HealthCheck.too_slow])
def test_nothing_that_stays_is_renumbered(family, edits):
    saved = before = None
    for edit in edits:
        try:
            env = environment(family, **edit)
            new = allocating.extend(env, saved)
        except Refusal as refusal:
            event("refused: " + ", ".join(sorted({str(p.path[:2]) for p in refusal.problems})))
            continue
        event("accepted")
        found = design.build(Inputs(env, new, Machines()))
        assert found.oversubscription() <= 1
        sound(found)
        if before is not None:
            for table in (hosts_of, switches):
                old, now = table(before), table(found)
                assert {name: now[name] for name in old if name in now} == {n: old[n] for n in old if n in now}
            _no_label_returns(before, found)
        saved, before = new, found


def hosts_of(found):
    """All numbers of each host, with the cables and addresses of its first plane: a further one adds cables."""
    links = found.columns.links
    first = links[(links["tier"] == LEAF) & (links["plane"] == 1)]
    cables = first[np.lexsort((first["a_port"], first["a"]))].reshape(len(found.hosts), -1)
    keys = ("slot", "su", "port", "stack", "bmc", "management")
    return {
        host.name: [getattr(host, key) for key in keys] + [rows["cable"].tolist(), rows["b_address"].tolist()]
        for host, rows in zip(found.hosts, cables, strict=True)
    }


def _no_label_returns(before, found):
    """A cable number that is on both sides is the same cable at its lower end, and never another device's."""

    def lower(design):
        links, hosts = design.columns.links, [host.name for host in design.hosts]
        names = [switch.name for switch in design.switches]
        rows = zip(links["cable"].tolist(), links["uplink"].tolist(), links["a"].tolist(), strict=True)
        return {cable: (names if uplink else hosts)[a] for cable, uplink, a in rows}

    old, new = lower(before), lower(found)
    assert all(old[cable] == new[cable] for cable in old.keys() & new.keys())


def test_one_more_plane_moves_no_cable():
    one = environment("rail-optimised", hosts=12, unit=4)
    two = environment("rail-optimised", hosts=12, unit=4, planes=2)
    first = design.build(Inputs(one, allocating.extend(one, None), Machines()))
    second = design.build(Inputs(two, allocating.extend(two, first.allocation), Machines()))
    assert wires(first).items() <= wires(second).items()
    assert len(second.links) == 2 * len(first.links)
    assert {link.plane for link in second.links if link.cable not in wires(first)} == {2}


def test_a_third_tier_keeps_the_spines_that_are_there():
    small = environment("rail-optimised", hosts=12, unit=4)
    large = environment("rail-optimised", hosts=36, unit=4)
    first = design.build(Inputs(small, allocating.extend(small, None), Machines()))
    second = design.build(Inputs(large, allocating.extend(large, first.allocation), Machines()))
    old, new = switches(first), switches(second)
    assert old.items() <= {name: row for name, row in new.items() if name in old}.items()
    assert {switch.pod for switch in first.switches} == {0}
    assert {switch.tier for switch in second.switches} == {"leaf", "spine", "core"}
    assert {s.asn for s in second.switches if s.tier == "core"} == {4_294_967_294}
    of_pods = {s.pod: s.asn for s in second.switches if s.tier == "spine"}
    assert len(set(of_pods.values())) == len(of_pods) > 1


def test_another_family_is_refused_with_its_reason():
    one = environment("rail-optimised", hosts=12, unit=4)
    for family in FAMILIES[1:]:
        other = environment(family, hosts=12, unit=4)
        with pytest.raises(Refusal, match="was given for another family"):
            allocating.extend(other, allocating.extend(one, None))
