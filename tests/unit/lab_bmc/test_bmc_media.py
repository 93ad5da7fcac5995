"""Virtual media and HTTP boot: loading, trust, and what the machine boots from."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from bmc_bench import DRIVE, INSERT, SYSTEM, Bench, Site, bench, eventually, site

EJECT = f"{DRIVE}/Actions/VirtualMedia.EjectMedia"
CERTIFICATES = f"{DRIVE}/Certificates"
ONCE = {"Boot": {"BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Once"}}


async def insert(b: Bench, url: str) -> None:
    answer = await b.client.post(INSERT, {"Image": url})
    assert answer.status == 204, answer


async def events(b: Bench) -> str:
    entries = (await b.client.read(f"{SYSTEM}/LogServices/SEL/Entries"))["Members"]
    return "\n".join(f"{entry['Severity']}: {entry['Message']}" for entry in entries)


def offer(served: Site, iso: Path) -> str:
    shutil.copy(iso, served.folder / "gpu-001.iso")
    return f"{served.base}/gpu-001.iso"


def test_an_image_is_in_the_drive_from_insert_to_eject(tmp_path: Path, deploy_iso: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path / "bmc") as b, site(tmp_path / "site", secure=False) as served:
            url = offer(served, deploy_iso)
            assert (await b.client.read(DRIVE))["Inserted"] is False
            await insert(b, url)
            page = await b.client.read(DRIVE)
            assert (page["Inserted"], page["Image"], page["ImageName"]) == (True, url, "gpu-001.iso")
            assert page["ConnectedVia"] == "URI"
            second = await b.client.post(INSERT, {"Image": url})
            assert (second.status, second.ids) == (409, ["ResourceInUse"])
            assert (await b.client.post(EJECT)).status == 204
            assert (await b.client.read(DRIVE))["Image"] is None
            assert not list((tmp_path / "bmc").rglob("*.iso"))
            assert (await b.client.post(EJECT)).status == 204

    asyncio.run(scenario())


def test_what_cannot_be_loaded_leaves_the_drive_empty(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path / "bmc") as b, site(tmp_path / "site") as served:
            for url, wanted in (
                (f"{served.base}/missing.iso", "CouldNotEstablishConnection"),
                ("https://127.0.0.1:1/x.iso", "CouldNotEstablishConnection"),
                ("nfs://server/x.iso", "ActionParameterValueNotInList"),
                ("https://[bad/x.iso", "ActionParameterValueNotInList"),
            ):
                assert (await b.client.post(INSERT, {"Image": url})).ids == [wanted], url
            assert (await b.client.post(INSERT)).ids == ["ActionParameterMissing"]
            wrong = {"Image": "https://x/y.iso", "TransferMethod": "Upload"}
            assert (await b.client.post(INSERT, wrong)).ids == ["ActionParameterValueNotInList"]
            assert (await b.client.read(DRIVE))["Inserted"] is False
            assert not list((tmp_path / "bmc").rglob("*.iso*"))

    asyncio.run(scenario())


def test_tls_is_verified_only_when_asked_and_then_against_what_was_uploaded(tmp_path: Path, deploy_iso: Path) -> None:
    async def scenario() -> None:
        async with (
            bench(tmp_path / "bmc") as b,
            site(tmp_path / "site") as served,
            site(tmp_path / "other") as other,
        ):
            url = offer(served, deploy_iso)
            await insert(b, url)  # factory setting: anyone is trusted
            await b.client.post(EJECT)
            assert (await b.client.patch(DRIVE, {"VerifyCertificate": True})).body["VerifyCertificate"] is True
            refused = await b.client.post(INSERT, {"Image": url})
            assert "no certificate was uploaded" in refused.body["error"]["message"]
            wrong = await b.client.post(CERTIFICATES, {"CertificateString": other.ca, "CertificateType": "PEM"})
            assert wrong.status == 201
            refused = await b.client.post(INSERT, {"Image": url})
            assert "not trusted" in refused.body["error"]["message"]
            assert served.asked == ["GET /gpu-001.iso"]  # no request got through to the server
            await b.client.post(CERTIFICATES, {"CertificateString": served.ca})
            await insert(b, url)
            await b.client.post(EJECT)
            assert (await b.client.ask("DELETE", f"{CERTIFICATES}/2")).status == 204
            assert (await b.client.post(INSERT, {"Image": url})).status == 400

    asyncio.run(scenario())


def test_only_single_new_certificates_are_taken(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path / "bmc") as b, site(tmp_path / "site") as served, site(tmp_path / "other") as other:
            for wrong, wanted in (
                ({"CertificateString": "nonsense"}, "PropertyValueFormatError"),
                ({"CertificateString": served.ca + other.ca}, "PropertyValueFormatError"),
                ({"CertificateString": served.ca, "CertificateType": "PKCS7"}, "PropertyValueNotInList"),
                ({}, "PropertyMissing"),
            ):
                assert (await b.client.post(CERTIFICATES, wrong)).ids == [wanted]
            assert (await b.client.post(CERTIFICATES, {"CertificateString": served.ca})).status == 201
            assert (await b.client.post(CERTIFICATES, {"CertificateString": served.ca})).ids == [
                "ResourceAlreadyExists"
            ]
            page = await b.client.read(f"{CERTIFICATES}/1")
            assert page["Subject"]["CommonName"] == "supernode lab BMC authority"
            assert (await b.client.get(f"{CERTIFICATES}/9")).status == 404

    asyncio.run(scenario())


def test_once_boots_the_medium_one_time(tmp_path: Path, deploy_iso: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path / "bmc") as b, site(tmp_path / "site") as served:
            await insert(b, offer(served, deploy_iso))
            await b.client.patch(SYSTEM, ONCE)
            await b.client.reset("On")
            page = await b.client.until(SYSTEM, lambda s: s["BootProgress"]["LastState"] == "OSRunning" and b.work.runs)
            assert page["Boot"]["BootSourceOverrideEnabled"] == "Disabled"
            assert page["Boot"]["BootSourceOverrideTarget"] == "None"
            assert len(b.work.deployed) == 1
            media = b.work.deployed[0]
            assert media.image_digest == "aa"
            assert media.disk == "/dev/disk/by-id/virtio-*"
            assert media.token == "one-time"
            assert "one-time" not in repr(media)
            assert set(media.seed) == {"meta-data", "user-data", "network-config"}

    asyncio.run(scenario())


def test_continuous_boots_it_until_it_is_taken_away(tmp_path: Path, deploy_iso: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path / "bmc") as b, site(tmp_path / "site") as served:
            await insert(b, offer(served, deploy_iso))
            await b.client.patch(SYSTEM, {"Boot": {**ONCE["Boot"], "BootSourceOverrideEnabled": "Continuous"}})
            await b.client.reset("On")
            await eventually(lambda: len(b.work.deployed) >= 3)
            assert b.work.runs == 0
            await b.client.post(EJECT)
            await b.client.until(SYSTEM, lambda s: b.work.runs)

    asyncio.run(scenario())


def test_a_medium_that_was_not_chosen_is_not_booted(tmp_path: Path, deploy_iso: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path / "bmc") as b, site(tmp_path / "site") as served:
            await insert(b, offer(served, deploy_iso))
            await b.client.reset("On")
            await b.client.until(SYSTEM, lambda s: s["BootProgress"]["LastState"] == "SetupEntered")
            assert b.work.deployed == []
            lines = (await b.client.read(f"{SYSTEM}/LogServices/HostLogger/Entries"))["Members"]
            assert lines[-1]["Message"].startswith("no bootable device")

    asyncio.run(scenario())


def test_a_medium_that_cannot_be_read_leads_on_to_the_disk_and_is_told(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path / "bmc") as b, site(tmp_path / "site") as served:
            (served.folder / "broken.iso").write_bytes(b"\0" * 70000)
            await insert(b, f"{served.base}/broken.iso")
            await b.client.patch(SYSTEM, ONCE)
            b.work.disk = True
            await b.client.reset("On")
            await b.client.until(SYSTEM, lambda s: b.work.runs)
            assert b.work.deployed == []
            assert "Warning: Boot from Cd failed" in await events(b)

    asyncio.run(scenario())


def test_http_boot_loads_and_always_verifies(tmp_path: Path, deploy_iso: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path / "bmc") as b, site(tmp_path / "site") as served:
            boot = {**ONCE["Boot"], "BootSourceOverrideTarget": "UefiHttp", "HttpBootUri": offer(served, deploy_iso)}
            await b.client.patch(SYSTEM, {"Boot": boot})
            await b.client.reset("On")
            await b.client.until(SYSTEM, lambda s: s["BootProgress"]["LastState"] == "SetupEntered")
            assert "Warning: Boot from UefiHttp failed" in await events(b)
            await b.client.reset("ForceOff")
            await b.client.post(f"{SYSTEM}/Boot/Certificates", {"CertificateString": served.ca})
            await b.client.patch(SYSTEM, {"Boot": boot})
            await b.client.reset("On")
            await b.client.until(SYSTEM, lambda s: b.work.deployed)

    asyncio.run(scenario())


def test_the_deploy_step_does_not_hear_the_power_button(tmp_path: Path, deploy_iso: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path / "bmc") as b, site(tmp_path / "site") as served:
            b.work.deploy_gate.clear()
            await insert(b, offer(served, deploy_iso))
            await b.client.patch(SYSTEM, ONCE)
            await b.client.reset("On")
            await b.client.until(SYSTEM, lambda s: s["BootProgress"]["LastState"] == "OSRunning")
            await b.client.reset("GracefulShutdown")
            await b.client.reset("GracefulRestart")
            assert (await b.client.read(SYSTEM))["PowerState"] == "On"
            await b.client.reset("ForceOff")
            assert (await b.client.read(SYSTEM))["PowerState"] == "Off"
            assert b.work.deployed == []

    asyncio.run(scenario())
