"""The lab's cooling units: the model's balance, both fronts read by the real clients, and what each fault does."""

import asyncio
import json
from contextlib import asynccontextmanager

import aiohttp
import pytest

from supernode.clients import cdu
from supernode.clients.redfish import tls
from supernode.errors import CouldNotRun, WrongInput
from supernode.lab.artefacts import CoolingUnit
from supernode.lab.cooling import modbus, tree
from supernode.lab.cooling.hall import Hall
from supernode.lab.cooling.loop import HOTTEST, Loop
from supernode.lab.factory import Factory

KINDS = {"cdu1": "lab-cdu-modbus", "cdu2": "lab-cdu-redfish"}


@pytest.mark.parametrize("heat", [0.0, 24_000.0, 61_200.0, 130_000.0])
def test_what_comes_in_goes_out_or_is_in_the_coolant(heat):
    loop = Loop()
    for _ in range(600):
        loop.advance(1.0, heat)
    assert loop.taken_j - loop.removed_j == pytest.approx(loop.stored_j, abs=1.0)
    assert loop.taken_j == pytest.approx(600 * heat)
    values = loop.values()
    assert values["heat_removed"] == pytest.approx(heat, abs=0.02 * heat + 50)
    carried = values["secondary_flow"] * 1020 * 3900
    rise = values["secondary_return_temperature"] - values["secondary_supply_temperature"]
    assert carried * rise == pytest.approx(heat)
    assert 25 < values["secondary_supply_temperature"] < 36


def test_choked_pumps_make_the_return_hot_and_the_machines_throttle():
    loop = Loop(choke=0.1)
    for _ in range(300):
        loop.advance(1.0, 61_200)
    values = loop.values()
    assert values["secondary_return_temperature"] == pytest.approx(HOTTEST, abs=0.5)
    assert loop.taken_j < 300 * 61_200
    assert loop.taken_j - loop.removed_j == pytest.approx(loop.stored_j, abs=1.0)


def test_the_pumps_follow_the_load():
    idle, busy = Loop(), Loop()
    idle.advance(1.0, 0)
    busy.advance(1.0, 120_000)
    for point in ("pump1_speed", "secondary_flow", "secondary_supply_pressure"):
        assert busy.values()[point] > idle.values()[point]


@asynccontextmanager
async def opened(tmp_path, heat=24_000.0):
    made = Factory(tmp_path / "factory")
    rows = [CoolingUnit(n, kind, "127.0.0.1", 0, (f"r0{n[-1]}",), "reader") for n, kind in KINDS.items()]
    hall = Hall(rows, tmp_path / "factory", made, lambda _rack: heat)
    await hall.open()
    try:
        yield hall
    finally:
        await hall.close()


def access(hall, tmp_path, name):
    (tmp_path / "password").write_text(Factory(tmp_path / "factory").unit_password("cdu2"))
    (tmp_path / "password").chmod(0o600)
    secret = {"username": "reader", "password": "file:password", "ca": "factory/ca/ca.pem"} if name == "cdu2" else {}
    port = hall._fronts[name].port
    return cdu.Access.of({"unit": name, "kind": KINDS[name], "address": "127.0.0.1", "port": port, **secret})


def looked(tmp_path, name, *faults):
    """Look twice, with time in between and the faults injected before it."""

    async def go():
        async with opened(tmp_path) as hall:
            hall.units[name].advance(60.0)
            first = await cdu.read(access(hall, tmp_path, name), tmp_path)
            for fault, target, arguments in faults:
                hall.set_fault(fault, target, arguments)
            await asyncio.sleep(0.01)
            hall.units[name].advance(30.0)
            second = await cdu.read(access(hall, tmp_path, name), tmp_path)
        return first, second

    return asyncio.run(go())


@pytest.mark.parametrize("name", KINDS)
def test_a_unit_shows_all_that_its_kind_tells_and_moves(tmp_path, name):
    first, second = looked(tmp_path, name)
    for found in (first, second):
        assert (found.missing, found.implausible) == ((), {})
        assert cdu.objections(found, 0.0005) == ()
        assert [d.name for d in found.detectors] == ["tray", "manifold"]
        assert found.values["heat_removed_watts"] == pytest.approx(24_000, rel=0.1)
        assert found.values["secondary_flow_cubic_meters_per_second"] == pytest.approx(0.001, rel=0.01)
    assert first.mark != second.mark


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(
    ("fault", "target", "arguments", "said"),
    [
        ("leak", "", {"state": "critical"}, "leak detector {name}:tray is critical: wet"),
        ("leak", ":manifold", {"state": "critical"}, "leak detector {name}:manifold is critical: wet"),
        ("low-flow", "", {"share": 0.1}, "flow {name}:secondary_flow is 6.0 l/min, at least 30.0 l/min is wanted"),
    ],
)
def test_a_fault_is_named_by_its_sensor(tmp_path, name, fault, target, arguments, said):
    _, found = looked(tmp_path, name, (fault, f"r0{name[-1]}{target}", arguments))
    assert cdu.objections(found, 0.0005) == (said.format(name=name),)


