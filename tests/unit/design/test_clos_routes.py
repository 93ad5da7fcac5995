"""The routes that are expected of each switch, against BGP played by its own rules on the designed cables."""

from collections import Counter, defaultdict

import pytest

from supernode.design import expectations

from .clos_sites import site

SMALL = {"kind": "hpn7-node", "leaf": "sn5600", "spine": "sn5600", "rail": 200, "uplink": 800, "transport": "roce-v2"}


def played(found):
    """switch -> loopback -> cables: eBGP with multipath over paths of equal length, no path through one's own AS."""
    asn = {switch.name: switch.asn for switch in found.switches}
    cables = defaultdict(Counter)
    for link in found.links:
        if link.kind != "rail":
            cables[link.a_device][link.b_device] += 1
            cables[link.b_device][link.a_device] += 1
    fibs = defaultdict(dict)
    for origin in found.switches:
        # What a switch tells: one of its shortest paths, as the set of the AS numbers on it.
        best = {origin.name: (0, {frozenset({origin.asn})})}
        for length in range(1, 6):
            told = {name: paths for name, (n, paths) in best.items() if n == length - 1}
            for name in asn:
                heard = {
                    (peer, path | {asn[name]})
                    for peer in cables[name]
                    for path in told.get(peer, ())
                    if asn[name] not in path
                }
                if heard and name not in best:
                    best[name] = (length, {path for _, path in heard})
                    fibs[name][f"{origin.loopback}/32"] = sum(cables[name][peer] for peer in {p for p, _ in heard})
    return fibs


@pytest.mark.parametrize(
    "wishes",
    [
        {"hosts": 12, "unit": 4},
        {"hosts": 12, "unit": 8, "planes": 2},
        {"hosts": 36, "unit": 4},
        {"hosts": 40, "unit": 8, "tiers": 3, "spines": 1},
        {"hosts": 20, "unit": 8, "family": "rail-only"},
        {"hosts": 20, "unit": 2, "family": "fat-tree", "tiers": 3},
    ],
    ids=str,
)
def test_routes_are_those_of_the_protocol(wishes):
    found = site(**SMALL, **wishes)
    wanted = expectations.build(found).switches
    by_protocol = played(found)
    for name in found.switch_names:
        loopbacks = {prefix: width for prefix, width in wanted[name].fib.items() if prefix.endswith("/32")}
        assert loopbacks == by_protocol[name], name
