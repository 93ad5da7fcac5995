"""Cooling units read over the wire: register maps, the tree of DMTF's mockup, what is missing, wet, blind or stale."""

import asyncio
import math
import struct

import pytest
from aiohttp import web
from loopback_tls import authority
from pymodbus.datastore import ModbusDeviceContext, ModbusServerContext, ModbusSparseDataBlock
from pymodbus.server import ModbusTcpServer

from supernode import catalog
from supernode.catalog import Register
from supernode.clients import cdu, modbus
from supernode.clients.cdu import Detector, Freshness
from supernode.errors import CouldNotRun

KIND = catalog.cdu("lab-cdu-modbus")
MINIMUM = KIND.min_flow_m3_s


def words(value, kind, order):
    """Two registers as a device puts them, by struct alone: not by the library that the client decodes with."""
    high, low = struct.unpack(">HH", struct.pack({"float32": ">f", "uint32": ">I"}[kind], value))
    return [low, high] if order == "little" else [high, low]


# 30.0 and 40.5 degrees, 58.5 l/min, 240 and 180 kPa, 45 and 0 %, 39 800 W; sequence 70 001. Addresses: the kind's file.
REGISTERS = {
    0: words(70_001, "uint32", "little"),
    100: [300, 405, 180, 270],
    110: words(58.5, "float32", "little") + words(61.0, "float32", "little"),
    120: [240, 180],
    130: [450, 0],
    140: words(39_800, "uint32", "little"),
}


def device(registers, bits):
    """A Modbus device of these registers; pymodbus counts its blocks from 1."""
    ir = {start + n + 1: word for start, row in registers.items() for n, word in enumerate(row)}
    di = ModbusSparseDataBlock({address + 1: bit for address, bit in bits.items()})
    return ModbusServerContext(ModbusDeviceContext(ir=ModbusSparseDataBlock(ir), di=di), single=True)


def read_modbus(registers=REGISTERS, bits=None):
    async def go():
        context = device(registers, {0: 0, 1: 0, 8: 0, 9: 0} | (bits or {}))
        server = ModbusTcpServer(context, address=("127.0.0.1", 0))
        await server.listen()
        try:
            port = server.transport.sockets[0].getsockname()[1]
            access = cdu.Access("cdu1", "lab-cdu-modbus", "127.0.0.1", port)
            return await cdu.read(access, None)
        finally:
            await server.shutdown()

    return asyncio.run(go())


def test_a_register_map_is_read_into_base_units():
    found = read_modbus()
    assert found.values == {
        "secondary_supply_temperature_celsius": pytest.approx(30.0),
        "secondary_return_temperature_celsius": pytest.approx(40.5),
        "primary_supply_temperature_celsius": pytest.approx(18.0),
        "primary_return_temperature_celsius": pytest.approx(27.0),
        "secondary_flow_cubic_meters_per_second": pytest.approx(58.5 / 60_000),
        "primary_flow_cubic_meters_per_second": pytest.approx(61.0 / 60_000),
        "secondary_supply_pressure_pascals": pytest.approx(240_000),
        "secondary_return_pressure_pascals": pytest.approx(180_000),
        "pump1_speed_ratio": pytest.approx(0.45),
        "pump2_speed_ratio": pytest.approx(0.0),
        "heat_removed_watts": pytest.approx(39_800),
    }
    assert (found.missing, found.implausible, found.mark) == ((), {}, "70001")
    assert cdu.objections(found, MINIMUM) == ()


def test_what_cannot_be_true_is_no_value():
    wrong = REGISTERS | {100: [65_535 - 2_000, 405, 180, 270], 110: words(math.nan, "float32", "little") * 2}
    found = read_modbus(wrong)
    assert found.implausible == {"secondary_supply_temperature_celsius": pytest.approx(-200.1)}
    assert set(found.missing) == {"secondary_flow_cubic_meters_per_second", "primary_flow_cubic_meters_per_second"}
    assert cdu.objections(found, MINIMUM) == ("flow cdu1:secondary_flow is not shown",)


@pytest.mark.parametrize(
    ("bits", "said"),
    [
        ({0: 1}, "leak detector cdu1:tray is critical: wet"),
        ({1: 1, 9: 1}, "leak detector cdu1:manifold is critical: wet"),
        ({8: 1}, "leak detector cdu1:tray is unavailable: it sees nothing"),
    ],
    ids=["wet", "wet and broken", "broken"],
)
def test_a_detector_is_named(bits, said):
    assert cdu.objections(read_modbus(bits=bits), MINIMUM) == (said,)


def test_too_little_flow_is_told_with_both_values():
    found = read_modbus(REGISTERS | {110: words(20.0, "float32", "little") * 2})
    assert cdu.objections(found, MINIMUM) == ("flow cdu1:secondary_flow is 20.0 l/min, at least 30.0 l/min is wanted",)


