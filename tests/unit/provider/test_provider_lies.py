"""The real phases against a BMC that lies: the run ends right, or the reason names the lie; never past its deadline."""

import asyncio
import time

import pytest
from rack import IMAGE, PASSWORD, SLOT, dump, rack

from supernode.lab.bmc.hardware import Habits
from supernode.provider import bmc, readback
from supernode.provider.phases import bios

HABITS = Habits(manager_reset_s=0.3)
OVER_S = 12.0  # the deadline is the work's; evidence and the logout come after it
HTTP_ONLY = {"bmc-one-slot": {"holds": "stranger"}}


@pytest.fixture(autouse=True)
def _brisk(monkeypatch):
    """Waits of a controller on loopback."""
    monkeypatch.setattr(readback, "SETTLE_S", 0.3)
    monkeypatch.setattr(readback, "REFUSED_S", 0.1)
    monkeypatch.setattr(bmc, "SILENCE_S", 0.5)
    monkeypatch.setattr(bmc, "POWER_S", 0.5)
    monkeypatch.setattr(bios, "SETTLED_S", 0.3)


def play(tmp_path, scenario, lies, habits=HABITS, **changes):
    async def go():
        async with rack(tmp_path, habits, **changes) as stand:
            for name, arguments in lies.items():
                stand.fleet.set_fault(SLOT, name, **arguments)
            await scenario(stand)

    asyncio.run(go())


def ends_right(tmp_path, lies, *said, habits=HABITS, **changes):
    """The machine is in service with its image, and the lie was told on the way."""

    async def scenario(stand):
        out = await stand.create()
        assert (out["status"], out["reason"]) == ("ready", ""), (out["reason"], stand.said)
        assert out["installedImage"] == IMAGE
        assert stand.bmc.state.boot.enabled == "Disabled"
        assert stand.bmc.state.bios["SriovEnable"] == "Enabled"
        for words in said:
            assert words in stand.said + "\n".join(stand.log.warnings)
        assert PASSWORD not in dump(out) + stand.said

    play(tmp_path, scenario, lies, habits, **changes)


def is_named(tmp_path, lies, phase, *words, habits=HABITS, **changes):
    """The machine is not in service; phase and reason say why, in time."""

    async def scenario(stand):
        begun = time.monotonic()
        out = await stand.create()
        assert out["status"] in ("late", "failed")
        assert out["phase"] == phase, (out["phase"], out["reason"])
        for each in words:
            assert each in out["reason"]
        assert out["evidence"]
        assert time.monotonic() - begun < out["deadlineS"] + OVER_S

    play(tmp_path, scenario, lies, habits, **{"deadlineS": 8, **changes})


# 1, 2: answers that do not say what happened


@pytest.mark.parametrize("request_", ["power", "boot", "bios", "insert", "eject"])
def test_a_change_without_effect_is_asked_for_again(tmp_path, request_):
    lie = {"bmc-no-effect": {"request": request_, "times": 1}}
    ends_right(tmp_path, lie, "answered 20", "asking once more")


@pytest.mark.parametrize(
    ("request_", "phase", "words"),
    [
        ("power", "bios", "the BMC answered 204 to Reset (On) twice, and PowerState still reads Off"),
        (
            "bios",
            "bios",
            "the BMC answered 204 to the BIOS settings twice, and the change is not pending (SriovEnable: set",
        ),
        ("boot", "boot", "the BMC answered 204 to the boot override twice, and the boot override reads"),
        ("eject", "eject", "the BMC answered 204 to EjectMedia twice, and the virtual drive still reports https://"),
    ],
)
def test_a_change_that_never_has_an_effect_is_named(tmp_path, request_, phase, words):
    is_named(tmp_path, {"bmc-no-effect": {"request": request_}}, phase, words)


@pytest.mark.parametrize("request_", ["power", "boot", "bios", "insert", "eject", "any"])
def test_a_refusal_that_did_apply_is_read_back(tmp_path, request_):
    lie = {"bmc-400-applied": {"request": request_}}
    ends_right(tmp_path, lie, "answered 400 to", "and it holds all the same")


