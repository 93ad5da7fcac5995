"""What the lab is built from: read whole, or refused with what is wrong in it."""

import lab_sample
import pytest

from supernode.errors import CouldNotRun
from supernode.lab import artefacts


def read(tmp_path, **changes):
    return artefacts.read(lab_sample.write(tmp_path / "artefacts", **changes))


def test_all_tables_are_read(sample):
    assert [row.device for row in sample.servers] == ["gpu-001", "gpu-002"]
    assert len(sample.cables) == 6
    assert (sample.cables[0].a_port, sample.cables[0].b_device, sample.cables[0].rate) == ("rail0", "su01-leaf0", 10)
    assert str(sample.site.block) == "198.18.0.0/19"
    assert str(sample.site.gateway) == "198.18.0.1/23"


def test_the_digest_follows_every_file(tmp_path):
    same = read(tmp_path / "a").digest
    assert read(tmp_path / "b").digest == same
    assert read(tmp_path / "c", rate=11).digest != same
    assert read(tmp_path / "d", key="ssh-ed25519 AAAA other").digest != same


def test_a_slot_is_found_by_either_name(sample):
    assert sample.slot("gpu-002") == sample.slot("r01u09") == "r01u09"
    assert sample.slot("spine01") == "r03u03"
    with pytest.raises(CouldNotRun, match="is no device"):
        sample.slot("gpu-099")


def test_a_missing_file_is_named(tmp_path):
    folder = lab_sample.write(tmp_path / "artefacts")
    (folder / "bmc.csv").unlink()
    with pytest.raises(CouldNotRun, match=r"bmc\.csv: cannot be read"):
        artefacts.read(folder)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            [*lab_sample.cabling(), ("C00099", "rail", "gpu-009", "r", "rail0", "spine01", "r", "swp9", 10, 9000, 3)],
            "gpu-009",
        ),
        (
            [*lab_sample.cabling(), ("C00099", "rail", "gpu-001", "r", "rail0", "spine01", "r", "swp9", 10, 9000, 3)],
            "two cables end at gpu-001 rail0",
        ),
        ([("C00001", "rail", "gpu-001", "r", "rail0", "spine01", "r", "swp9", 0, 9000, 3)], "has no rate"),
    ],
)
def test_a_cable_that_cannot_be_is_refused(tmp_path, rows, said):
    with pytest.raises(CouldNotRun, match=said):
        read(tmp_path, cabling=lab_sample.table(lab_sample.COLUMNS, rows))


def test_a_table_of_other_columns_is_refused(tmp_path):
    with pytest.raises(CouldNotRun, match="is not a folder of artefacts"):
        read(tmp_path, bmc="slot,device\nr01u01,gpu-001\n")


def test_addresses_belong_to_one_block_and_are_given_once(tmp_path):
    twice = "slot,device,kind,management_address\nr03u01,su01-leaf0,lab-leaf,198.18.0.11/23\n"
    twice += "r03u02,su01-leaf1,lab-leaf,198.18.0.21/23\nr03u03,spine01,lab-leaf,198.18.77.1/23\n"
    with pytest.raises(CouldNotRun) as refused:
        read(tmp_path, switches=twice)
    assert "spine01 lies outside 198.18.0.0/19" in str(refused.value)
    assert "198.18.0.11 is given twice" in str(refused.value)


def test_a_site_outside_the_test_networks_is_refused(tmp_path):
    folder = lab_sample.write(tmp_path / "artefacts")
    site = (folder / "site.json").read_text().replace("198.18.", "10.0.")
    with pytest.raises(CouldNotRun, match=r"one /19 of 198\.18\.0\.0/15"):
        read(tmp_path, site=site)
