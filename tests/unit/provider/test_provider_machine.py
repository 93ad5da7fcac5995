"""A machine's whole way over Redfish, against the lab's BMC: deployed, adopted, drifted, mended, refused, late."""

import asyncio
import dataclasses

import pytest
from rack import IMAGE, NAME, OTHER_IMAGE, PASSWORD, SLOT, dump, rack
from ssh_server import line, new_key

from supernode.clients import redfish, ssh
from supernode.provider import bmc, machine
from supernode.provider.phases import arming
from supernode.provider.resource import InitFailedError
from supernode.provider.settings import Settings


def play(tmp_path, scenario, **changes):
    async def go():
        async with rack(tmp_path, **changes) as stand:
            await scenario(stand)

    asyncio.run(go())


def test_an_empty_machine_is_deployed(tmp_path):
    async def scenario(stand):
        out = await stand.create()
        assert (out["status"], out["phase"], out["reason"]) == ("ready", "", "")
        assert out["installedImage"] == IMAGE == stand.host.image
        assert out["hostKeys"] == [" ".join(stand.records[NAME]["host_keys"][0].split()[:2])]
        assert out["serial"] == stand.machine.identity.system_serial
        assert out["powerState"] == "On"
        assert stand.bmc.state.bios["SriovEnable"] == "Enabled"
        assert out["biosApplied"] == {"SriovEnable": "Enabled", "WorkloadProfile": "HPC"}
        assert out["firmwareFound"] == {"BMC": "1.4.0", "BIOS": "2.1.3"}
        assert stand.host.deploys == 1
        assert stand.bmc.state.medium is None
        assert stand.bmc.state.boot.enabled == "Disabled"
        assert stand.bmc.state.verify_media_certificate
        assert stand.diff(out) == {}
        assert {line.partition(":")[0] for line in stand.log.lines} >= {"contact", "bios", "boot", "deploy", "login"}
        assert PASSWORD not in dump(out) + "".join(stand.log.lines)

    play(tmp_path, scenario)


def test_sessions_are_released(tmp_path):
    async def scenario(stand):
        out = await stand.create()
        await stand.read(out)
        assert stand.bmc.access.sessions() == []

    play(tmp_path, scenario)


def test_create_adopts_a_machine_that_runs_the_image(tmp_path):
    async def scenario(stand):
        first = await stand.create()
        before = stand.resets()
        again = await stand.create()
        assert stand.resets() == before
        assert stand.host.deploys == 1
        assert again == first

    play(tmp_path, scenario)


def test_a_machine_that_answers_under_another_key_is_not_adopted(tmp_path):
    async def scenario(stand):
        await stand.create()
        stand.records[NAME]["host_keys"] = [line(new_key()[1])]
        out = await stand.create()
        assert stand.host.deploys == 2
        assert out["status"] == "ready"

    play(tmp_path, scenario)


def test_another_machine_in_the_slot_is_not_touched(tmp_path):
    async def scenario(stand):
        identity = {"system_serial": "SN-OF-ANOTHER", "uuid": stand.machine.identity.uuid}
        out = await stand.create(identity=identity)
        assert (out["status"], out["phase"]) == ("failed", "contact")
        assert "'SN-OF-ANOTHER'" in out["reason"]
        assert repr(stand.machine.identity.system_serial) in out["reason"]
        assert stand.resets() == []
        assert any("gpu-001: failed in phase contact" in w for w in stand.log.warnings)

    play(tmp_path, scenario)


def test_an_identity_that_cannot_be_compared_is_not_trusted(tmp_path):
    async def scenario(stand):
        out = await stand.create(identity={"board_serial": "MB-1", "chassis_serial": ""})
        assert out["phase"] == "contact"
        assert stand.resets() == []

    play(tmp_path, scenario)


def test_power_drift_shows_and_is_mended_without_deployment(tmp_path):
    async def scenario(stand):
        out = await stand.create()
        await stand.machine.power_off(hard=True)
        found = await stand.read(out)
        assert found.resource_id == SLOT
        assert (found.outputs["powerState"], found.outputs["power"], found.inputs["power"]) == ("Off", "Off", "Off")
        assert stand.diff(found.outputs) == {"power": "update"}
        mended = await stand.update(found.outputs)
        assert (mended["status"], mended["powerState"]) == ("ready", "On")
        assert stand.host.deploys == 1
        assert stand.diff(mended) == {}

    play(tmp_path, scenario)


