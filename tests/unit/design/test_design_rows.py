"""The Design as its readers see it."""

import json
import time

import jinja2
import pytest

from supernode import design, spec
from supernode.design import expectations, export, hostvars, render, roles, seed
from supernode.errors import Refusal

from .sites import LAB, lab, large

MACHINES = """schema: 1
slots:
  r01u01: {{state: {state}, run: {run}, identity: {{system_serial: S1, management_mac: "02:00:00:00:00:AA"}}}}
  r02u17: {{state: {spare}, identity: {{system_serial: S9}}}}
"""


def bound(state="new", run="r1", spare="spare"):
    return lab(machines=MACHINES.format(state=state, run=run, spare=spare))


def test_rows_index_slice_and_names_agree():
    found = lab()
    assert found.hosts[-1] == found.host("gpu-009") == found.hosts[8]
    assert [switch.name for switch in found.switches[:2]] == ["su01-leaf0", "su01-leaf1"]
    with pytest.raises(IndexError):
        found.links[len(found.links)]
    with pytest.raises(KeyError):
        found.host("su01-leaf0")


def test_the_links_of_a_device_are_all_that_name_it():
    found = lab()
    for device in ("gpu-004", "su01-leaf3", "spine02"):
        named = [link for link in found.links if device in (link.a_device, link.b_device)]
        assert list(found.links_of(device)) == named


@pytest.mark.parametrize(
    ("state", "seen"),
    [
        ("new", "active"),
        ("in_service", "active"),
        ("drained", "active"),
        ("spare", "spare"),
        ("quarantined", "quarantined"),
    ],
)
def test_a_bound_slot_says_what_its_host_is(state, seen):
    assert bound(state).host("gpu-001").state == seen


def test_a_spare_that_takes_over_is_active_in_its_own_slot():
    found = bound("quarantined", spare="in_service")
    assert (found.host("gpu-001").state, found.host("gpu-009").state) == ("quarantined", "active")


def test_a_quarantined_host_s_ports_are_shut_on_every_leaf():
    found = bound("quarantined")
    assert {link.a_device for link in found.links if link.shut} == {"gpu-001"}
    for rail in range(8):
        frr = found.switch_files(f"su01-leaf{rail}")[0].content
        block = frr[frr.index("interface swp1\n") : frr.index("interface swp2\n")]
        assert " shutdown\n" in block
        assert frr.count(" shutdown\n") == 1
    wanted = expectations.build(found)
    assert "gpu-001" not in wanted.hosts
    assert wanted.switches["su01-leaf0"].ports["swp1"].shut


def test_the_digest_follows_what_the_design_reads_and_nothing_else():
    same = {bound().digest, bound(run="r2").digest, bound(state="in_service").digest, bound(state="drained").digest}
    assert len(same) == 1
    others = {
        lab().digest,
        bound("quarantined").digest,
        lab(machines=MACHINES.format(state="new", run="r", spare="new")).digest,
    }
    assert len(same | others) == 4


def test_expectations_come_back_from_json():
    wanted = expectations.build(bound(), image="abc")
    again = expectations.Expectations.from_json(json.loads(json.dumps(wanted.to_json())))
    assert again == wanted
    assert (again.hosts["gpu-001"].serial, again.hosts["gpu-001"].image) == ("S1", "abc")


def test_each_role_gets_exactly_the_files_that_design_renders():
    found = lab()
    values = hostvars.build(found, "gpu-001")
    placed = {
        entry["path"] for role in roles.of(found, found.host("gpu-001")) for entry in values[f"{role.name}_files"]
    }
    assert placed == {file.path for file in found.files("gpu-001")}
    assert values["base_system_packages"] == ["chrony", "lldpd", "ethtool", "iputils-ping"]


def test_a_template_that_names_what_it_does_not_get_fails():
    with pytest.raises(jinja2.UndefinedError):
        render.text("frr/daemons.j2")


def test_rails_are_named_by_pci_address():
    files = {file.path: file.content for file in lab().files("gpu-002")}
    rails = json.loads(files["/etc/supernode/rails.json"])["rails"]
    assert rails[0] == {"name": "rail0", "pci": "0000:18:00.0"}
    assert "Address=198.18.8.131/31" in files["/etc/systemd/network/50-rail1.network"]


class Image:
    digest = "f" * 64


def test_the_seed_names_the_management_port_and_no_token():
    documents = seed.build(bound(), "gpu-001", Image(), "PEM", "ssh-ed25519 AAAA op\n")
    network = json.loads(documents["network-config"])
    assert network["ethernets"]["management"]["match"] == {"macaddress": "02:00:00:00:00:aa"}
    assert network["ethernets"]["management"]["addresses"] == ["198.18.0.11/23"]
    head, _, body = documents["user-data"].partition("\n")
    user_data = json.loads(body)
    assert head == "#cloud-config"
    assert user_data["users"][0]["ssh_authorized_keys"] == ["ssh-ed25519 AAAA op"]
    assert "token" not in body


def test_the_instance_id_follows_image_and_machine():
    one = seed.build(bound(), "gpu-001", Image(), "PEM", "key")["meta-data"]
    assert one == seed.build(bound(state="in_service", run="r7"), "gpu-001", Image(), "PEM", "key")["meta-data"]
    other = lab(machines=MACHINES.format(state="new", run="r", spare="spare").replace("S1", "S2"))
    assert one != seed.build(other, "gpu-001", Image(), "PEM", "key")["meta-data"]


def test_a_pin_is_no_part_of_the_machine_and_of_the_design():
    plain = bound()
    text = MACHINES.format(state="new", run="r1", spare="spare")
    pinned = lab(machines=text.replace("system_serial: S1", "system_serial: S1, ssh_host_key: ssh-ed25519 AAAA"))
    assert pinned.host("gpu-001").identity.ssh_host_key == "ssh-ed25519 AAAA"
    assert pinned.digest == plain.digest
    assert seed.build(pinned, "gpu-001", Image(), "PEM", "key") == seed.build(plain, "gpu-001", Image(), "PEM", "key")
    assert lab(machines=text.replace("S1", "S2")).digest != plain.digest


def test_no_seed_for_a_slot_whose_machine_is_not_known():
    with pytest.raises(Refusal, match="gpu-002"):
        seed.build(bound(), "gpu-002", Image(), "PEM", "key")


def test_sheets_name_every_device_and_cable_once():
    found = lab()
    cabling = list(export.cabling_csv(found))
    assert len(cabling) == 1 + 72 + 16
    assert len({line.split(",")[0] for line in cabling}) == len(cabling)
    assert len(list(export.bmc_csv(found))) == 10
    assert len(list(export.switches_csv(found))) == 11
    assert json.loads("".join(export.site_json(found)))["bmc_username"] == "admin"


def test_a_thousand_hosts_take_seconds_at_most():
    text = large(count=1000, racks=170, spines=4).replace("oversubscription: 4", "oversubscription: 32")
    started = time.process_time()
    found = design.build(spec.read({"environment": text}))
    assert (len(found.hosts), len(found.links)) == (1001, 1001 * 8 + 16 * 8 * 4)
    assert time.process_time() - started < 5


def test_management_gateways_are_optional():
    text = LAB.replace(", gateway: 198.18.0.1", "").replace(", gateway: 198.18.2.1", "")
    found = design.build(
        spec.read({"environment": text, "machines": MACHINES.format(state="new", run="r", spare="spare")})
    )
    network = json.loads(seed.build(found, "gpu-001", Image(), "PEM", "key")["network-config"])
    assert "routes" not in network["ethernets"]["management"]
