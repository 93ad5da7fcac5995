"""The twelve lies, each told by the BMC alone, as documented; beside each the same request to one that is honest."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
from bmc_bench import DRIVE, INSERT, SETTINGS, SYSTEM, V1, Bench, bench, site

from supernode.lab.bmc.hardware import Habits
from supernode.lab.bmc.kinds import LIES

LIAR, HONEST = "r01u01", "r01u03"
MANAGER = f"{V1}/Managers/1"
SESSIONS = f"{V1}/SessionService/Sessions"
ONCE = {"Boot": {"BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Once"}}
PENDING = {"Attributes": {"SriovEnable": "Enabled"}}
QUICK = Habits(manager_reset_s=0.2)


def play(
    folder: Path, scenario: Callable[[Bench], Awaitable[None]], name: str, habits: Habits = QUICK, **arguments: object
) -> None:
    async def go() -> None:
        async with bench(folder, (LIAR, HONEST), habits) as b:
            b.fleet.set_fault(LIAR, name, **arguments)
            await scenario(b)

    asyncio.run(go())


def test_every_lie_has_a_witness() -> None:
    assert len(LIES) == 12
    assert all(kind.source for kind in LIES)


def test_204_without_effect_as_often_as_told(tmp_path: Path) -> None:
    async def scenario(b: Bench) -> None:
        assert [(await b.client.patch(SYSTEM, ONCE)).status for _ in range(2)] == [204, 200]
        b.fleet.set_fault(LIAR, "bmc-no-effect", request="power", times=1)
        assert (await b.client.reset("On")).status == 204
        assert (await b.client.read(SYSTEM))["PowerState"] == "Off"
        assert (await b.client.patch(SETTINGS, PENDING)).body["Attributes"] == {"SriovEnable": "Enabled"}
        await b.client.reset("On")
        assert (await b.client.read(SYSTEM))["PowerState"] == "On"
        assert (await b.clients[HONEST].patch(SYSTEM, ONCE)).body["Boot"]["BootSourceOverrideEnabled"] == "Once"

    play(tmp_path, scenario, "bmc-no-effect", request="boot", times=1)


def test_204_without_effect_for_any_change(tmp_path: Path) -> None:
    async def scenario(b: Bench) -> None:
        for answer in (await b.client.patch(SYSTEM, ONCE), await b.client.patch(SETTINGS, PENDING)):
            assert (answer.status, answer.body) == (204, None)
        assert (await b.client.read(SETTINGS))["Attributes"] == {}
        assert (await b.client.read(SYSTEM))["Boot"]["BootSourceOverrideEnabled"] == "Disabled"

    play(tmp_path, scenario, "bmc-no-effect", request="any")


def test_400_that_did_apply(tmp_path: Path) -> None:
    async def scenario(b: Bench) -> None:
        refused = await b.client.patch(SETTINGS, PENDING)
        assert (refused.status, refused.ids) == (400, ["GeneralError"])
        assert (await b.client.read(SETTINGS))["Attributes"] == PENDING["Attributes"]
        unknown = await b.client.patch(SETTINGS, {"Attributes": {"Nothing": 1}})  # an error of its own stays one
        assert unknown.ids == ["PropertyUnknown"]
        assert (await b.clients[HONEST].patch(SETTINGS, PENDING)).status == 200

    play(tmp_path, scenario, "bmc-400-applied", request="bios")


@pytest.mark.parametrize("happens", [0, 1])
def test_a_task_that_a_reset_of_the_bmc_loses(tmp_path: Path, happens: int) -> None:
    async def scenario(b: Bench) -> None:
        answer = await b.client.reset("On")
        assert (answer.status, answer.body["TaskState"]) == (202, "Running")
        monitor = answer.headers["Location"]
        assert (await b.client.get(monitor)).status == 202
        await _gone(b, monitor)
        assert (await b.client.get(answer.body["@odata.id"])).status == 404
        assert (await b.client.read(SYSTEM))["PowerState"] == ("On" if happens else "Off")
        assert (await b.client.reset("ForceOff")).status == 204  # once, by its argument

    play(tmp_path, scenario, "bmc-task-lost", request="power", happens=happens)


async def _gone(b: Bench, path: str) -> None:
    """Ask until the answer is 404; while the BMC is being reset there is none."""
    async with asyncio.timeout(10):
        while await _status(b, path) != 404:  # noqa: ASYNC110 - Redfish has no event to wait for
            await asyncio.sleep(0.05)


async def _status(b: Bench, path: str) -> int:
    try:
        return (await asyncio.wait_for(b.client.get(path), 1)).status
    except (TimeoutError, OSError, aiohttp.ClientError):
        return 0


def test_a_task_of_an_honest_bmc_ends_and_stays(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path, habits=Habits(tasks=("power", "bios"))) as b:
            on = await b.client.reset("On")
            done = await b.client.until(on.body["@odata.id"], lambda t: t["TaskState"] != "Running")
            assert done["TaskState"] == "Completed"
            assert (await b.client.get(on.headers["Location"])).status == 200
            assert (await b.client.read(SYSTEM))["PowerState"] == "On"
            wrong = await b.client.patch(SETTINGS, {"Attributes": {"Nothing": 1}})
            failed = await b.client.until(wrong.body["@odata.id"], lambda t: t["TaskState"] != "Running")
            assert failed["TaskState"] == "Exception"
            assert "Nothing" in failed["Messages"][-1]["Message"]

    asyncio.run(scenario())


@pytest.mark.parametrize("shows", ["Continuous", "Once"])
def test_once_is_kept_for_every_boot(tmp_path: Path, shows: str) -> None:
    async def scenario(b: Bench) -> None:
        for slot in (LIAR, HONEST):
            b.works[slot].disk = True
            await b.clients[slot].patch(SYSTEM, ONCE)
            await b.clients[slot].reset("On")
            await b.clients[slot].until(SYSTEM, lambda s: s["BootProgress"]["LastState"] == "OSRunning")
        found = [(await b.clients[slot].read(SYSTEM))["Boot"]["BootSourceOverrideEnabled"] for slot in (LIAR, HONEST)]
        assert found == [shows, "Disabled"]
        assert b.bmc.state.boot.enabled == "Continuous"
        await b.client.patch(SYSTEM, {"Boot": {"BootSourceOverrideEnabled": "Disabled"}})
        assert (await b.client.read(SYSTEM))["Boot"]["BootSourceOverrideEnabled"] == "Disabled"

    play(tmp_path, scenario, "bmc-once-continuous", shows=shows)


def test_no_session_is_free_and_basic_credentials_still_serve(tmp_path: Path) -> None:
    async def scenario(b: Bench) -> None:
        login = {"UserName": "admin", "Password": "delivered-with-the-machine"}
        full = await b.client.post(SESSIONS, login)
        assert (full.status, full.ids) == (503, ["SessionLimitExceeded"])
        assert (await b.client.post(SESSIONS, {**login, "Password": "not-it"})).status == 401
        assert (await b.client.get(SYSTEM)).status == 200
        assert (await b.clients[HONEST].post(SESSIONS, login)).status == 201

    play(tmp_path, scenario, "bmc-sessions-full")


async def _reset_bmc(b: Bench) -> None:
    assert (await b.client.post(f"{MANAGER}/Actions/Manager.Reset", {"ResetType": "ForceRestart"})).status == 204
    await asyncio.sleep(0.3)
    async with asyncio.timeout(10):
        while await _status(b, SYSTEM) != 200:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


def test_power_is_that_of_an_earlier_moment_until_the_bmc_is_reset(tmp_path: Path) -> None:
    async def scenario(b: Bench) -> None:
        b.work.disk = True
        await b.client.reset("On")
        await asyncio.sleep(0.05)
        page = await b.client.read(SYSTEM)
        assert (page["PowerState"], page["BootProgress"]["LastState"]) == ("Off", "None")
        assert b.work.runs == 1
        await _reset_bmc(b)
        assert (await b.client.read(SYSTEM))["PowerState"] == "On"

    play(tmp_path, scenario, "bmc-stale-inventory", what="power")


def test_stale_firmware_contradicts_what_the_system_says(tmp_path: Path) -> None:
    async def scenario(b: Bench) -> None:
        inventory = f"{V1}/UpdateService/FirmwareInventory/BIOS"
        assert (await b.client.read(inventory))["Version"] == "2.1.2"
        assert (await b.client.read(SYSTEM))["BiosVersion"] == "2.1.3"
        await _reset_bmc(b)
        assert (await b.client.read(inventory))["Version"] == "2.1.3"
        b.fleet.set_fault(LIAR, "bmc-stale-inventory", what="firmware", for_s=0.2)
        assert (await b.client.read(inventory))["Version"] == "2.1.2"
        await asyncio.sleep(0.25)
        assert (await b.client.read(inventory))["Version"] == "2.1.3"

    play(tmp_path, scenario, "bmc-stale-inventory", what="firmware")


def test_a_stale_serial_is_that_of_the_board_before(tmp_path: Path) -> None:
    async def scenario(b: Bench) -> None:
        identity = b.bmc.chassis.identity
        page = await b.client.read(SYSTEM)
        assert page["SerialNumber"] != identity.system_serial
        assert page["UUID"] == identity.uuid
        b.fleet.clear_fault(LIAR)
        assert (await b.client.read(SYSTEM))["SerialNumber"] == identity.system_serial

    play(tmp_path, scenario, "bmc-stale-inventory", what="identity")


def test_a_dead_host_has_power_and_nothing_else(tmp_path: Path) -> None:
    async def scenario(b: Bench) -> None:
        for slot in (LIAR, HONEST):
            b.works[slot].disk = True
            await b.clients[slot].reset("On")
        await b.clients[HONEST].until(SYSTEM, lambda s: s["BootProgress"]["LastState"] == "OSRunning")
        page = await b.client.read(SYSTEM)
        assert (page["PowerState"], page["BootProgress"]["LastState"]) == ("On", "None")
        for log in ("PostCodes", "HostLogger"):
            assert (await b.client.read(f"{SYSTEM}/LogServices/{log}/Entries"))["Members"] == []
        b.fleet.clear_fault(LIAR)
        await b.client.reset("ForceRestart")
        await b.client.until(SYSTEM, lambda s: s["BootProgress"]["LastState"] == "OSRunning")

    play(tmp_path, scenario, "host-dead")


def test_another_server_is_listed_first(tmp_path: Path) -> None:
    async def scenario(b: Bench) -> None:
        members = [m["@odata.id"] for m in (await b.client.read(f"{V1}/Systems"))["Members"]]
        assert members == [f"{V1}/Systems/Witness", SYSTEM]
        page = await b.client.read(members[0])
        assert page["SerialNumber"] != b.bmc.chassis.identity.system_serial
        await b.client.post(page["Actions"]["#ComputerSystem.Reset"]["target"], {"ResetType": "ForceOff"})
        assert b.bmc.state.log[-1].message == "Power of Witness: ForceOff"
        honest = await b.clients[HONEST].read(f"{V1}/Systems")
        assert [m["@odata.id"] for m in honest["Members"]] == [SYSTEM]
        assert (await b.clients[HONEST].get(members[0])).status == 404

    play(tmp_path, scenario, "bmc-two-systems")


def test_a_gpu_board_is_silent_while_its_server_is_off(tmp_path: Path) -> None:
    async def scenario(b: Bench) -> None:
        board = f"{V1}/Systems/HGX_Baseboard_0"
        assert (await b.client.get(board)).status == 503
        await b.client.reset("On")
        assert (await b.client.get(board)).status == 200

    play(tmp_path, scenario, "bmc-two-systems", other="baseboard")


def test_the_clock_begins_in_1970_after_each_reset(tmp_path: Path) -> None:
    async def scenario(b: Bench) -> None:
        assert (await b.client.read(MANAGER))["DateTime"].startswith("1970-01-01T00:00:")
        await b.client.reset("On")
        log = (await b.client.read(f"{SYSTEM}/LogServices/SEL/Entries"))["Members"]
        assert log[-1]["Created"].startswith("1970-01-01")
        session = await b.client.post(SESSIONS, {"UserName": "admin", "Password": "delivered-with-the-machine"})
        assert session.body["CreatedTime"].startswith("1970-01-01")
        now = datetime.now(UTC).replace(microsecond=0)
        await b.client.patch(MANAGER, {"DateTime": now.isoformat()})
        told = datetime.fromisoformat((await b.client.read(MANAGER))["DateTime"])
        assert abs(told - now) < timedelta(seconds=5)
        await _reset_bmc(b)
        assert (await b.client.read(MANAGER))["DateTime"].startswith("1970-01-01")
        assert not (await b.clients[HONEST].read(MANAGER))["DateTime"].startswith("1970")
        b.fleet.clear_fault(LIAR)
        assert not (await b.client.read(MANAGER))["DateTime"].startswith("1970")

    play(tmp_path, scenario, "bmc-clock-1970")


def test_no_certificate_is_valid_in_1970(tmp_path: Path, deploy_iso: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path / "bmc") as b, site(deploy_iso.parent) as served:
            pem = served.ca
            await b.client.post(f"{DRIVE}/Certificates", {"CertificateString": pem, "CertificateType": "PEM"})
            await b.client.patch(DRIVE, {"VerifyCertificate": True})
            b.fleet.set_fault(LIAR, "bmc-clock-1970")
            refused = await b.client.post(INSERT, {"Image": f"{served.base}/deploy.iso"})
            assert refused.ids == ["CouldNotEstablishConnection"]
            assert "not valid before" in str(refused.body)
            await b.client.patch(MANAGER, {"DateTime": datetime.now(UTC).isoformat()})
            assert (await b.client.post(INSERT, {"Image": f"{served.base}/deploy.iso"})).status == 204

    asyncio.run(scenario())


def test_bios_settings_stay_pending_through_every_post(tmp_path: Path) -> None:
    async def scenario(b: Bench) -> None:
        for slot in (LIAR, HONEST):
            b.works[slot].disk = True
            await b.clients[slot].patch(SETTINGS, PENDING)
            await b.clients[slot].reset("On")
            await b.clients[slot].until(SYSTEM, lambda s: s["BootProgress"]["LastState"] == "OSRunning")
        found = [(await b.clients[slot].read(SETTINGS))["Attributes"] for slot in (LIAR, HONEST)]
        assert found == [PENDING["Attributes"], {}]

    play(tmp_path, scenario, "bmc-pending-forever", what="bios")


def test_a_task_runs_for_ever(tmp_path: Path) -> None:
    async def scenario(b: Bench) -> None:
        begun = await b.client.post(INSERT, {"Image": "https://boot.internal/x.iso"})
        assert begun.status == 202
        await asyncio.sleep(0.1)
        assert (await b.client.read(begun.body["@odata.id"]))["TaskState"] == "Running"
        assert (await b.client.read(DRIVE))["Inserted"] is False

    play(tmp_path, scenario, "bmc-pending-forever", what="task")


def test_the_only_drive_holds_somebody_s_image(tmp_path: Path) -> None:
    async def scenario(b: Bench) -> None:
        page = await b.client.read(DRIVE)
        assert (page["Inserted"], page["Image"]) == (True, "https://198.51.100.7/rescue/tools.iso")
        assert (await b.client.post(INSERT, {"Image": "https://boot.internal/x.iso"})).ids == ["ResourceInUse"]
        b.fleet.clear_fault(LIAR)
        assert (await b.client.read(DRIVE))["Inserted"] is False
        assert (await b.clients[HONEST].read(DRIVE))["Inserted"] is False

    play(tmp_path, scenario, "bmc-one-slot")


def test_the_only_drive_takes_no_cd(tmp_path: Path) -> None:
    async def scenario(b: Bench) -> None:
        found = [(await b.clients[slot].read(DRIVE))["MediaTypes"] for slot in (LIAR, HONEST)]
        assert found == [["USBStick"], ["CD", "DVD"]]

    play(tmp_path, scenario, "bmc-one-slot", holds="usb")


@pytest.mark.parametrize("shows", ["nothing", "inserted"])
def test_a_medium_s_address_is_taken_and_nothing_is_fetched(tmp_path: Path, deploy_iso: Path, shows: str) -> None:
    async def scenario() -> None:
        async with bench(tmp_path / "bmc") as b, site(deploy_iso.parent, secure=False) as served:
            b.fleet.set_fault(LIAR, "bmc-media-ignored", shows=shows)
            assert (await b.client.post(INSERT, {"Image": f"{served.base}/deploy.iso"})).status == 204
            assert (await b.client.read(DRIVE))["Inserted"] is (shows == "inserted")
            assert served.asked == []
            await b.client.patch(SYSTEM, ONCE)
            await b.client.reset("On")
            await b.client.until(SYSTEM, lambda s: s["BootProgress"]["LastState"] == "SetupEntered")
            assert b.work.deployed == []

    asyncio.run(scenario())


def test_a_lie_outlives_a_reset_of_the_bmc(tmp_path: Path) -> None:
    async def scenario(b: Bench) -> None:
        await _reset_bmc(b)
        await b.client.patch(SYSTEM, ONCE)
        assert (await b.client.read(SYSTEM))["Boot"]["BootSourceOverrideEnabled"] == "Continuous"

    play(tmp_path, scenario, "bmc-once-continuous")


def test_an_argument_that_is_no_choice_is_refused(tmp_path: Path) -> None:
    async def scenario(b: Bench) -> None:
        with pytest.raises(Exception, match="cannot take request='reboot'") as refused:
            b.fleet.set_fault(LIAR, "bmc-no-effect", request="reboot")
        assert "power, boot, bios" in refused.value.hint

    play(tmp_path, scenario, "bmc-slow", rate=0.0)
