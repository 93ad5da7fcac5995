"""Every kind with ports makes a whole design, with what is known of it and without what is not."""

import json

import pytest

from supernode import catalog, design, spec
from supernode.design import artefacts, expectations, hostvars, optics, physical, runs
from supernode.units import format_rate

from .sites import large

SERVERS = [name for name in catalog.server_kinds() if catalog.server(name).on_fabric]
SWITCHES = [name for name in catalog.switch_kinds() if not name.startswith("lab-")]


def site(server, switch):
    """Four servers and two spines, at the rate that both ends carry."""
    kind, leaf = catalog.server(server), catalog.switch(switch)
    rate = format_rate(min(kind.nics[0].rate, leaf.rate))
    text = large(count=4, spares=0, uplink=rate, racks=4).replace("rail: 10 Mbit/s", f"rail: {rate}")
    text = text.replace("kind: lab-gpu8,", f"kind: {server}, disk: /dev/disk/by-id/nvme-X,")
    text = text.replace("lab-leaf", switch).replace("lab-spine", switch)
    if leaf.link == "infiniband":
        text = text.replace("roce-v2", "infiniband")
        text = "\n".join(line for line in text.splitlines() if "loopbacks" not in line and "rails:" not in line)
    return design.build(spec.read({"environment": text}))


@pytest.mark.parametrize("server", SERVERS)
def test_every_server_stands_on_some_fabric(server):
    kind = catalog.server(server)
    found = site(server, {"lab-ib4": "lab-ib-leaf", "lab-gpu8": "lab-leaf"}.get(server, "sn5610"))
    host = found.hosts[0].name
    assert len(found.links_of(host)) == len(kind.nics)
    assert hostvars.build(found, host)
    assert host in expectations.build(found).hosts
    assert physical.cables(optics.fit_all(runs.runs(found))) > 0
    assert all(list(row.lines(found)) for row in artefacts.BUYING)


@pytest.mark.parametrize("switch", SWITCHES)
def test_every_switch_carries_some_servers(switch):
    found = site("dgx-h100", switch)
    ports = [(link.b_device, link.b_port) for link in found.links] + [
        (link.a_device, link.a_port) for link in found.links if link.kind == "uplink"
    ]
    assert len(set(ports)) == len(ports)
    assert list(physical.facts(found))


def test_a_rail_whose_address_no_source_says_is_named_by_nobody():
    found = site("dgx-b200", "sn5610")
    (named,) = [file for file in found.files("gpu-001") if file.path.endswith("rails.json")]
    assert json.loads(named.content) == {"rails": []}
    (known,) = [file for file in site("dgx-h100", "sn5610").files("gpu-001") if file.path.endswith("rails.json")]
    assert len(json.loads(known.content)["rails"]) == 8
