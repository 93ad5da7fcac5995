"""What the catalogue says of a server's inside, held against itself."""

import re

import pytest

from supernode import catalog

KINDS = [kind for name in catalog.server_kinds() if (kind := catalog.server(name)).topology is not None]
ADDRESS = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-1][0-9a-f]\.[0-7]")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_device_hangs_below_one_switch_of_a_known_processor(kind):
    numbers = {cpu.numa for cpu in kind.topology.cpus}
    gpus = [gpu for switch in kind.topology.switches for gpu in switch.gpus]
    rails = [rail for switch in kind.topology.switches for rail in switch.rails]
    if kind.topology.library == "nccl":
        assert sorted(gpus) == list(range(kind.gpus))
        assert sorted(rails) == [nic.rail for nic in kind.nics]
    assert all(switch.numa in numbers for switch in kind.topology.switches)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_addresses_and_rdma_names_are_given_once(kind):
    # An accelerator with a network port of its own is one device on the bus.
    own = [address for address in kind.gpu_pci if address not in {nic.pci for nic in kind.nics}]
    addresses = [*own, *(nic.pci for nic in kind.nics)]
    assert len(kind.gpu_pci) == kind.gpus
    assert len(set(addresses)) == len(addresses)
    assert all(ADDRESS.fullmatch(address) for address in addresses)
    hcas = [nic.hca for nic in kind.nics if nic.hca]
    assert len(set(hcas)) == len(hcas)


def test_a_dgx_is_as_its_guide_says():
    kind = catalog.server("dgx-h100")
    assert {nic.hca: nic.pci for nic in kind.nics}["mlx5_9"] == "0000:c0:00.0"  # ibp192s0, of accelerator 5
    assert kind.gpu_pci[5] == "0000:c3:00.0"