def test_bios_drift_shows_and_is_mended(tmp_path):
    async def scenario(stand):
        out = await stand.create()
        stand.bmc.state.bios["WorkloadProfile"] = "General"
        found = await stand.read(out)
        assert stand.diff(found.outputs) == {"bios.WorkloadProfile": "update"}
        mended = await stand.update(found.outputs)
        assert mended["status"] == "ready"
        assert stand.bmc.state.bios["WorkloadProfile"] == "HPC"
        assert stand.host.deploys == 1
        assert stand.resets()[-1] == "GracefulRestart"  # a running system is asked

    play(tmp_path, scenario)


def test_image_drift_shows(tmp_path):
    async def scenario(stand):
        out = await stand.create()
        stand.host.image = OTHER_IMAGE
        found = await stand.read(out)
        assert found.outputs["installedImage"] == OTHER_IMAGE
        assert "image" in stand.diff(found.outputs)

    play(tmp_path, scenario)


def test_a_look_ends_with_its_deadline_and_changes_nothing(tmp_path, monkeypatch):
    async def scenario(stand):
        out = await stand.create()
        monkeypatch.setattr(machine, "look", lambda _job: asyncio.sleep(60))
        inputs = {**stand.inputs, "deadlineS": 1}
        found = await asyncio.wait_for(stand.resource.read(stand.scene, SLOT, out, inputs), 30)
        assert found.outputs == out
        assert "cannot be read" in stand.log.warnings[-1]
        assert "not all was told within 1 s" in stand.log.warnings[-1]

    play(tmp_path, scenario)


def test_a_dead_controller_changes_nothing_in_the_state(tmp_path):
    async def scenario(stand):
        out = await stand.create()
        stand.fleet.set_fault(SLOT, "bmc-503")
        found = await stand.read(out)
        assert found.outputs == out
        assert any("cannot be read" in w for w in stand.log.warnings)

    play(tmp_path, scenario)


def test_a_machine_in_service_is_refused_and_left_running(tmp_path):
    async def scenario(stand):
        out = await stand.create()
        before = stand.resets()
        wanted = {"inService": True, "image": OTHER_IMAGE}
        assert "image" in stand.diff(out, **wanted)
        kept = await stand.update(out, **wanted)
        assert stand.resets() == before
        assert kept["status"] == "ready"
        assert kept["image"] == IMAGE
        assert "in service" in kept["reason"]
        assert any("left as it is" in w for w in stand.log.warnings)
        assert "image" in stand.diff(kept, **wanted)  # it stays an update

    play(tmp_path, scenario)


def test_in_service_and_confirmed_is_reinstalled(tmp_path):
    async def scenario(stand):
        out = await stand.create()
        stand.settings = Settings.read({"reinstall": f'["{SLOT}"]', "plan": "0123abcd", "until": "9999999999"})
        stand.host.lies = OTHER_IMAGE
        new = await stand.update(out, inService=True, image=OTHER_IMAGE)
        assert (new["status"], new["installedImage"]) == ("ready", OTHER_IMAGE)
        assert stand.host.deploys == 2

    play(tmp_path, scenario)


def test_the_provider_looks_again_before_it_acts(tmp_path):
    """The plan was made when the machine was new; since then it went into service."""

    async def scenario(stand):
        out = await stand.create()
        (tmp_path / "machines.yml").write_text(f"schema: 1\nslots:\n  {SLOT}: {{state: in_service}}\n")
        before = stand.resets()
        kept = await stand.update(out, image=OTHER_IMAGE)
        assert stand.resets() == before
        assert kept["image"] == IMAGE
        assert any("in service" in w for w in stand.log.warnings)
        (tmp_path / "machines.yml").write_text(f"schema: 1\nslots:\n  {SLOT}: {{state: drained}}\n")
        stand.host.lies = OTHER_IMAGE
        assert (await stand.update(out, image=OTHER_IMAGE))["installedImage"] == OTHER_IMAGE

    play(tmp_path, scenario)