def test_a_device_without_such_registers_is_told_by_its_exception():
    with pytest.raises(CouldNotRun, match=r"input 140 to 141: answers exception 2"):
        read_modbus({start: row for start, row in REGISTERS.items() if start != 140})


def test_nobody_listening_is_told():
    async def go():
        await cdu.read(cdu.Access("cdu1", "lab-cdu-modbus", "127.0.0.1", 1), None)

    with pytest.raises(CouldNotRun, match="does not answer Modbus TCP"):
        asyncio.run(go())


def test_blocks_touch_nothing_that_is_not_wanted_and_stay_within_what_a_device_answers():
    wanted = [("input", n) for n in (7, 3, 4, 5, 6, 20)] + [("discrete", 7)]
    found = modbus.blocks(wanted, 3)
    assert [(b.table, b.address, b.count) for b in found] == [
        ("discrete", 7, 1),
        ("input", 3, 3),
        ("input", 6, 2),
        ("input", 20, 1),
    ]


@pytest.mark.parametrize(("order", "registers"), [("big", [0x42F7, 0xE666]), ("little", [0xE666, 0x42F7])])
def test_the_word_order_is_the_devices(order, registers):
    register = Register("x", "celsius", 0, 200, "input", 0, "float32", order, 1.0)
    assert modbus.decode(register, registers) == pytest.approx(123.95, abs=1e-3)


V1 = "/redfish/v1"
PASSWORD = "of-the-unit"
UNIT = f"{V1}/ThermalEquipment/CDUs/1"


def at(path):
    return {"@odata.id": path}


def pair(side, *, flow, supply, back, pressures, heat):
    """A connector, with the excerpts that DMTF's mockup public-cooling-unit (2025.4) has."""
    source = f"{V1}/Chassis/CDU/Sensors/{side}"
    return {
        "FlowLitersPerMinute": {"Reading": flow, "DataSourceUri": f"{source}Flow"},
        "SupplyTemperatureCelsius": {"Reading": supply, "DataSourceUri": f"{source}SupplyTemp"},
        "ReturnTemperatureCelsius": {"Reading": back},
        "SupplyPressurekPa": {"Reading": pressures[0]},
        "ReturnPressurekPa": {"Reading": pressures[1]},
        "HeatRemovedkW": {"Reading": heat},
    }


def listed(path, *names):
    return {path: {"Members": [at(f"{path}/{name}") for name in names]}}


# documented: layout and values of DMTF's mockup public-cooling-unit, release 2025.4; ReadingTime as its schema has it
MOCKUP = {
    f"{V1}/ThermalEquipment": {"CDUs": at(f"{V1}/ThermalEquipment/CDUs")},
    **listed(f"{V1}/ThermalEquipment/CDUs", "1"),
    UNIT: at(UNIT)
    | {name: at(f"{UNIT}/{name}") for name in ("PrimaryCoolantConnectors", "SecondaryCoolantConnectors")}
    | {name: at(f"{UNIT}/{name}") for name in ("Pumps", "LeakDetection")}
    | {"Links": {"Chassis": [at(f"{V1}/Chassis/CDU")]}},
    **listed(f"{UNIT}/PrimaryCoolantConnectors", "1"),
    **listed(f"{UNIT}/SecondaryCoolantConnectors", "1"),
    **listed(f"{UNIT}/Pumps", "1", "2"),
    f"{UNIT}/PrimaryCoolantConnectors/1": pair(
        "Primary", flow=42, supply=30, back=40, pressures=(827, 965), heat=25.48
    ),
    f"{UNIT}/SecondaryCoolantConnectors/1": pair(
        "Secondary", flow=42, supply=30, back=48, pressures=(103, 137), heat=25.31
    ),
    f"{UNIT}/Pumps/1": {"PumpSpeedPercent": {"Reading": 38.5}},
    f"{UNIT}/Pumps/2": {"PumpSpeedPercent": {"Reading": None}},
    f"{UNIT}/LeakDetection": {
        "LeakDetectorGroups": [
            {
                "GroupName": "Detectors in the CDU",
                "Detectors": [
                    {"DataSourceUri": f"{V1}/Chassis/CDU/LeakDetectors/Moisture", "DetectorState": "OK"},
                    {"DataSourceUri": f"{V1}/Chassis/CDU/LeakDetectors/Overflow", "DetectorState": "OK"},
                ],
            }
        ]
    },
    f"{V1}/Chassis/CDU": {"LeakDetectors": at(f"{V1}/Chassis/CDU/LeakDetectors")},
    **listed(f"{V1}/Chassis/CDU/LeakDetectors", "Moisture", "Overflow"),
    f"{V1}/Chassis/CDU/LeakDetectors/Moisture": {"DetectorState": "OK", "Status": {"State": "Enabled"}},
    f"{V1}/Chassis/CDU/LeakDetectors/Overflow": {"DetectorState": "OK", "Status": {"State": "Enabled"}},
    f"{V1}/Chassis/CDU/Sensors/SecondaryFlow": {"Reading": 42, "ReadingTime": "2026-01-01T10:00:00Z"},
}
for path in [p for p, row in MOCKUP.items() if p.count("/") >= 6 and "Members" not in row]:
    MOCKUP[path] = at(path) | MOCKUP[path]


