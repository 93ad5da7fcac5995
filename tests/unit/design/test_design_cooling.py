"""Cooling in the Design: which unit cools a rack, what its machines are held to, and addresses given once."""

import pytest

from supernode import design, spec
from supernode.design import cooling, export

from .sites import large

COOLING = """cooling:
  units:
    - {name: cdu1, kind: lab-cdu-modbus, address: 10.1.0.201, racks: [r01], min_flow_l_min: 60}
    - name: cdu2
      kind: lab-cdu-redfish
      address: 10.1.0.12
      port: 8443
      racks: [r02, r03]
      username: reader
      password: file:secrets/cdu2
      ca: ca.pem
  interlock: {max_age_s: 20, override: {r01u01: by hand, r02: "meter away "}}
"""


@pytest.fixture(scope="module")
def cooled():
    return design.build(spec.read({"environment": large() + COOLING}))


def test_a_rack_has_its_unit_or_none(cooled):
    assert [cooled.cooling_of(rack).name for rack in ("r01", "r02", "r03")] == ["cdu1", "cdu2", "cdu2"]
    assert cooled.cooling_of("r04") is None
    assert design.build(spec.read({"environment": large()})).cooling == ()


def test_ports_and_the_least_flow_are_the_kinds_unless_given(cooled):
    first, second = cooled.cooling
    assert (first.port, second.port) == (502, 8443)
    assert first.min_flow_m3_s == pytest.approx(0.001)
    assert second.min_flow_m3_s == second.hardware.min_flow_m3_s


def test_no_machine_gets_the_address_of_a_unit(cooled):
    taken = {str(host.bmc) for host in cooled.hosts} | {str(row.management.ip) for row in cooled.switches}
    assert not taken & {unit.address for unit in cooled.cooling}


def test_the_interlock_holds_references_and_the_reason_of_an_override(cooled):
    rows = {host.slot: cooling.interlock(cooled.environment, cooled.cooling_of("r01"), host) for host in cooled.hosts}
    assert rows["r01u01"] == {
        "unit": "cdu1",
        "kind": "lab-cdu-modbus",
        "address": "10.1.0.201",
        "port": 502,
        "minFlow": pytest.approx(0.001),
        "maxAgeS": 20,
        "override": "by hand",
    }
    assert "override" not in rows["r01u09"]
    second = cooled.cooling_of("r02")
    assert second.access()["password"] == "file:secrets/cdu2"


def test_the_table_for_the_crew_names_every_unit_and_no_secret(cooled):
    text = "".join(export.cooling_csv(cooled))
    assert text.splitlines() == [
        "unit,kind,address,port,racks,username,ca",
        "cdu1,lab-cdu-modbus,10.1.0.201,502,r01,,",
        "cdu2,lab-cdu-redfish,10.1.0.12,8443,r02 r03,reader,ca.pem",
    ]
    assert "secrets" not in text
