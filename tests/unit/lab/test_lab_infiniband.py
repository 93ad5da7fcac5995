"""An InfiniBand lab: what it makes of the exported netlist, what a server gets of it, and what faults do to it."""

import pytest

from supernode import design, packaged, spec
from supernode.design import artefacts as sheets
from supernode.errors import CouldNotRun
from supernode.lab import artefacts, capacity, faults, infiniband, wiring

FOLDER = packaged.root() / "inventories" / "lab-ib"


@pytest.fixture
def exported(tmp_path):
    texts = {name: (FOLDER / f"{name}.yml").read_text() for name in ("environment", "allocation")}
    found, folder = design.build(spec.read(texts)), tmp_path / "lab-ib" / "artefacts"
    folder.mkdir(parents=True)
    tables = {row.name: row.lines(found) for row in sheets.of(found, sheets.SHEETS)} | {"authorized_keys": iter(())}
    for name, lines in tables.items():
        (folder / name).write_text("".join(lines))
    return artefacts.read(folder)


@pytest.fixture
def plant(exported, tmp_path, monkeypatch):
    made = infiniband.SubnetPlant(exported, tmp_path / "subnet")
    made.told = []
    monkeypatch.setattr(made, "_tell", made.told.append)
    monkeypatch.setattr(made, "_allow", lambda device, port, widths: made.told.append((device, port, widths)))
    return made


def test_the_kernel_has_no_cable_no_switch_and_no_port_of_it(exported):
    commands = "\n".join(wiring.commands("lab-ib", exported))
    assert "su01-leaf0" not in commands
    assert "rail" not in commands
    assert "gpu-001" in commands
    assert wiring.spaces(exported) == ("gpu-001", "gpu-002", "gpu-003", "gpu-004", wiring.UNPLUGGED)
    assert capacity.need(exported.wires).flows == 0
    assert len(exported.cables) == 32


def test_a_netlist_that_changes_is_another_lab(exported, tmp_path):
    path = tmp_path / "lab-ib" / "artefacts" / "fabric.net"
    path.write_text(path.read_text().replace("4xHDR", "4xEDR"))
    assert artefacts.read(path.parent).digest != exported.digest


def test_a_server_without_power_has_no_adapter_in_the_subnet(plant):
    plant.power("gpu-002", on=False)
    assert plant.told == [f'Unlink "gpu-002 ibsim{rail}"[1]' for rail in range(4)]
    plant.told.clear()
    plant.power("gpu-002", on=True)
    assert [line for line in plant.told if line.startswith("Link")] == [
        f'Link "gpu-002 ibsim{rail}"[1] "su01-leaf{rail}"[2]' for rail in range(4)
    ]


def test_exchanged_cables_stay_so_over_a_power_cut_until_they_are_put_back(plant):
    plant.exchange("C00001", "gpu-001:rail1")
    assert 'Link "gpu-001 ibsim0"[1] "su01-leaf1"[1]' in plant.told
    plant.power("gpu-001", on=False)
    plant.told.clear()
    plant.power("gpu-001", on=True)
    assert 'Link "gpu-001 ibsim1"[1] "su01-leaf0"[1]' in plant.told
    plant.exchange("C00001", "C00002")
    assert 'Link "gpu-001 ibsim0"[1] "su01-leaf0"[1]' in plant.told


def test_half_width_is_set_at_the_switch_and_again_after_every_start(plant):
    plant.halve("C00001", half=True)
    assert plant.told[-1] == ("su01-leaf0", "p1", infiniband.HALF_WIDTH)
    plant.power("gpu-001", on=False)
    plant.told.clear()
    plant.power("gpu-001", on=True)
    port = ("su01-leaf0", "p1")
    link = 'Link "gpu-001 ibsim0"[1] "su01-leaf0"[1]'
    steps = [row for row in plant.told if row == link or row[:2] == port]
    assert steps == [(*port, infiniband.ALL_WIDTHS), link, (*port, infiniband.HALF_WIDTH)]
    plant.halve("C00001", half=False)
    assert plant.told[-1] == ("su01-leaf0", "p1", infiniband.ALL_WIDTHS)


def test_a_pulled_uplink_is_down_until_it_is_plugged_in(plant):
    plant.pull("C00017")
    assert plant.told == ['Unlink "su01-leaf0"[9]']
    plant.plug("C00017")
    assert plant.told[-1] == 'Link "su01-leaf0"[9] "spine01"[1]'


def test_a_share_of_the_rate_is_no_fault_of_such_a_cable(plant):
    with pytest.raises(CouldNotRun, match="InfiniBand"):
        plant.slow("C00001", 0.25)
    assert faults.checked("half-width", ["C00001"], {}).targets == ("C00001",)


def test_a_server_gets_its_own_adapter_as_a_driver(plant, tmp_path, monkeypatch):
    libraries = tmp_path / "libraries"
    (libraries / "umad2sim").mkdir(parents=True)
    for name in infiniband.DRIVER:
        (libraries / name).write_bytes(b"\x7fELF")
    monkeypatch.setattr(infiniband, "LIBRARIES", libraries)
    binds = plant.binds("gpu-003")
    assert any(bind.endswith(":/etc/ld.so.preload") for bind in binds)
    text = (plant.folder / "gpu-003" / "environment").read_text()
    assert 'SIM_HOST="gpu-003 ibsim0"' in text
    assert 'IBSIM_SERVER_NAME="198.19.32.1"' in text