def test_a_refusal_that_is_one_stays_one(tmp_path):
    """Known good: an honest 400 is told at once, and asked for once only."""

    async def scenario(stand):
        out = await stand.create(media={**stand.inputs["media"], "url": "https://127.0.0.1:9/boot/gpu-001/1.iso"})
        assert (out["status"], out["phase"]) == ("failed", "boot")
        assert "answers 400" in out["reason"]
        assert stand.bmc.state.medium is None

    play(tmp_path, scenario, {}, bios={})


def test_an_honest_controller_is_asked_once(tmp_path):
    """Known good: what is there for liars costs nothing here."""

    async def scenario(stand):
        out = await stand.create()
        assert out["status"] == "ready"
        for words in ("once more", "all the same", "resetting", "still read", "UEFI"):
            assert words not in stand.said
        assert stand.resets() == ["On", "ForceOff", "On"]  # for the BIOS, and for the deployment
        inserted = [entry for entry in stand.log_entries() if entry.startswith("Virtual media inserted")]
        assert len(inserted) == 1

    play(tmp_path, scenario, {})


def test_a_slow_controller_does_not_carry_a_machine_past_its_deadline(tmp_path):
    async def scenario(stand):
        begun = time.monotonic()
        out = await stand.create(deadlineS=4)
        assert out["status"] == "late"
        assert time.monotonic() - begun < 4 + OVER_S

    play(tmp_path, scenario, {"bmc-slow": {"delay_s": 0.3}, "bmc-no-effect": {"request": "any"}})


# 3, 10: tasks


@pytest.mark.parametrize("happens", [0, 1])
@pytest.mark.parametrize("request_", ["insert", "bios"])
def test_a_task_that_was_lost_is_read_back_and_asked_for_again(tmp_path, request_, happens):
    lie = {"bmc-task-lost": {"request": request_, "happens": happens}}
    ends_right(tmp_path, lie, "answered 202 to", deadlineS=40)


def test_a_task_that_is_lost_each_time_is_named(tmp_path):
    lie = {"bmc-task-lost": {"request": "bios", "happens": 0, "times": 0}}
    is_named(tmp_path, lie, "bios", "answered 202 to the BIOS settings twice, its task is gone (404", deadlineS=20)


def test_tasks_of_an_honest_controller_are_followed(tmp_path):
    ends_right(tmp_path, {}, habits=Habits(tasks=("power", "boot", "bios", "insert", "eject")))


def test_a_task_that_runs_for_ever_leads_to_the_other_carrier(tmp_path):
    lie = {"bmc-pending-forever": {"what": "task"}}
    ends_right(tmp_path, lie, "its task is Running", "boot: by UEFI HTTP boot", deadlineS=20)


def test_settings_that_stay_pending_are_named(tmp_path):
    words = ("BIOS settings stay pending after two restarts", "SriovEnable: set 'Enabled', found 'Disabled', pending")
    is_named(tmp_path, {"bmc-pending-forever": {"what": "bios"}}, "bios", *words)


# 4: Once kept as Continuous


@pytest.mark.parametrize("shows", ["Continuous", "Once"])
@pytest.mark.parametrize("deploy_s", [0.0, 1.0])
def test_an_override_that_was_to_hold_once_is_taken_back(tmp_path, shows, deploy_s):
    async def scenario(stand):
        stand.host.deploy_s = deploy_s
        out = await stand.create()
        assert (out["status"], out["reason"]) == ("ready", ""), stand.said
        assert stand.bmc.state.boot.enabled == "Disabled"
        assert f"the boot override still read {shows} after the boot: it was taken back" in stand.said
        if deploy_s:  # taken back while the machine was still being written
            assert stand.host.deploys == 1
        before = stand.host.deploys
        await stand.machine.reset(hard=True)
        await asyncio.sleep(0.3)
        assert stand.host.deploys == before  # it starts from its disk from now on

    play(tmp_path, scenario, {"bmc-once-continuous": {"shows": shows}}, bios={})