def test_in_service_and_off_is_only_switched_on(tmp_path):
    async def scenario(stand):
        await stand.create()
        await stand.machine.power_off(hard=True)
        out = await stand.create(inService=True)
        assert (out["status"], out["powerState"]) == ("ready", "On")
        assert stand.host.deploys == 1

    play(tmp_path, scenario)


def test_a_quarantined_machine_is_never_contacted(tmp_path):
    async def scenario(stand):
        out = await stand.create(state="quarantined", identity={})
        assert (out["status"], out["phase"]) == ("failed", "quarantined")
        found = await stand.resource.read(stand.scene, SLOT, out, stand.wanted(state="quarantined"))
        await stand.resource.delete(stand.scene, out)
        assert found.outputs == out
        assert stand.diff(out, state="quarantined", image=OTHER_IMAGE) == {}
        assert stand.bmc.state.log == []

    play(tmp_path, scenario)


def test_a_host_that_never_boots_is_late_with_evidence(tmp_path):
    async def scenario(stand):
        stand.fleet.set_fault(SLOT, "host-never-boots", code=0x92)
        out = await stand.create(bios={}, deadlineS=4)
        assert (out["status"], out["phase"]) == ("late", "deploy")
        text = "\n".join(out["evidence"])
        assert "POST code: Boot 1; POST code 0x92" in text
        assert "console: POST stopped at code 0x92" in text
        assert "event log:" in text
        assert "POST stopped" in text
        assert "exchange:" in text
        assert PASSWORD not in text
        assert stand.diff(out)  # stays an update
        stand.fleet.clear_fault(SLOT)
        mended = await stand.update(out, bios={})
        assert mended["status"] == "ready"
        assert mended["evidence"] == []

    play(tmp_path, scenario)


def test_bios_that_never_applies_is_late(tmp_path):
    async def scenario(stand):
        stand.fleet.set_fault(SLOT, "host-never-boots")
        out = await stand.create(deadlineS=4)
        assert (out["status"], out["phase"]) == ("late", "bios")
        assert "SriovEnable" in out["reason"]

    play(tmp_path, scenario)


@pytest.mark.parametrize(
    ("bios", "says"),
    [
        ({"SriovEnabled": "Enabled"}, "there is no attribute SriovEnabled (close: SriovEnable"),
        ({"WorkloadProfile": "Fast"}, "WorkloadProfile may be General, HPC, not 'Fast'"),
        ({"BootTimeoutS": 99}, "BootTimeoutS may be 0 to 60, not 99"),
        ({"BootTimeoutS": "5"}, "takes a value of type Integer"),
    ],
)
def test_wrong_bios_names_and_values_are_told_before_anything_restarts(tmp_path, bios, says):
    async def scenario(stand):
        out = await stand.create(bios=bios)
        assert (out["status"], out["phase"]) == ("failed", "bios")
        assert says in out["reason"]
        assert stand.resets() == []

    play(tmp_path, scenario)


def test_firmware_off_the_baseline_is_reported_not_flashed(tmp_path):
    async def scenario(stand):
        out = await stand.create(firmware={"BIOS": "2.2.0", "BMC": "1.4.0", "NIC": "28.1"}, bios={})
        assert (out["status"], out["phase"]) == ("failed", "firmware")
        assert "BIOS: baseline 2.2.0, found 2.1.3" in out["reason"]
        assert "NIC: baseline 28.1, not listed" in out["reason"]
        assert stand.host.deploys == 0

    play(tmp_path, scenario)


def test_a_failed_deploy_step_is_told_in_its_own_words(tmp_path):
    async def scenario(stand):
        stand.host.fails = "no disk matches virtio-*"
        out = await stand.create(bios={})
        assert (out["status"], out["phase"]) == ("failed", "deploy")
        assert "no disk matches virtio-*" in out["reason"]

    play(tmp_path, scenario)


def test_a_wrong_image_is_noticed(tmp_path):
    async def scenario(stand):
        stand.host.lies = OTHER_IMAGE
        out = await stand.create(bios={})
        assert out["status"] == "failed"
        assert OTHER_IMAGE in out["reason"]

    play(tmp_path, scenario)


def test_a_host_that_hangs_after_its_report_is_late_in_login(tmp_path):
    async def scenario(stand):
        out = await stand.create(bios={})
        stand.host.mute = True
        await stand.machine.power_off(hard=True)
        found = await stand.read(out)
        late = await stand.update(found.outputs, bios={}, deadlineS=3)
        assert (late["status"], late["phase"]) == ("late", "login")
        assert late["powerState"] == "On"

    play(tmp_path, scenario)


