"""The state is gone and the machine is not, or the machine is another: what is found out by looking alone."""

import asyncio

import pytest
from rack import IMAGE, NAME, OTHER_IMAGE, SLOT, rack
from ssh_server import line, new_key

from supernode.clients import ssh
from supernode.lab.bmc import front
from supernode.provider.settings import Settings

HARMLESS = {("POST", "/redfish/v1/SessionService/Sessions")}


@pytest.fixture
def writes(monkeypatch):
    """Everything asked of the controller that is neither a look nor a session."""
    kept, answer = [], front._answer

    async def noted(bmc, request):
        asked = (request.method, request.path.rstrip("/"))
        session = request.method == "DELETE" and "/SessionService/Sessions/" in request.path
        if request.method not in ("GET", "HEAD") and not session and asked not in HARMLESS:
            kept.append(asked)
        return await answer(bmc, request)

    monkeypatch.setattr(front, "_answer", noted)
    return kept


def play(tmp_path, scenario, **changes):
    async def go():
        async with rack(tmp_path, **changes) as stand:
            await scenario(stand)

    asyncio.run(go())


async def lose_state(stand, writes):
    """Deploy the machine, then forget all but its host key; return that."""
    out = await stand.create()
    assert writes  # the known bad: a deployment does write
    stand.records.clear()
    writes.clear()
    return out["hostKeys"][0]


def test_a_machine_in_service_is_found_again_by_looking_alone(tmp_path, writes):
    async def scenario(stand):
        key = await lose_state(stand, writes)
        before = (stand.resets(), stand.host.boots, stand.host.deploys)
        out = await stand.create(inService=True, hostKey=key)
        assert (out["status"], out["reason"], out["installedImage"]) == ("ready", "", IMAGE)
        assert (out["hostKeys"], out["powerState"]) == ([key], "On")
        assert out["biosApplied"] == stand.inputs["bios"]
        assert writes == []
        assert (stand.resets(), stand.host.boots, stand.host.deploys) == before
        assert stand.diff(out, inService=True, hostKey=key) == {}

    play(tmp_path, scenario)


def test_without_a_recorded_key_it_is_not_taken_on_trust(tmp_path, writes):
    async def scenario(stand):
        await lose_state(stand, writes)
        out = await stand.create(inService=True)
        assert (out["status"], out["phase"]) == ("failed", "login")
        assert f"{SLOT} --host-key" in out["reason"]
        assert writes == []

    play(tmp_path, scenario)


@pytest.mark.parametrize("in_service", [True, False])
def test_a_report_does_not_overrule_the_recorded_key(tmp_path, writes, in_service):
    """Known bad: another system answers, and the record under the machine's name holds that system's key."""

    async def scenario(stand):
        await lose_state(stand, writes)
        _, recorded = new_key()
        stand.records[NAME] = {"phase": "firstboot", "state": "ok", "image": IMAGE, "at": 1}
        stand.records[NAME]["host_keys"] = [line(stand.host.key)]
        out = await stand.create(inService=in_service, hostKey=line(recorded))
        if in_service:
            assert (out["status"], out["phase"], out["hostKeys"]) == ("failed", "login", [line(recorded)])
            assert ssh.fingerprint(line(recorded)) in out["reason"]
            assert writes == []
        assert stand.host.deploys == (1 if in_service else 2)

    play(tmp_path, scenario)


def test_in_service_with_another_image_it_stays_and_the_reason_says_so(tmp_path, writes):
    async def scenario(stand):
        key = await lose_state(stand, writes)
        stand.host.image = OTHER_IMAGE
        out = await stand.create(inService=True, hostKey=key)
        assert (out["status"], out["installedImage"]) == ("ready", OTHER_IMAGE)
        assert "in service and would be installed anew" in out["reason"]
        assert writes == []
        assert stand.diff(out, inService=True) == {"image": "update"}
        stand.settings = Settings(reinstall=frozenset({SLOT}))
        assert (await stand.update(out, inService=True, hostKey=key))["installedImage"] == IMAGE

    play(tmp_path, scenario)


def test_a_machine_that_was_found_off_is_asked_before_it_is_installed_anew(tmp_path, writes):
    async def scenario(stand):
        key = await lose_state(stand, writes)
        await stand.machine.power_off(hard=True)
        out = await stand.create(hostKey=key)
        assert (out["status"], out["powerState"], out["hostKeys"]) == ("ready", "On", [key])
        assert stand.host.deploys == 1
        await stand.machine.power_off(hard=True)
        stand.host.image = OTHER_IMAGE
        out = await stand.create(hostKey=key)
        assert (out["status"], stand.host.deploys) == ("ready", 2)
        assert out["hostKeys"] == [line(stand.host.key)] != [key]

    play(tmp_path, scenario)


def test_the_recorded_key_survives_a_first_contact_that_fails(tmp_path, writes):
    async def scenario(stand):
        key = await lose_state(stand, writes)
        (tmp_path / "bmc-password").rename(tmp_path / "elsewhere")
        out = await stand.create(inService=True, hostKey=key)
        assert (out["status"], out["phase"], out["hostKeys"]) == ("failed", "contact", [key])
        (tmp_path / "elsewhere").rename(tmp_path / "bmc-password")
        out = await stand.update(out, inService=True, hostKey=key)
        assert (out["status"], out["hostKeys"]) == ("ready", [key])
        assert writes == []

    play(tmp_path, scenario)


def test_another_machine_in_the_slot_is_seen_by_a_look_and_told_until_somebody_says_so(tmp_path, writes):
    async def scenario(stand):
        out = await stand.create(inService=True, hostKey=await lose_state(stand, writes))
        stand.inputs["identity"] = {"system_serial": "SN-THAT-LEFT"}
        out["identity"] = stand.inputs["identity"]
        found = await stand.read(out)
        assert (found.outputs["status"], found.outputs["phase"]) == ("failed", "contact")
        for said in ("SN-THAT-LEFT", stand.machine.identity.system_serial, f"assign … {SLOT} --replace"):
            assert said in found.outputs["reason"]
        assert stand.diff(found.outputs, inService=True) == {"status": "update"}
        again = await stand.update(found.outputs, inService=True)
        assert (again["status"], again["phase"]) == ("failed", "contact")
        assert writes == []
        stand.inputs["identity"] = {"system_serial": stand.machine.identity.system_serial}  # it is back
        again["identity"] = stand.inputs["identity"]
        assert (await stand.update(again, inService=True))["status"] == "ready"

    play(tmp_path, scenario)