def test_an_override_that_is_not_taken_back_deploys_again_and_again(tmp_path, monkeypatch):
    """Known bad: what the taking back is there for."""

    async def nothing(_self, _deadline):
        return False

    monkeypatch.setattr(bmc.Bmc, "clear_override", nothing)

    async def scenario(stand):
        out = await stand.create(deadlineS=4)
        assert out["status"] == "late"
        assert stand.host.deploys > 1

    play(tmp_path, scenario, {"bmc-once-continuous": {}}, bios={})


def test_a_machine_that_was_given_up_on_does_not_deploy_itself_later(tmp_path):
    async def scenario(stand):
        stand.host.fails = "no disk matches virtio-*"
        out = await stand.create()
        assert (out["status"], out["phase"]) == ("failed", "deploy")
        assert stand.bmc.state.boot.enabled == "Disabled"

    play(tmp_path, scenario, {"bmc-once-continuous": {}}, bios={})


# 5: no session is free


def test_without_a_free_session_the_credentials_serve(tmp_path):
    async def scenario(stand):
        out = await stand.create()
        assert (out["status"], out["reason"]) == ("ready", "")
        assert stand.bmc.access.sessions() == []

    play(tmp_path, scenario, {"bmc-sessions-full": {}})


# 6: a stale inventory


def test_a_stale_power_state_is_cured_by_a_reset_of_the_controller(tmp_path):
    words = "PowerState was of an earlier moment until the BMC was reset; it reads On now"
    ends_right(tmp_path, {"bmc-stale-inventory": {"what": "power"}}, words, deadlineS=30)


def test_in_service_the_controller_is_not_reset(tmp_path):
    async def scenario(stand):
        out = await stand.create()
        await stand.machine.power_off(hard=True)
        stand.fleet.set_fault(SLOT, "bmc-stale-inventory", what="power")
        found = await stand.read(out)
        kept = await stand.update(found.outputs, inService=True, deadlineS=6)
        assert (kept["status"], kept["phase"]) == ("failed", "power")
        assert "twice, and PowerState still reads Off" in kept["reason"]
        assert "BMC reset" not in stand.log_entries()

    play(tmp_path, scenario, {}, bios={})


def test_a_stale_firmware_inventory_contradicts_itself_and_is_read_again(tmp_path):
    words = "FirmwareInventory lists BIOS 2.1.2, 2.1.3 runs"
    ends_right(tmp_path, {"bmc-stale-inventory": {"what": "firmware"}}, words, deadlineS=30)


def test_firmware_that_is_really_old_costs_no_reset_of_the_controller(tmp_path):
    async def scenario(stand):
        stand.bmc.state.firmware["BIOS"] = "2.1.2"
        out = await stand.create()
        assert out["reason"] == "not at the baseline: BIOS: baseline 2.1.3, found 2.1.2"
        assert "BMC reset" not in stand.log_entries()

    play(tmp_path, scenario, {}, bios={})


def test_a_stale_serial_is_told_from_another_machine(tmp_path):
    words = ("another machine than machines.yml names: system_serial", "bmc_mac, uuid agree: a stale inventory")
    is_named(tmp_path, {"bmc-stale-inventory": {"what": "identity"}}, "contact", *words)


# 7: power, and nothing behind it


def test_a_dead_host_is_named(tmp_path):
    words = ("power and shows no sign of life: PowerState On, BootProgress None, no POST code", "no complete report")
    is_named(tmp_path, {"host-dead": {}}, "deploy", *words, bios={})


def test_a_host_that_is_dead_before_its_settings_are_applied_is_named(tmp_path):
    is_named(tmp_path, {"host-dead": {}}, "bios", "shows no sign of life: PowerState On", "in two starts")


def test_a_host_that_comes_to_life_at_the_second_start_is_deployed(tmp_path):
    async def scenario(stand):
        made = asyncio.create_task(stand.create())
        async with asyncio.timeout(10):
            while "waiting for the machine's report" not in stand.said:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        stand.fleet.clear_fault(SLOT)
        out = await made
        assert out["status"] == "ready", out["reason"]
        assert "switching it off and on once more" in stand.said

    play(tmp_path, scenario, {"host-dead": {}}, bios={}, deadlineS=12)