def read_redfish(tmp_path, tree, password=PASSWORD):
    (tmp_path / "secret").write_text(password)
    (tmp_path / "secret").chmod(0o600)

    async def handle(request):
        if request.headers.get("Authorization") != "Basic cmVhZGVyOm9mLXRoZS11bml0":
            return web.json_response({"error": {"message": "no"}}, status=401)
        assert request.method == "GET"
        body = tree.get(request.path.rstrip("/"))
        return web.json_response(body or {}, status=200 if body else 404)

    async def go():
        runner = web.ServerRunner(web.Server(handle))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=authority(tmp_path)).start()
        try:
            port = runner.addresses[0][1]
            row = {"unit": "cdu2", "kind": "lab-cdu-redfish", "address": "127.0.0.1", "port": port, "unknown": 1}
            access = cdu.Access.of(row | {"username": "reader", "password": "file:secret", "ca": "cert.pem"})
            return await cdu.read(access, tmp_path)
        finally:
            await runner.cleanup()

    return asyncio.run(go())


def changed(rows):
    return {**MOCKUP, **rows}


def test_the_mockups_tree_is_read_into_base_units(tmp_path):
    found = read_redfish(tmp_path, MOCKUP)
    assert found.values["secondary_flow_cubic_meters_per_second"] == pytest.approx(0.0007)
    assert found.values["secondary_return_temperature_celsius"] == 48
    assert found.values["secondary_supply_pressure_pascals"] == 103_000
    assert found.values["heat_removed_watts"] == pytest.approx(25_310)
    assert found.values["pump1_speed_ratio"] == pytest.approx(0.385)
    assert found.missing == ("pump2_speed_ratio",)
    assert found.mark == "2026-01-01T10:00:00Z"
    assert found.detectors == (Detector("Moisture", "ok"), Detector("Overflow", "ok"))


OWN = f"{V1}/Chassis/CDU/LeakDetectors"


def test_detectors_are_found_in_the_chassis_and_where_they_stood_before(tmp_path):
    no_groups = changed({f"{UNIT}/LeakDetection": at(f"{UNIT}/LeakDetection")} | detector(DetectorState="Warning"))
    assert read_redfish(tmp_path, no_groups).detectors == (Detector("Moisture", "warning"), Detector("Overflow", "ok"))
    old = f"{UNIT}/LeakDetection/LeakDetectors"
    before = changed(
        {
            f"{UNIT}/LeakDetection": {"LeakDetectors": at(old)},
            f"{V1}/Chassis/CDU": {"Id": "CDU"},
            **listed(old, "Tray"),
            f"{old}/Tray": at(f"{old}/Tray") | {"DetectorState": "Absent"},
        }
    )
    assert read_redfish(tmp_path, before).detectors == (Detector("Tray", "absent"),)


def detector(**told):
    """The resource of one detector whose group says that it is OK."""
    return {f"{OWN}/Moisture": at(f"{OWN}/Moisture") | told}


# documented: LeakDetector 1.6.0 (its DetectorState and Enabled), Resource 1.x (State); an excerpt has only the first
@pytest.mark.parametrize(
    ("told", "state"),
    [
        ({"DetectorState": "OK"}, "ok"),  # before 1.3 nobody could switch one off: no Enabled is no sign of anything
        ({"DetectorState": "OK", "Enabled": True, "Status": {"State": "Enabled"}}, "ok"),
        ({"DetectorState": "OK", "Enabled": None, "Status": {"State": None}}, "ok"),
        ({"DetectorState": "OK", "Enabled": False}, "disabled"),
        ({"DetectorState": "OK", "Status": {"State": "Disabled"}}, "disabled"),
        ({"DetectorState": "OK", "Status": {"State": "Absent"}}, "absent"),
        ({"DetectorState": "OK", "Status": {"State": "UnavailableOffline"}}, "unavailable"),
        ({"Enabled": True, "Status": {"State": "Enabled", "Health": "OK"}}, "ok"),  # its group tells the state
        ({"DetectorState": "Unavailable", "Enabled": False}, "disabled"),
        ({"DetectorState": "Drizzle"}, "unknown"),
        ({"DetectorState": "Warning", "Enabled": False}, "warning"),
    ],
)
def test_a_detector_is_dry_only_where_its_own_resource_says_so_too(tmp_path, told, state):
    found = read_redfish(tmp_path, changed(detector(**told)))
    assert found.detectors == (Detector("Moisture", state), Detector("Overflow", "ok"))
    assert any("Moisture" in said for said in cdu.objections(found, MINIMUM)) is (state != "ok")