def test_media_from_a_server_that_cannot_be_verified_is_not_booted(tmp_path):
    async def scenario(stand):
        media = {**stand.inputs["media"], "ca": str(stand.fleet.authority.certificate)}  # the wrong authority
        out = await stand.create(media=media, bios={})
        assert (out["status"], out["phase"]) == ("failed", "boot")
        assert stand.resets() == []

    play(tmp_path, scenario)


def test_a_busy_and_slow_controller_is_lived_with(tmp_path):
    async def scenario(stand):
        stand.fleet.set_fault(SLOT, "bmc-503", rate=0.15)
        stand.fleet.set_fault(SLOT, "bmc-slow", delay_s=0.05, rate=0.3)
        stand.resource._patience = stand.resource._patience.__class__(answer_s=5, tries=8, first_s=0.02, longest_s=0.1)
        out = await stand.create()
        assert out["status"] == "ready", out["reason"]

    play(tmp_path, scenario)


def test_a_wrong_password_is_a_failed_contact(tmp_path):
    async def scenario(stand):
        (tmp_path / "bmc-password").write_text("not-the-password")
        out = await stand.create()
        assert (out["status"], out["phase"]) == ("failed", "contact")
        assert "not-the-password" not in dump(out)

    play(tmp_path, scenario)


def test_a_missing_password_file_is_a_failed_contact(tmp_path):
    async def scenario(stand):
        (tmp_path / "bmc-password").unlink()
        out = await stand.create()
        assert (out["status"], out["phase"]) == ("failed", "contact")
        assert "file:bmc-password" in out["reason"]

    play(tmp_path, scenario)


def test_strict_fails_and_keeps_what_there_is(tmp_path):
    async def scenario(stand):
        with pytest.raises(InitFailedError) as caught:
            await stand.create(firmware={"BIOS": "9"}, bios={}, strict=True)
        assert caught.value.resource_id == SLOT
        assert caught.value.outputs["phase"] == "firmware"

    play(tmp_path, scenario)


def test_delete_leaves_the_power_and_empties_the_drive(tmp_path):
    async def scenario(stand):
        out = await stand.create()
        await stand.bmc.media.insert(stand.inputs["media"]["url"])
        await stand.resource.delete(stand.scene, out)
        assert stand.bmc.state.medium is None
        assert stand.machine.power_state() == "On"
        stand.settings = Settings(power_off_on_delete=True)
        await stand.resource.delete(stand.scene, {**out, "inService": True})
        assert stand.machine.power_state() == "On"  # in service: never
        await stand.resource.delete(stand.scene, out)
        assert stand.machine.power_state() == "Off"

    play(tmp_path, scenario)


def test_a_new_machine_in_the_slot_is_an_update_that_installs_it(tmp_path):
    async def scenario(stand):
        old = await stand.create()
        former = {**old, "identity": {"system_serial": "SN-FORMER"}}
        assert "identity.system_serial" in stand.diff(former)
        new = await stand.update(former)
        assert new["status"] == "ready"
        assert stand.host.deploys == 2

    play(tmp_path, scenario)


def test_a_machine_that_boots_over_https_by_itself(tmp_path):
    async def scenario(stand):
        out = await stand.create(bmc={**stand.inputs["bmc"], "media": "uefi-http"}, bios={})
        assert (out["status"], out["reason"]) == ("ready", "")
        assert stand.host.deploys == 1
        assert stand.bmc.state.medium is None
        assert stand.bmc.state.certificates["boot"]
        assert not stand.bmc.state.certificates["media"]

    play(tmp_path, scenario)


