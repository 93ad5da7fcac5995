"""BIOS attributes, boot override, power: what is asked for now and holds from the next POST on."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bmc_bench import RESET, SETTINGS, SYSTEM, V1, Bench, bench, eventually

from supernode.lab.machine import Ending

BIOS = f"{SYSTEM}/Bios"


async def running(b: Bench) -> None:
    b.work.disk = True
    assert (await b.client.reset("On")).status == 204
    await b.client.until(SYSTEM, lambda s: s["BootProgress"]["LastState"] == "OSRunning")


def test_attributes_wait_for_the_next_reset(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as b:
            await running(b)
            answer = await b.client.patch(SETTINGS, {"Attributes": {"SriovEnable": "Enabled", "BootTimeoutS": 9}})
            assert answer.body["Attributes"] == {"SriovEnable": "Enabled", "BootTimeoutS": 9}
            assert (await b.client.read(BIOS))["Attributes"]["SriovEnable"] == "Disabled"
            await b.client.reset("GracefulRestart")
            page = await b.client.until(BIOS, lambda p: p["Attributes"]["SriovEnable"] == "Enabled")
            assert page["Attributes"]["BootTimeoutS"] == 9
            assert len(page["@Redfish.Settings"]["Messages"]) == 2
            assert (await b.client.read(SETTINGS))["Attributes"] == {}

    asyncio.run(scenario())


def test_a_reboot_from_inside_applies_them_too(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as b:
            await running(b)
            await b.client.patch(SETTINGS, {"Attributes": {"QuietBoot": False}})
            b.work.endings.put_nowait(Ending.REBOOT)
            await b.client.until(BIOS, lambda p: p["Attributes"]["QuietBoot"] is False)

    asyncio.run(scenario())


def test_power_that_stays_off_applies_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as b:
            await b.client.patch(SETTINGS, {"Attributes": {"QuietBoot": False}})
            await b.client.reset("ForceOff")
            assert (await b.client.read(BIOS))["Attributes"]["QuietBoot"] is True

    asyncio.run(scenario())


def test_every_wrong_attribute_is_told_and_none_is_taken(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as b:
            wrong = {
                "SriovEnable": "Enabled",
                "NoSuch": 1,
                "BootTimeoutS": 61,
                "QuietBoot": "yes",
                "AssetTag": 5,
            }
            answer = await b.client.patch(SETTINGS, {"Attributes": wrong})
            assert answer.status == 400
            assert answer.ids == [
                "PropertyUnknown",
                "PropertyValueOutOfRange",
                "PropertyValueTypeError",
                "PropertyValueTypeError",
            ]
            related = answer.body["error"]["@Message.ExtendedInfo"][0]["RelatedProperties"]
            assert related == ["#/Attributes/NoSuch"]
            assert (await b.client.patch(SETTINGS, {"Attributes": {"SriovEnable": "On"}})).ids == [
                "PropertyValueNotInList"
            ]
            assert (await b.client.patch(SETTINGS, {"Attributes": {"BootTimeoutS": True}})).ids == [
                "PropertyValueTypeError"
            ]
            assert (await b.client.read(SETTINGS))["Attributes"] == {}

    asyncio.run(scenario())


def test_settings_want_if_match(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as b:
            change = {"Attributes": {"SriovEnable": "Enabled"}}
            assert (await b.client.ask("PATCH", SETTINGS, change)).status == 428
            tag = (await b.client.get(SETTINGS)).headers["ETag"]
            assert (await b.client.ask("PATCH", SETTINGS, change, If_Match=tag)).status == 200
            assert (await b.client.ask("PATCH", SETTINGS, change, If_Match=tag)).status == 412
            fresh = (await b.client.read(BIOS))["@Redfish.Settings"]["ETag"]
            assert fresh == (await b.client.get(SETTINGS)).headers["ETag"]

    asyncio.run(scenario())


def test_applied_values_cannot_be_written_and_only_on_reset_is_offered(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as b:
            assert (await b.client.patch(BIOS, {"Attributes": {}})).status == 405
            now = {"@Redfish.SettingsApplyTime": {"ApplyTime": "Immediate"}, "Attributes": {}}
            assert (await b.client.patch(SETTINGS, now)).ids == ["PropertyValueNotInList"]
            assert (await b.client.patch(SETTINGS, {"AttributeRegistry": "x"})).ids == ["PropertyNotWritable"]

    asyncio.run(scenario())


def test_a_change_that_is_taken_back_is_not_pending(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as b:
            await b.client.patch(SETTINGS, {"Attributes": {"SriovEnable": "Enabled"}})
            answer = await b.client.patch(SETTINGS, {"Attributes": {"SriovEnable": "Disabled"}})
            assert answer.body["Attributes"] == {}

    asyncio.run(scenario())


def test_defaults_come_back_with_a_reset(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as b:
            b.bmc.state.bios["BootTimeoutS"] = 50
            assert (await b.client.post(f"{BIOS}/Actions/Bios.ResetBios")).status == 204
            assert (await b.client.read(BIOS))["ResetBiosToDefaultsPending"] is True
            await running(b)
            page = await b.client.read(BIOS)
            assert page["Attributes"]["BootTimeoutS"] == 5
            assert page["ResetBiosToDefaultsPending"] is False

    asyncio.run(scenario())


def test_the_registry_tells_types_and_values(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as b:
            name = (await b.client.read(BIOS))["AttributeRegistry"]
            place = (await b.client.read(f"{V1}/Registries/{name}"))["Location"][0]["Uri"]
            entries = {e["AttributeName"]: e for e in (await b.client.read(place))["RegistryEntries"]["Attributes"]}
            assert [v["ValueName"] for v in entries["SriovEnable"]["Value"]] == ["Enabled", "Disabled"]
            assert (entries["BootTimeoutS"]["LowerBound"], entries["BootTimeoutS"]["UpperBound"]) == (0, 60)
            assert entries["QuietBoot"]["Type"] == "Boolean"
            assert (await b.client.get(f"{V1}/Registries/Another")).status == 404

    asyncio.run(scenario())


def test_power_goes_on_and_off(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as b:
            page = await b.client.read(SYSTEM)
            assert (page["PowerState"], page["BootProgress"]["LastState"]) == ("Off", "None")
            await running(b)
            assert (await b.client.read(SYSTEM))["PowerState"] == "On"
            assert (await b.client.reset("On")).status == 204  # already on: nothing happens
            assert b.work.runs == 1
            await b.client.reset("ForceOff")
            assert (await b.client.read(SYSTEM))["PowerState"] == "Off"
            await b.client.reset("ForceOff")
            codes = (await b.client.read(f"{SYSTEM}/LogServices/PostCodes/Entries"))["Members"]
            assert codes[0]["MessageArgs"] == ["1", "0x01"]

    asyncio.run(scenario())


def test_a_graceful_shutdown_is_asked_for_and_may_not_happen(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as b:
            await running(b)
            b.work.answers = False
            assert (await b.client.reset("GracefulShutdown")).status == 204
            assert (await b.client.read(SYSTEM))["PowerState"] == "PoweringOff"
            b.work.endings.put_nowait(Ending.POWEROFF)
            await b.client.until(SYSTEM, lambda s: s["PowerState"] == "Off")

    asyncio.run(scenario())


def test_reset_types_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as b:
            assert (await b.client.reset("Nmi")).ids == ["ActionParameterValueNotInList"]
            assert (await b.client.post(RESET)).ids == ["ActionParameterMissing"]
            assert (await b.client.post(RESET, {"ResetType": 5})).ids == ["ActionParameterValueTypeError"]
            assert (await b.client.reset("ForceRestart")).status == 409  # it is off
            info = await b.client.read(f"{SYSTEM}/ResetActionInfo")
            action = (await b.client.read(SYSTEM))["Actions"]["#ComputerSystem.Reset"]
            assert info["Parameters"][0]["AllowableValues"] == action["ResetType@Redfish.AllowableValues"]

    asyncio.run(scenario())


def test_resets_and_cycles_start_the_system_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as b:
            await running(b)
            for number, reset_type in enumerate(("ForceRestart", "PowerCycle", "GracefulRestart"), start=2):
                await b.client.reset(reset_type)
                await eventually(lambda wanted=number: b.work.runs >= wanted)
            assert b.work.asked == [Ending.REBOOT]

    asyncio.run(scenario())


def test_the_boot_override_takes_what_it_lists(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as b:
            boot = {"BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Once"}
            assert (await b.client.patch(SYSTEM, {"Boot": boot})).body["Boot"]["BootSourceOverrideTarget"] == "Cd"
            wrong = {"BootSourceOverrideTarget": "Floppy", "BootSourceOverrideEnabled": "Never", "Other": 1}
            answer = await b.client.patch(SYSTEM, {"Boot": wrong})
            assert answer.ids == ["PropertyValueNotInList", "PropertyValueNotInList", "PropertyUnknown"]
            assert (await b.client.patch(SYSTEM, {"Boot": {"BootSourceOverrideTarget": 1}})).ids == [
                "PropertyValueTypeError"
            ]
            assert (await b.client.patch(SYSTEM, {"PowerState": "On"})).ids == ["PropertyNotWritable"]
            page = await b.client.patch(SYSTEM, {"Boot": {"BootSourceOverrideEnabled": "Disabled"}})
            assert page.body["Boot"]["BootSourceOverrideTarget"] == "None"

    asyncio.run(scenario())


def test_the_clock_can_be_set(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as b:
            manager = f"{V1}/Managers/1"
            answer = await b.client.patch(manager, {"DateTime": "1970-01-01T00:10:00+00:00"})
            assert answer.body["DateTime"].startswith("1970-01-01T00:1")
            b.bmc.record("then")
            entries = (await b.client.read(f"{SYSTEM}/LogServices/SEL/Entries"))["Members"]
            assert entries[-1]["Created"].startswith("1970-01-01T00:1")
            for wrong in ("yesterday", "2026-01-01T00:00:00"):  # a time without a zone is a guess
                assert (await b.client.patch(manager, {"DateTime": wrong})).ids == ["PropertyValueFormatError"]

    asyncio.run(scenario())
