"""Firmware updates as tasks that end at a reset."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from bmc_bench import SYSTEM, V1, Bench, Site, bench, site

from supernode.lab.bmc.hardware import Habits

UPDATE = f"{V1}/UpdateService/Actions/UpdateService.SimpleUpdate"
INVENTORY = f"{V1}/UpdateService/FirmwareInventory"


def image(served: Site, component: str, version: str, kind: str = "test-server") -> str:
    document = {"supernode-lab-firmware": 1, "kind": kind, "component": component, "version": version}
    (served.folder / f"{component}.bin").write_text(json.dumps(document))
    return f"{served.base}/{component}.bin"


async def update(b: Bench, uri: str, **more: Any) -> Any:
    answer = await b.client.post(UPDATE, {"ImageURI": uri, **more})
    assert answer.status == 202, answer
    assert answer.headers["Location"] == answer.body["TaskMonitor"]
    return await b.client.until(answer.body["@odata.id"], lambda task: task["TaskState"] != "Running")


def test_a_bios_update_holds_after_the_next_reset(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path / "bmc") as b, site(tmp_path / "site") as served:
            task = await update(b, image(served, "BIOS", "2.2.0"), Targets=[f"{INVENTORY}/BIOS"])
            assert task["TaskState"] == "Pending"
            assert (await b.client.get(task["TaskMonitor"])).status == 202
            assert (await b.client.read(f"{INVENTORY}/BIOS"))["Version"] == "2.1.3"
            await b.client.reset("On")
            await b.client.until(task["@odata.id"], lambda t: t["TaskState"] == "Completed")
            assert (await b.client.get(task["TaskMonitor"])).status == 200
            assert (await b.client.read(f"{INVENTORY}/BIOS"))["Version"] == "2.2.0"
            assert (await b.client.read(SYSTEM))["BiosVersion"] == "2.2.0"

    asyncio.run(scenario())


def test_a_bmc_update_needs_a_reset_of_the_bmc_which_ends_sessions(tmp_path: Path) -> None:
    async def scenario() -> None:
        habits = Habits(manager_reset_s=0.5)
        async with bench(tmp_path / "bmc", habits=habits) as b, site(tmp_path / "site") as served:
            login = await b.client.post(
                f"{V1}/SessionService/Sessions", {"UserName": "admin", "Password": "delivered-with-the-machine"}
            )
            token = login.headers["X-Auth-Token"]
            await update(b, image(served, "BMC", "1.5.0"))
            await b.client.reset("On")
            await b.client.until(SYSTEM, lambda s: s["BootProgress"]["LastState"] == "SetupEntered")
            assert (await b.client.read(f"{V1}/Managers/1"))["FirmwareVersion"] == "1.4.0"
            assert (
                await b.client.post(f"{V1}/Managers/1/Actions/Manager.Reset", {"ResetType": "ForceRestart"})
            ).status == 204
            await asyncio.sleep(0.3)
            loop = asyncio.get_running_loop()
            asked = loop.time()
            page = await b.client.read(f"{V1}/Managers/1")  # the kernel sends again until the BMC hears
            assert loop.time() - asked > 0.3
            assert page["FirmwareVersion"] == "1.5.0"
            assert (await b.client.get(SYSTEM, X_Auth_Token=token)).status == 401
            assert (await b.client.read(SYSTEM))["PowerState"] == "On"  # the host did not notice

    asyncio.run(scenario())


def test_an_image_that_does_not_fit_ends_the_task_and_changes_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path / "bmc") as b, site(tmp_path / "site") as served:
            (served.folder / "noise").write_bytes(b"\x7fELF" * 10)
            for uri, targets, reason in (
                (image(served, "BIOS", "9", kind="another"), [], "it is for another"),
                (image(served, "NIC", "9"), [], "it is for NIC"),
                (image(served, "BMC", "9"), [f"{INVENTORY}/BIOS"], "it is for BMC"),
                (f"{served.base}/noise", [], "refused"),
                (f"{served.base}/absent", [], "404"),
            ):
                task = await update(b, uri, Targets=targets)
                assert (task["TaskState"], task["TaskStatus"]) == ("Exception", "Critical")
                assert reason in task["Messages"][0]["Message"]
            await b.client.reset("On")
            assert (await b.client.read(f"{INVENTORY}/BIOS"))["Version"] == "2.1.3"

    asyncio.run(scenario())


def test_unknown_targets_and_protocols_are_refused_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as b:
            for wrong in ({"Targets": [f"{INVENTORY}/Fan"]}, {"TransferProtocol": "TFTP"}):
                answer = await b.client.post(UPDATE, {"ImageURI": "http://127.0.0.1:1/x", **wrong})
                assert answer.ids == ["ActionParameterValueNotInList"]
            assert (await b.client.read(f"{V1}/TaskService/Tasks"))["Members"] == []

    asyncio.run(scenario())