def test_an_import_reads_what_stands_there(tmp_path, monkeypatch):
    async def scenario(stand):
        made = await stand.create()

        async def from_documents(scene, resource_id):
            assert resource_id == SLOT
            return stand.wanted(firmware={})

        monkeypatch.setattr("supernode.provider.importing.machine", from_documents)
        found = await stand.resource.read(stand.scene, SLOT, {}, {})
        assert found.resource_id == SLOT
        assert found.outputs["status"] == "ready"
        assert found.outputs["installedImage"] == IMAGE
        assert found.outputs["hostKeys"] == made["hostKeys"]
        assert found.inputs["bios"] == stand.inputs["bios"]
        assert "boot" not in {line.partition(":")[0] for line in stand.log.lines[-3:]}
        stand.inputs["bios"] = {**stand.inputs["bios"], "BootTimeoutS": 7}
        assert stand.diff(found.outputs, firmware={}) == {"bios.BootTimeoutS": "add"}

    play(tmp_path, scenario)


def test_a_system_that_does_not_go_down_is_forced(tmp_path):
    async def scenario(stand):
        out = await stand.create()
        stand.bmc.state.bios["WorkloadProfile"] = "General"
        stand.host.deaf = True
        mended = await stand.update((await stand.read(out)).outputs, deadlineS=8)
        assert mended["status"] == "ready", mended["reason"]
        assert stand.resets()[-3:] == ["GracefulRestart", "ForceOff", "On"]

    play(tmp_path, scenario)


def test_in_service_a_wrong_password_once_is_mended_by_the_right_one(tmp_path):
    """Known bad: the failed contact left "everything differs", and the machine was to be restarted and installed."""

    async def scenario(stand):
        await stand.create()
        before = stand.resets()
        (tmp_path / "bmc-password").write_text("not-the-password")
        failed = await stand.create(inService=True)  # the engine's state was lost, say
        assert (failed["status"], failed["phase"]) == ("failed", "contact")
        (tmp_path / "bmc-password").write_text(PASSWORD + "\n")
        mended = await stand.update(failed, inService=True)
        assert (mended["status"], mended["reason"], mended["installedImage"]) == ("ready", "", IMAGE)
        assert stand.diff(mended, inService=True) == {}
        assert stand.resets() == before

    play(tmp_path, scenario)


def test_in_service_what_differs_shows_once_it_was_read(tmp_path):
    async def scenario(stand):
        await stand.create()
        stand.bmc.state.bios["WorkloadProfile"] = "General"
        (tmp_path / "bmc-password").write_text("not-the-password")
        failed = await stand.create(inService=True)
        (tmp_path / "bmc-password").write_text(PASSWORD + "\n")
        looked = await stand.update(failed, inService=True)
        assert looked["biosApplied"]["WorkloadProfile"] == "General"
        assert stand.diff(looked, inService=True) == {"bios.WorkloadProfile": "update"}
        assert "in service" in (await stand.update(looked, inService=True))["reason"]

    play(tmp_path, scenario)


def test_in_service_and_unknown_is_not_installed_even_if_confirmed(tmp_path):
    async def scenario(stand):
        stand.settings = Settings(reinstall=frozenset({SLOT}))
        out = await stand.create(inService=True, deadlineS=3)
        assert (out["status"], out["phase"]) == ("failed", "login")
        assert stand.host.deploys == 0

    play(tmp_path, scenario)


async def exchange_key(stand):
    """Let another system answer at the machine's address, and report its own key."""
    await stand.machine.power_off(hard=True)
    stand.host.key = None
    await stand.machine.power_on()
    for _ in range(100):
        if stand.host.key is not None:
            return line(stand.host.key)
        await asyncio.sleep(0.05)
    raise AssertionError("the host did not come up")


def test_a_reported_host_key_does_not_replace_the_pinned_one(tmp_path):
    """Known bad: whoever could write the enrolment record could put a host of their own in the machine's place."""

    async def scenario(stand):
        out = await stand.create()
        other = await exchange_key(stand)
        assert stand.records[NAME]["host_keys"][0].startswith(other)
        found = await stand.read(out)
        assert (found.outputs["status"], found.outputs["phase"]) == ("failed", "login")
        assert found.outputs["hostKeys"] == out["hostKeys"]
        for key in (out["hostKeys"][0], other):
            assert ssh.fingerprint(key) in found.outputs["reason"]
        assert "--replace" in found.outputs["reason"]
        again = await stand.update(found.outputs)
        assert (again["status"], again["phase"], again["hostKeys"]) == ("failed", "login", out["hostKeys"])
        assert "host key mismatch" in again["reason"]
        assert stand.host.deploys == 1

    play(tmp_path, scenario)


