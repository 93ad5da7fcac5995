"""A medium is armed right before it is inserted, and by nobody else; afterwards nothing points to it."""

import asyncio

import pytest
from aiohttp import web
from rack import NAME, SLOT, rack
from test_provider_controllers import INSERT, play, tree

from supernode.boot import enrolment
from supernode.clients.redfish import RedfishError
from supernode.provider.job import RefusedError
from supernode.provider.phases import arming, boot

DIGEST = "ab" * 32
URL = f"https://boot.internal/boot/gpu-001/{DIGEST}.iso"


def state(folder):
    return folder / ".supernode" / folder.name


def is_armed(folder, host="gpu-001"):
    return enrolment.armed(state(folder), host)


async def start(made):
    await boot.run(made)


@pytest.fixture
def no_record(tmp_path, monkeypatch):
    """No boot server stands here: the machine, which is new, has reported nothing."""
    (tmp_path / "machines.yml").write_text(f"schema: 1\nslots:\n  {SLOT}: {{state: new}}\n")

    async def fetch(url, context):
        return None

    async def tls(self):
        return None

    monkeypatch.setattr("supernode.clients.enrolment.fetch", fetch)
    monkeypatch.setattr("supernode.provider.job.Job.media_tls", tls)


def test_a_machine_is_armed_when_its_medium_is_inserted_and_not_before(tmp_path, monkeypatch, no_record):
    seen = []

    def insert(served, body):
        seen.append(is_armed(tmp_path))
        served.resources[INSERT.partition("/Actions")[0]] |= {"Image": body["Image"], "Inserted": True}
        return web.Response(status=204)

    async def restart(self, deadline):
        seen.append("restart")

    async def work(made):
        assert not is_armed(tmp_path)
        await boot.run(made)
        assert all(DIGEST not in line for line in made.scene.log.lines)
        assert any(DIGEST[:12] in line for line in made.scene.log.lines)

    monkeypatch.setattr("supernode.provider.bmc.Bmc.restart", restart)
    media = {"url": URL, "ca": "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----"}
    system = {"Boot": {"BootSourceOverrideMode": "UEFI"}}
    play(tmp_path, tree(system=system, actions={INSERT: insert}), work, media=media)
    assert seen == [True, "restart"]


def test_a_machine_whose_medium_is_refused_is_not_left_armed(tmp_path, no_record):
    refused = tree(actions={INSERT: lambda served, body: web.json_response({}, status=400)})
    with pytest.raises(RedfishError):
        play(tmp_path, refused, start)
    assert not is_armed(tmp_path)


def test_a_machine_in_service_is_never_armed(tmp_path, no_record, monkeypatch):
    called = []
    monkeypatch.setattr(enrolment, "arm", lambda *words: called.append(words))
    with pytest.raises(RefusedError):
        play(tmp_path, tree(), start, inService=True)
    assert called == []


def test_arming_is_in_the_folder_that_the_server_reads(tmp_path):
    async def work(made):
        await arming.arm(made)
        assert is_armed(tmp_path)
        await arming.disarm(made)
        assert not is_armed(tmp_path)

    play(tmp_path, tree(), work)


@pytest.mark.parametrize("media", ["virtual-media", "uefi-http"])
def test_a_deployed_machine_points_to_no_medium(tmp_path, media):

    async def go():
        async with rack(tmp_path) as stand:
            out = await stand.create(bmc={**stand.inputs["bmc"], "media": media}, bios={})
            assert (out["status"], out["reason"]) == ("ready", "")
            assert stand.bmc.state.boot.http_uri == ""
            assert stand.bmc.state.medium is None
            assert not is_armed(tmp_path, NAME)

    asyncio.run(go())
