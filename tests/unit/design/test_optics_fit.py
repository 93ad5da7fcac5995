"""Which product joins two cages: the cheapest that reaches, breakouts counted as what they are, else a refusal."""

import numpy as np
import pytest

from supernode import catalog, design, spec
from supernode.design import optics, physical, runs
from supernode.units import parse_rate

from .sites import ROOT


def run(a, b, rate, links, length=2.0):
    """Links between servers or switches of two kinds: rows of (cage at a, cage at b), and one length or one each."""
    plugs = [
        runs.server_plug(catalog.server(kind))
        if kind in catalog.server_kinds()
        else runs.switch_plug(catalog.switch(kind))
        for kind in (a, b)
    ]
    cages = np.array(links, np.int64)
    racks = np.zeros(len(links), np.int64)
    return runs.Run(
        tier="test",
        path=("fabric", "rates", "rail"),
        rate=parse_rate(rate),
        link=catalog.switch(b).link,
        a=plugs[0],
        b=plugs[1],
        a_cage=cages[:, 0],
        b_cage=cages[:, 1],
        a_rack=racks,
        b_rack=racks,
        length_m=np.full(len(links), length) if np.isscalar(length) else np.array(length),
        cable=np.arange(len(links)),
        name=lambda index: f"C{index:05d}",
    )


def bought(fit):
    """Everything that is bought, by product and length."""
    found = {}
    for product, length, count in fit.parts():
        found[product.name, length] = found.get((product.name, length), 0) + count
    return {key: count for key, count in found.items() if count}


def example(name):
    folder = ROOT / "inventories/examples" / name
    return design.build(spec.read({path.stem: path.read_text() for path in folder.glob("*.yml")}))


def test_two_ports_of_one_cage_are_one_cable():
    fit = optics.fit(run("qm9700", "qm9700", "400 Gbit/s", [(0, 0), (0, 0)]))
    assert bought(fit) == {("MCP4Y10-N", 2.0): 1}
    assert fit.cables == 1


@pytest.mark.parametrize(
    ("length", "sold"),
    [(0.4, ("MCP4Y10-N", 0.5)), (2.0, ("MCP4Y10-N", 2.0)), (2.1, ("MCA4J80-N", 3.0)), (5, ("MCA4J80-N", 5.0))],
)
def test_copper_is_passive_as_far_as_that_reaches(length, sold):
    assert bought(optics.fit(run("qm9700", "qm9700", "400 Gbit/s", [(0, 0), (0, 0)], length))) == {sold: 1}


@pytest.mark.parametrize(
    ("length", "module", "fibre"),
    [
        (5.1, "MMA4Z00-NS", "MFP7E10-N"),
        (50, "MMA4Z00-NS", "MFP7E10-N"),
        (70, "MMS4X00-NS", "MFP7E30-N"),
        (300, "MMS4X00-NM", "OS2 trunk"),
        (1500, "MMS4X50-NM", "OS2 trunk"),
    ],
)
def test_beyond_copper_the_cheapest_light_that_reaches(length, module, fibre):
    fit = optics.fit(run("qm9700", "qm9700", "400 Gbit/s", [(0, 0), (0, 0)], length))
    assert bought(fit) == {(fibre, float(length)): 2, (module, 0.0): 2}
    assert fit.cables == 2


def test_a_cage_of_two_ports_leads_to_two_hosts_with_one_split_cable():
    fit = optics.fit(run("gb200-tray", "qm9700", "400 Gbit/s", [(0, 7), (1, 7), (2, 8), (3, 8)]))
    assert bought(fit) == {("MCP7Y00-N", 2.0): 2}
    assert fit.cables == 2
    assert list(fit.assembly[:2]) == [fit.assembly[0]] * 2


def test_a_split_cable_is_as_long_as_its_longer_leg():
    fit = optics.fit(run("gb200-tray", "qm9700", "400 Gbit/s", [(0, 7), (1, 7)], [1.0, 2.5]))
    assert bought(fit) == {("MCP7Y00-N", 2.5): 1}


def test_xdr_is_split_as_ndr_is():
    fit = optics.fit(run("dgx-b300", "q3400-ra", "800 Gbit/s", [(0, 7), (1, 7)], 1.5))
    assert bought(fit) == {("MCA7K10-X", 2.0): 1}
    far = optics.fit(run("dgx-b300", "q3400-ra", "800 Gbit/s", [(0, 7), (1, 7)], 30))
    assert bought(far) == {
        ("MFP7E30-N", 30.0): 2,
        ("MMS4A20", 0.0): 2,
        ("MMS4A00", 0.0): 1,
    }


def test_cages_that_cross_take_transceivers_however_near_they_are():
    """The two ports of a DGX's cage are two rails and end at two leaves: no cable with plugs is of that shape."""
    fit = optics.fit(run("dgx-h100", "qm9700", "400 Gbit/s", [(0, 10), (0, 11), (1, 10), (1, 11)], 1.0))
    assert bought(fit) == {("MFP7E10-N", 3.0): 4, ("MMA4Z00-NS-FLT", 0.0): 2, ("MMA4Z00-NS", 0.0): 2}


