"""Each fault, injected and taken away; beside it a BMC without one."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from bmc_bench import SYSTEM, V1, bench

from supernode.errors import CouldNotRun
from supernode.lab.bmc.faults import Faults

SLOTS = ("r01u01", "r01u03")


def test_a_dead_bmc_answers_no_packet_and_the_others_do(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path, SLOTS) as b:
            assert (await b.client.get(SYSTEM)).status == 200  # this connection stands
            b.fleet.set_fault("r01u01", "bmc-dead")
            with pytest.raises(asyncio.TimeoutError):
                async with asyncio.timeout(0.5):
                    await b.client.get(SYSTEM)
            with pytest.raises(asyncio.TimeoutError):  # a new one is not even refused
                async with asyncio.timeout(0.5):
                    await asyncio.open_connection(*b.fleet.address("r01u01"))
            assert (await b.clients["r01u03"].get(SYSTEM)).status == 200
            assert b.fleet.faults() == {"r01u01": {"bmc-dead": {}}}
            b.fleet.clear_fault("r01u01", "bmc-dead")
            assert (await b.client.get(SYSTEM)).status == 200
            assert b.fleet.faults() == {}

    asyncio.run(scenario())


def test_a_bmc_that_dies_while_it_answers_stays_silent(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as b:
            b.fleet.set_fault("r01u01", "bmc-slow", delay_s=0.2)
            request = asyncio.create_task(b.client.get(SYSTEM))
            await asyncio.sleep(0.1)
            b.fleet.set_fault("r01u01", "bmc-dead")
            await asyncio.sleep(0.4)
            assert not request.done()
            b.fleet.clear_fault("r01u01")
            assert (await request).status == 200

    asyncio.run(scenario())


def test_a_slow_bmc_is_late_at_its_rate(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path, SLOTS) as b:
            b.fleet.set_fault("r01u01", "bmc-slow", delay_s=0.3)
            started = time.monotonic()
            assert (await b.client.get(SYSTEM)).status == 200
            assert time.monotonic() - started >= 0.3
            started = time.monotonic()
            assert (await b.clients["r01u03"].get(SYSTEM)).status == 200
            assert time.monotonic() - started < 0.3
            b.fleet.set_fault("r01u01", "bmc-slow", delay_s=5, rate=0.0)
            assert (await asyncio.wait_for(b.client.get(SYSTEM), 1)).status == 200

    asyncio.run(scenario())


def test_503_comes_at_its_rate_before_anything_is_done(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as b:
            b.fleet.set_fault("r01u01", "bmc-503", rate=0.3, retry_after_s=2)
            answers = [await b.client.patch(SYSTEM, {"AssetTag": str(n)}) for n in range(200)]
            busy = [answer for answer in answers if answer.status == 503]
            assert 35 <= len(busy) <= 85
            assert busy[0].ids == ["ServiceTemporarilyUnavailable"]
            assert busy[0].headers["Retry-After"] == "2"
            b.fleet.clear_fault("r01u01")
            assert {(await b.client.get(SYSTEM)).status for _ in range(50)} == {200}
            b.fleet.set_fault("r01u01", "bmc-503")
            assert (await b.client.patch(SYSTEM, {"AssetTag": "never"})).status == 503
            b.fleet.clear_fault("r01u01")
            assert (await b.client.read(SYSTEM))["AssetTag"] != "never"

    asyncio.run(scenario())


def test_rates_repeat_from_run_to_run() -> None:
    def strikes(slot: str) -> list[bool]:
        faults = Faults(slot)
        faults.set("bmc-503", rate=0.5)
        return [faults.get("bmc-503") is not None for _ in range(40)]

    assert strikes("r01u01") == strikes("r01u01")
    assert strikes("r01u01") != strikes("r01u02")


def test_a_host_that_never_boots_shows_its_post_code(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path, SLOTS) as b:
            b.works["r01u01"].disk = b.works["r01u03"].disk = True
            b.fleet.set_fault("r01u01", "host-never-boots", code=0x55)
            for slot in SLOTS:
                await b.clients[slot].reset("On")
            await b.clients["r01u03"].until(SYSTEM, lambda s: s["BootProgress"]["LastState"] == "OSRunning")
            codes = f"{SYSTEM}/LogServices/PostCodes/Entries"
            await b.client.until(codes, lambda c: c["Members"] and c["Members"][-1]["MessageArgs"][1] == "0x55")
            page = await b.client.read(SYSTEM)
            assert page["PowerState"] == "On"
            assert page["BootProgress"]["LastState"] == "PCIResourceConfigStarted"
            events = (await b.client.read(f"{SYSTEM}/LogServices/SEL/Entries"))["Members"]
            assert (events[-1]["Severity"], events[-1]["Message"]) == ("Critical", "POST stopped at code 0x55")
            b.fleet.clear_fault("r01u01")
            await b.client.reset("ForceRestart")
            await b.client.until(SYSTEM, lambda s: s["BootProgress"]["LastState"] == "OSRunning")

    asyncio.run(scenario())


def test_a_fault_in_post_leaves_settings_pending(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as b:
            settings = f"{SYSTEM}/Bios/Settings"
            await b.client.patch(settings, {"Attributes": {"QuietBoot": False}})
            b.fleet.set_fault("r01u01", "host-never-boots")
            await b.client.reset("On")
            await b.client.until(f"{SYSTEM}/LogServices/SEL/Entries", lambda e: "stopped" in str(e["Members"]))
            assert (await b.client.read(settings))["Attributes"] == {"QuietBoot": False}

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("name", "arguments", "hint"),
    [
        ("bmc-gone", {}, "known: bmc-dead"),
        ("bmc-slow", {"speed": 1}, "delay_s=10.0"),
        ("bmc-slow", {"delay_s": "long"}, "delay_s=10.0"),
        ("bmc-503", {"rate": True}, "rate=1.0"),
        ("bmc-503", {"rate": 1.5}, "between 0 and 1"),
        ("bmc-slow", {"delay_s": -1}, "not negative"),
    ],
)
def test_a_fault_that_makes_no_sense_is_refused(name: str, arguments: dict[str, object], hint: str) -> None:
    faults = Faults("r01u01")
    with pytest.raises(CouldNotRun) as refused:
        faults.set(name, **arguments)
    assert hint in (refused.value.hint or "")
    assert not faults.active


def test_a_slot_without_a_bmc_is_named(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as b:
            with pytest.raises(CouldNotRun, match="no BMC in this slot"):
                b.fleet.set_fault("r09u09", "bmc-dead")

    asyncio.run(scenario())


def test_closing_does_not_wait_for_a_dead_bmc(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as b:
            b.fleet.set_fault("r01u01", "bmc-slow", delay_s=0.05)
            request = asyncio.create_task(b.client.get(f"{V1}/"))
            await asyncio.sleep(0.02)
            b.fleet.set_fault("r01u01", "bmc-dead")
            started = time.monotonic()
            await b.fleet.close()
            assert time.monotonic() - started < 5
            await asyncio.gather(request, return_exceptions=True)

    asyncio.run(scenario())
