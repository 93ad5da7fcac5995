"""One port, written in the ways of the field."""

import functools

import pytest

from supernode import design, packaged, spec
from supernode.verify.sheets.names import Names


@functools.cache
def names(name):
    text = (packaged.root() / "inventories" / "examples" / name / "environment.yml").read_text()
    return Names(design.build(spec.read({"environment": text})))


# MLNX-OS writes IB1/<port> and, of a twin cage, IB1/<cage>/<port>; NVOS sw<cage>p<port>; the P2P sheet <cage>/<port>.
@pytest.mark.parametrize("text", ["p3", "P3", " 3 ", "IB1/3", "IB1/2/1", "2/1", "sw2p1", "port 3"])
def test_a_port_of_a_quantum_switch(text):
    assert names("superpod-h100-1su-ib").port("su01-leaf0", text) == "p3"


@pytest.mark.parametrize("text", ["swp1s0", "SWP1S0", "1/1", "Ethernet1/1", "eth 1/1", "swp1 s0"])
def test_a_port_of_a_divided_socket(text):
    assert names("superpod-h100-1su").port("su01-leaf0", text) == "swp1s0"


@pytest.mark.parametrize("text", ["rail3", "Rail 3", "4", "mlx5_5", "mlx5_5/P1", "MLX5-5/1"])
def test_a_port_of_a_host(text):
    """DGX H100's rails are mlx5_0, 3, 4, 5, 6, 9, 10, 11 (its user guide)."""
    assert names("superpod-h100-1su-ib").port("gpu-001", text) == "rail3"


@pytest.mark.parametrize("text", ["p65", "IB1/33/1", "0", "", "rail3", "swp1s0"])
def test_what_a_quantum_switch_has_not(text):
    assert names("superpod-h100-1su-ib").port("su01-leaf0", text) is None


@pytest.mark.parametrize(
    ("text", "device"),
    [("GPU-001", "gpu-001"), ("gpu-001.cluster.example", "gpu-001"), ("r01u01", "gpu-001"), ("gpu-999", None)],
)
def test_a_device(text, device):
    assert names("superpod-h100-1su-ib").device(text) == device