def test_an_installation_of_ours_brings_a_new_key(tmp_path):
    async def scenario(stand):
        out = await stand.create()
        stand.host.lies = OTHER_IMAGE
        new = await stand.update(out, image=OTHER_IMAGE)
        assert (new["status"], len(new["hostKeys"])) == ("ready", 1)
        assert new["hostKeys"] != out["hostKeys"]
        assert (await stand.read(new)).outputs["status"] == "ready"

    play(tmp_path, scenario)


def test_an_installation_that_broke_off_leaves_no_key_behind(tmp_path):
    async def scenario(stand):
        out = await stand.create()
        stand.host.fails = "no disk"
        broken = await stand.update(out, image=OTHER_IMAGE)
        assert (broken["phase"], broken["hostKeys"], broken["installedImage"]) == ("deploy", [], "")

    play(tmp_path, scenario)


@pytest.mark.parametrize("text", [None, "slots:\n", "slots: {r01u05: {state: new}"])
def test_without_a_record_that_says_otherwise_nothing_is_stopped(tmp_path, text):
    async def scenario(stand):
        out = await stand.create()
        before = stand.resets()
        (tmp_path / "machines.yml").unlink()
        if text is not None:
            (tmp_path / "machines.yml").write_text(text)
        kept = await stand.update(out, image=OTHER_IMAGE)
        assert stand.resets() == before
        assert "in service" in kept["reason"]

    play(tmp_path, scenario)


def spoil_bios(monkeypatch):
    """Let the controller answer its BIOS settings in a shape that no schema has."""
    get = redfish.Redfish.get

    async def spoilt(self, path):
        found = await get(self, path)
        return {**found, "Attributes": "none"} if path.rstrip("/").endswith("/Bios") else found

    monkeypatch.setattr(redfish.Redfish, "get", spoilt)


@pytest.mark.parametrize("verb", ["create", "read", "update"])
def test_settings_of_another_shape_end_that_machine_and_nothing_else(tmp_path, monkeypatch, verb):
    """Known bad: the look after adoption, and a refresh's, let an AttributeError through to the engine."""

    async def scenario(stand):
        out = await stand.create()
        spoil_bios(monkeypatch)
        if verb == "create":
            again = await stand.create()
            assert (again["status"], again["phase"]) == ("failed", "contact")
            assert "not shaped as Redfish says" in again["reason"]
        elif verb == "read":
            assert (await stand.read(out)).outputs == out
            assert "not shaped as Redfish says" in stand.log.warnings[-1]
        else:
            unread = {**out, "biosApplied": {}}
            assert (await stand.update(unread, sshUser="root"))["status"] == "ready"
            assert any("its settings cannot be read" in line for line in stand.log.warnings)

    play(tmp_path, scenario)


def test_letting_go_of_a_controller_that_answers_in_another_shape(tmp_path, monkeypatch):
    async def turn(*_):
        return [].PowerState

    async def scenario(stand):
        out = await stand.create()
        monkeypatch.setattr(bmc.Bmc, "turn", turn)
        scene = dataclasses.replace(stand.scene, settings=Settings(power_off_on_delete=True))
        await stand.resource.delete(scene, out)
        assert "let go without its controller" in stand.log.warnings[-1]
        assert "not shaped as Redfish says" in stand.log.warnings[-1]

    play(tmp_path, scenario)


def test_no_mediums_address_is_whole_in_the_evidence(tmp_path):
    """Known bad: who reads the state's evidence could have asked for the medium, whose address is its key."""
    digest = "ab" * 32

    async def scenario(stand):
        stand.inputs["media"]["url"] = stand.inputs["media"]["url"].replace("/1.iso", f"/{digest}.iso")
        stand.host.mute = True
        out = await stand.create(deadlineS=4)
        told = "\n".join(out["evidence"])
        assert out["status"] != "ready"
        assert "exchange:" in told
        assert digest[:33] not in told

    play(tmp_path, scenario)


def test_what_is_cut_of_a_digest_is_shortened_too():
    line = f"exchange: POST /x sent {{'Image': 'https://boot/boot/gpu-001/{'ab' * 32}.iso'}}"
    for end in (len(line), 110, 95):
        assert "ab" * 17 not in arming.shown(line[:end])
    assert arming.shown(line).endswith("/abababababab.iso'}")