def test_a_state_that_nobody_tells_is_unknown(tmp_path):
    tree = changed({f"{UNIT}/LeakDetection": at(UNIT)} | detector(Enabled=True, Status={"State": "Enabled"}))
    assert read_redfish(tmp_path, tree).detectors[0] == Detector("Moisture", "unknown")


def test_a_detector_whose_resource_is_not_there_is_not_dry(tmp_path):
    gone = changed({f"{OWN}/Moisture": None, **listed(OWN, "Overflow")})
    assert read_redfish(tmp_path, gone).detectors == (Detector("Overflow", "ok"), Detector("Moisture", "unknown"))


def test_one_that_no_group_names_and_one_that_no_chassis_lists_count_both(tmp_path):
    rows = {"LeakDetectorGroups": [{"Detectors": [{"DeviceName": "Hose", "DetectorState": "OK"}]}, {"GroupName": "x"}]}
    tree = changed({f"{UNIT}/LeakDetection": rows} | detector(DetectorState="Critical"))
    found = {row.name: row.state for row in read_redfish(tmp_path, tree).detectors}
    assert found == {"Moisture": "critical", "Overflow": "ok", "Hose": "ok"}


def test_a_wet_detector_is_found_in_whichever_chassis_of_the_unit_it_stands(tmp_path):
    rack = f"{V1}/Chassis/Manifold"
    two = changed(
        {
            f"{UNIT}/LeakDetection": at(f"{UNIT}/LeakDetection"),
            UNIT: MOCKUP[UNIT] | {"Links": {"Chassis": [at(f"{V1}/Chassis/CDU"), at(rack)]}},
            rack: {"LeakDetectors": at(f"{rack}/LeakDetectors")},
            **listed(f"{rack}/LeakDetectors", "Moisture"),
            f"{rack}/LeakDetectors/Moisture": at(f"{rack}/LeakDetectors/Moisture") | {"DetectorState": "Critical"},
        }
    )
    found = read_redfish(tmp_path, two).detectors
    # One name for two would hide one of them from whoever keeps the values by name.
    assert [row.name for row in found] == ["CDU/Moisture", "Overflow", "Manifold/Moisture"]
    assert [row.state for row in found] == ["ok", "ok", "critical"]


def test_no_detector_at_all_is_no_sign_of_health(tmp_path):
    bare = changed({f"{UNIT}/LeakDetection": at(UNIT), f"{V1}/Chassis/CDU": at(UNIT)})
    assert "cdu2 shows no leak detector" in cdu.objections(read_redfish(tmp_path, bare), MINIMUM)


def test_a_detector_that_is_switched_off_is_blind_whatever_it_says(tmp_path):
    rows = [{"DeviceName": "Tray", "DetectorState": "OK", "Enabled": False}, {"DeviceName": "Hose"}]
    leaks = {"LeakDetectorGroups": [{"Detectors": rows}]}
    bare = {f"{UNIT}/LeakDetection": leaks, f"{V1}/Chassis/CDU": at(UNIT)}
    found = read_redfish(tmp_path, changed(bare)).detectors
    assert found == (Detector("Tray", "disabled"), Detector("Hose", "unknown"))
    assert all(detector.blind and not detector.wet for detector in found)


def test_a_sensor_that_tells_no_time_gives_no_mark(tmp_path):
    path = f"{V1}/Chassis/CDU/Sensors/SecondaryFlow"
    assert read_redfish(tmp_path, changed({path: {"Reading": 42}})).mark == ""


def test_a_refused_account_is_told_and_its_password_is_not(tmp_path):
    with pytest.raises(CouldNotRun) as error:
        read_redfish(tmp_path, MOCKUP, password="another-one")
    assert "401" in str(error.value)
    assert "another-one" not in str(error.value)


def test_what_has_not_the_shape_of_redfish_is_told(tmp_path):
    with pytest.raises(CouldNotRun, match="not shaped as Redfish says"):
        read_redfish(tmp_path, changed({f"{UNIT}/Pumps/1": {"PumpSpeedPercent": [1]}}))


def test_values_are_as_old_as_the_last_look_at_the_mark_before():
    fresh = Freshness()
    assert fresh.age(0) is None
    fresh.note("1", 0)
    assert fresh.age(50) is None  # one look says nothing
    fresh.note("1", 60)
    fresh.note("2", 65)
    assert fresh.age(65) == 5
    fresh.note("2", 90)
    assert fresh.age(90) == 30  # frozen since
    fresh.note("", 91)
    assert fresh.age(91) == 31
