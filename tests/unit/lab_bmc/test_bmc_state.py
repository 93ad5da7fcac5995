"""What a BMC keeps when the daemon is started again."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest
from bmc_bench import DRIVE, INSERT, PASSWORD, SETTINGS, SYSTEM, V1, bench, site

from supernode.errors import CouldNotRun
from supernode.lab.bmc import state
from supernode.lab.bmc.state import Account, FirmwareTask, LogEntry, Medium, State, Store


def test_settings_media_and_log_outlive_the_daemon_and_sessions_do_not(tmp_path: Path, deploy_iso: Path) -> None:
    async def scenario() -> None:
        async with site(tmp_path / "site") as served:
            await asyncio.to_thread(shutil.copy, deploy_iso, served.folder / "x.iso")
            async with bench(tmp_path / "bmc") as b:
                login = await b.client.post(
                    f"{V1}/SessionService/Sessions", {"UserName": "admin", "Password": PASSWORD}
                )
                token = login.headers["X-Auth-Token"]
                await b.client.patch(SETTINGS, {"Attributes": {"SriovEnable": "Enabled"}})
                await b.client.post(INSERT, {"Image": f"{served.base}/x.iso"})
                boot = {"BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Once"}
                before = (await b.client.patch(SYSTEM, {"Boot": boot})).body
                log = await b.client.read(f"{SYSTEM}/LogServices/SEL/Entries")
            async with bench(tmp_path / "bmc") as b:
                assert (await b.client.read(SYSTEM))["Boot"] == before["Boot"]
                assert (await b.client.read(SYSTEM))["UUID"] == before["UUID"]
                assert (await b.client.read(DRIVE))["Inserted"] is True
                assert (await b.client.read(f"{SYSTEM}/LogServices/SEL/Entries"))["Members"] == log["Members"]
                assert (await b.client.get(SYSTEM, X_Auth_Token=token)).status == 401
                await b.client.reset("On")
                await b.client.until(SYSTEM, lambda s: b.work.deployed)
                assert (await b.client.read(f"{SYSTEM}/Bios"))["Attributes"]["SriovEnable"] == "Enabled"

    asyncio.run(scenario())


def test_an_answer_comes_after_its_change_is_on_disk(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as b:
            for number in range(5):
                await b.client.patch(SYSTEM, {"AssetTag": f"tag {number}"})
                text = (tmp_path / "bmc/r01u01/bmc.json").read_text()
                assert json.loads(text)["asset_tag"] == f"tag {number}"

    asyncio.run(scenario())


def test_an_update_that_was_loading_is_over_after_a_restart(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as b:
            b.bmc.state.tasks.append(FirmwareTask("7", "Firmware update", "Running", 0.0))
            b.bmc.store.touch()
        async with bench(tmp_path) as b:
            assert (await b.client.read(f"{V1}/TaskService/Tasks/7"))["TaskState"] == "Exception"

    asyncio.run(scenario())


def test_every_field_goes_through_the_file() -> None:
    full = State(
        accounts=[Account("1", "admin", "Administrator", "aa:bb", change_required=True)],
        bios={"A": 1},
        bios_pending={"A": 2},
        firmware={"BMC": "1"},
        tasks=[FirmwareTask("1", "x", "Pending", 1.0, "BIOS", "2", None, [("OK", "text")])],
        medium=Medium("https://x/y.iso", "media.iso"),
        log=[LogEntry(1, 1.5, "OK", "text")],
        verify_media_certificate=True,
    )
    assert state.read(state.write(full)) == full
    assert state.read(state.write(State())) == State()


@pytest.mark.parametrize("text", ["", "{}", '{"schema": 99}', "[]"])
def test_a_file_of_another_kind_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "bmc.json").write_text(text)
    with pytest.raises(CouldNotRun, match="no BMC state of this version"):
        Store(tmp_path / "bmc.json")


def test_reading_writes_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as b:
            await b.client.read(SYSTEM)
            file = tmp_path / "bmc/r01u01/bmc.json"
            before = file.stat().st_ino
            await b.client.read(f"{SYSTEM}/Bios")
            assert file.stat().st_ino == before
            b.bmc.record("an event from below")  # what happens without a request is on disk by the next one
            await b.client.read(SYSTEM)
            assert "an event from below" in file.read_text()

    asyncio.run(scenario())


def test_parallel_saves_leave_one_whole_and_newest_file(tmp_path: Path) -> None:
    async def scenario() -> None:
        store = Store(tmp_path / "bmc.json")
        for number in range(20):
            store.state.asset_tag = str(number)
            store.touch()
            await asyncio.gather(*(store.save() for _ in range(3)))
        store.state.asset_tag = "last"
        store.touch()
        await asyncio.gather(*(store.save() for _ in range(10)))

    asyncio.run(scenario())
    assert state.read((tmp_path / "bmc.json").read_text()).asset_tag == "last"
    assert [path.name for path in tmp_path.iterdir()] == ["bmc.json"]