# 8: two systems


@pytest.mark.parametrize("other", ["baseboard", "witness"])
def test_the_right_system_is_chosen_by_identity(tmp_path, other):
    async def scenario(stand):
        out = await stand.create()
        assert (out["status"], out["serial"]) == ("ready", stand.machine.identity.system_serial)
        assert not [line for line in stand.log_entries() if line.startswith("Power of")]

    play(tmp_path, scenario, {"bmc-two-systems": {"other": other}})


# 9: 1970


def test_a_clock_in_1970_is_set_before_a_certificate_is_verified(tmp_path):
    ends_right(tmp_path, {"bmc-clock-1970": {}}, "the BMC's clock reads 1970-01-01T00:00:", "setting it")


def test_evidence_of_1970_is_the_newest_all_the_same(tmp_path):
    async def scenario(stand):
        stand.bmc.record("before the clock was lost")
        stand.fleet.set_fault(SLOT, "bmc-clock-1970")
        stand.fleet.set_fault(SLOT, "host-never-boots", code=0x55)
        out = await stand.create(bios={}, deadlineS=6)
        text = "\n".join(out["evidence"])
        assert "POST stopped at code 0x55" in text
        assert "before the clock was lost" not in text

    play(tmp_path, scenario, {})


# 11, 12: carriers


@pytest.mark.parametrize(
    ("lie", "why"),
    [
        ({"bmc-one-slot": {"holds": "stranger"}}, "the only virtual drive holds https://198.51.100.7/rescue/tools.iso"),
        ({"bmc-one-slot": {"holds": "usb"}}, "no virtual drive that takes a CD image"),
        (
            {"bmc-media-ignored": {"shows": "nothing"}},
            "answered 204 to InsertMedia twice, and the drive holds no medium",
        ),
    ],
)
def test_uefi_http_boot_takes_over_from_the_drive(tmp_path, lie, why):
    async def scenario(stand):
        held = stand.bmc.state.medium
        out = await stand.create()
        assert (out["status"], out["reason"]) == ("ready", ""), stand.said
        assert "boot: by virtual media: as its kind asks for" in stand.said
        assert "boot: by UEFI HTTP boot: virtual media cannot be used: " in stand.said
        assert why in stand.said
        assert stand.bmc.state.medium == held  # a stranger's stays
        assert stand.bmc.state.boot.http_uri == ""

    play(tmp_path, scenario, lie)


def test_a_medium_that_is_inserted_and_never_fetched_gives_way(tmp_path):
    words = "the BMC says that the medium is inserted and never fetched it from the boot server"
    lie = {"bmc-media-ignored": {"shows": "inserted"}}
    ends_right(tmp_path, lie, words, "boot: by UEFI HTTP boot: virtual media brings nothing", deadlineS=12)


def test_the_drive_takes_over_where_uefi_has_no_http_boot(tmp_path, monkeypatch):
    monkeypatch.setattr("supernode.lab.bmc.resources.systems.TARGETS", ("None", "Hdd", "Cd"))

    async def scenario(stand):
        out = await stand.create(bmc={**stand.inputs["bmc"], "media": "uefi-http"})
        assert out["status"] == "ready"
        assert "boot: by virtual media: UEFI HTTP boot cannot be used: cannot boot once from UefiHttp" in stand.said

    play(tmp_path, scenario, {}, bios={})


def test_without_any_carrier_the_reason_says_of_each_why(tmp_path, monkeypatch):
    monkeypatch.setattr("supernode.lab.bmc.resources.systems.TARGETS", ("None", "Hdd", "Cd"))
    words = (
        "virtual media cannot be used: the only virtual drive holds https://198.51.100.7",
        "; UEFI HTTP boot cannot",
    )
    is_named(tmp_path, HTTP_ONLY, "boot", *words, bios={})