@pytest.mark.parametrize("name", KINDS)
def test_a_frozen_unit_answers_with_the_past(tmp_path, name):
    first, second = looked(tmp_path, name, ("freeze-cdu", name, {}), ("leak", name, {"state": "critical"}))
    assert second == first


@pytest.mark.parametrize("name", KINDS)
def test_a_silent_unit_answers_nothing_until_it_does_again(tmp_path, name, monkeypatch):
    monkeypatch.setattr("supernode.clients.modbus.ANSWER_S", 0.2)
    monkeypatch.setattr("supernode.clients.cdu_redfish.PATIENCE", cdu_patience())

    async def go():
        async with opened(tmp_path) as hall:
            hall.set_fault("cdu-silent", name, {})
            with pytest.raises(CouldNotRun):
                await cdu.read(access(hall, tmp_path, name), tmp_path)
            hall.clear_fault("cdu-silent", name)
            return await cdu.read(access(hall, tmp_path, name), tmp_path)

    assert asyncio.run(go()).flow


def cdu_patience():
    from supernode.clients.patience import Patience

    return Patience(answer_s=0.3, tries=1)


def test_a_session_is_ended_and_another_account_is_refused(tmp_path):
    async def go():
        async with opened(tmp_path) as hall:
            row = access(hall, tmp_path, "cdu2")
            async with cdu.connect(row, tmp_path, session=True) as reader:
                await reader.read()
                await reader.read()
                during = hall._fronts["cdu2"].sessions
            (tmp_path / "password").write_text("another-word")
            with pytest.raises(CouldNotRun, match="401"):
                await cdu.read(row, tmp_path)
            return during, hall._fronts["cdu2"].sessions

    assert asyncio.run(go()) == (1, 0)


def test_it_can_only_be_read(tmp_path):
    async def go():
        async with opened(tmp_path) as hall, aiohttp.ClientSession() as http:
            password = Factory(tmp_path / "factory").unit_password("cdu2")
            headers = {"Authorization": aiohttp.encode_basic_auth("reader", password)}
            context = tls((tmp_path / "factory/ca/ca.pem").read_text())
            base = f"https://127.0.0.1:{hall._fronts['cdu2'].port}"
            pump = f"{base}{tree.UNIT}/Pumps/1"
            async with http.patch(pump, json={}, headers=headers, ssl=context) as answer:
                patched = answer.status
            async with http.get(f"{base}{tree.V1}/nothing", headers=headers, ssl=context) as answer:
                return patched, answer.status, await answer.json()

    patched, missing, body = asyncio.run(go())
    assert (patched, missing) == (405, 404)
    assert "ResourceMissingAtURI" in json.dumps(body)


def test_every_link_of_the_tree_leads_somewhere(tmp_path):
    def links(value):
        if isinstance(value, dict):
            for key, item in value.items():
                if key in ("@odata.id", "DataSourceUri") and isinstance(item, str):
                    yield item
                else:
                    yield from links(item)
        elif isinstance(value, list):
            for item in value:
                yield from links(item)

    async def go():
        async with opened(tmp_path) as hall:
            return tree.resources(hall.units["cdu2"])

    found = asyncio.run(go())
    others = {tree.SESSION_SERVICE, tree.SESSIONS}
    assert set(links(list(found.values()))) <= set(found) | others
    assert all(body["@odata.id"] == path for path, body in found.items())


def test_a_write_over_modbus_is_refused(tmp_path):
    async def go():
        async with opened(tmp_path) as hall:
            from pymodbus.client import AsyncModbusTcpClient

            client = AsyncModbusTcpClient("127.0.0.1", port=hall._fronts["cdu1"].port)
            await client.connect()
            try:
                wrote = await client.write_register(130, 0, device_id=1)
                too_many = await client.read_input_registers(0, count=100, device_id=1)
            finally:
                client.close()
            return wrote.isError(), too_many.isError(), modbus.words(hall.units["cdu1"].kind.sequence, 65_537.0)

    assert asyncio.run(go()) == (True, True, [1, 1])


def test_an_unknown_place_is_told(tmp_path):
    async def go():
        async with opened(tmp_path) as hall:
            with pytest.raises(WrongInput, match="is no cooling unit"):
                hall.set_fault("leak", "r09", {"state": "critical"})
            with pytest.raises(WrongInput, match="is no leak detector of cdu1"):
                hall.set_fault("leak", "cdu1:hose", {"state": "critical"})

    asyncio.run(go())