def test_a_quarter_of_a_cage_each_goes_over_splitters_of_fibre():
    """Four hosts of 200 Gbit/s at one cage: two ports of the transceiver, each divided by one fibre of two legs."""
    fit = optics.fit(run("rack64-node", "sn5610", "200 Gbit/s", [(n, 5) for n in range(4)], 20.0))
    assert bought(fit) == {("MFP7E20-N", 20.0): 2, ("MMA1Z00-NS400", 0.0): 4, ("MMA4Z00-NS", 0.0): 1}
    assert fit.cables == 2


def test_near_by_the_same_four_hosts_share_one_copper_cable():
    fit = optics.fit(run("rack64-node", "sn5610", "200 Gbit/s", [(n, 5) for n in range(4)]))
    assert bought(fit) == {("MCP7Y40-N", 2.0): 1}


def test_a_cable_of_thirty_metres_is_no_copper_and_a_longer_one_is_refused_by_name():
    near, far = (
        optics.fit(run("dgx-a100", "sn5600", "200 Gbit/s", [(0, 3), (1, 3)], length)) for length in (30.0, 35.0)
    )
    assert bought(near) == {("MFA7U10-H", 30.0): 1}
    assert not list(optics.too_long(near.run))
    (problem,) = optics.too_long(far.run)
    assert problem.path == ("fabric", "rates", "rail")
    assert problem.what == (
        "cable C00000 is 35 m long, and 1 more are too long; between a dgx-a100 and a sn5600 nothing carries "
        "200 Gbit/s further than 30 m (MFA7U10-H)"
    )


def test_what_no_source_says_is_said_and_counts_as_one_cable_a_link():
    fit = optics.fit(run("cloudmatrix-node", "sn5610", "400 Gbit/s", [(0, 0), (1, 0)]))
    assert fit.unknown == "no source says what cages a cloudmatrix-node has"
    assert (fit.cables, bought(fit), list(optics.too_long(fit.run))) == (2, {}, [])


def test_more_ports_than_any_product_has_are_no_refusal():
    fit = optics.fit(run("dgx-a100", "sn5600", "200 Gbit/s", [(n, 3) for n in range(4)], 10.0))
    assert fit.unknown == "no product is known for 200 Gbit/s between 1 ports of a dgx-a100's cage and 4 of a sn5600's"
    assert not list(optics.too_long(fit.run))


def test_a_superpod_has_one_twin_transceiver_for_two_of_its_cables():
    """31 systems with four cages of two ports each; 8 leaves, whose 31st port stands alone in its cage."""
    rails, uplinks = optics.fit_all(runs.runs(example("superpod-h100-1su-ib")))
    assert (len(rails.run), rails.cables) == (248, 248)
    modules = {product.name: count for product, length, count in rails.parts() if not length}
    assert modules == {"MMA4Z00-NS-FLT": 31 * 4, "MMA4Z00-NS": 8 * 16}
    assert (len(uplinks.run), uplinks.cables) == (256, 256)


def test_optics_csv_says_which_links_share_a_cable():
    fit = optics.fit(run("gb200-tray", "qm9700", "400 Gbit/s", [(0, 7), (1, 7), (2, 8)]))
    alone = optics.fit(run("cloudmatrix-node", "sn5610", "400 Gbit/s", [(0, 0)]))
    assert list(physical.optics_csv((fit, alone))) == [
        "cable,assembly,product,length_m,a_plug,b_plug\n",
        "C00000,K00001,MCP7Y00-N,2,MCP7Y00-N,MCP7Y00-N\n",
        "C00001,K00001,MCP7Y00-N,2,MCP7Y00-N,MCP7Y00-N\n",
        "C00002,K00002,MCP7Y00-N,2,MCP7Y00-N,MCP7Y00-N\n",
        "C00000,K00003,,,,\n",
    ]


def test_every_link_of_a_design_has_its_line_and_every_assembly_its_cable():
    found = example("superpod-h100-1su-ib")
    rows = list(physical.optics_sheet(found))[1:]
    assert [row[:6] for row in rows] == [link.cable for link in sorted(found.links, key=lambda link: link.kind)]
    assert len({row.split(",")[1] for row in rows}) == physical.cables(optics.fit_all(runs.runs(found))) == 504


def test_a_million_links_take_seconds():
    count = 1_000_000
    ends = np.arange(count)
    links = np.stack([ends, ends // 2], axis=1)
    lengths = np.tile([10.0, 20.0, 30.0, 40.0], count // 4)
    fit = optics.fit(run("gb200-tray", "qm9700", "400 Gbit/s", links, lengths))
    assert sum(count for product, length, count in fit.parts() if length) == count
