"""A machine and the cooling unit of its rack: what holds a power-on back, what is left alone then, and the override."""

import asyncio

import pytest
from cooled_rack import KINDS, cooled
from rack import PASSWORD, dump

from supernode.provider import check, schema


def play(tmp_path, scenario, kind="cdu1", **changes):
    async def go():
        async with cooled(tmp_path, kind, **changes) as stand:
            await scenario(stand)

    asyncio.run(go())


def untouched(stand):
    """Nothing was changed at the machine: no power action, no setting, no medium, no override."""
    state = stand.bmc.state
    return (
        stand.resets() == []
        and state.bios_pending == {}
        and state.medium is None
        and state.boot.enabled == "Disabled"
        and stand.host.deploys == 0
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_machine_under_a_sound_unit_is_deployed(tmp_path, kind):
    async def scenario(stand):
        out = await stand.create()
        assert (out["status"], out["reason"]) == ("ready", "")
        assert out["cooling"] == {"unit": kind, "verdict": "clear", "sensors": "", "override": ""}
        assert f"interlock: {kind}: dry, flowing, fresh" in stand.said
        assert stand.hall.status()[0]["unit"] == kind
        secret = (tmp_path / "cdu-password").read_text()
        assert secret not in dump(out) + "".join(stand.log.lines)
        assert PASSWORD not in dump(out)

    play(tmp_path, scenario, kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("fault", "arguments", "said"),
    [
        ("leak", {"state": "warning"}, "leak detector {kind}:tray is "),
        ("low-flow", {"share": 0.2}, "flow {kind}:secondary_flow is 12.0 l/min, at least 30.0 l/min is wanted"),
        ("freeze-cdu", {}, "{kind} is stale: it answers, and its values stand still at "),
    ],
)
def test_a_machine_is_held_and_the_sensor_is_named(tmp_path, kind, fault, arguments, said):
    async def scenario(stand):
        stand.hall.set_fault(fault, "r01", arguments)
        out = await stand.create()
        assert (out["status"], out["phase"]) == ("failed", "bios")
        assert said.format(kind=kind) in out["reason"]
        assert out["reason"].endswith("; not switched on")
        assert out["cooling"]["verdict"] == "held"
        assert untouched(stand)
        assert any("failed in phase bios: interlock: " in line for line in stand.log.warnings)
        stand.hall.clear_fault(fault, "r01")
        assert stand.diff(out)  # the next up tries again
        assert (await stand.update(out))["status"] == "ready"

    play(tmp_path, scenario, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_a_unit_that_does_not_answer_is_no_healthy_one(tmp_path, kind, monkeypatch):
    from supernode.clients.patience import Patience

    monkeypatch.setattr("supernode.clients.modbus.ANSWER_S", 0.2)
    monkeypatch.setattr("supernode.clients.cdu_redfish.PATIENCE", Patience(answer_s=0.5, tries=1))

    async def scenario(stand):
        stand.hall.set_fault("cdu-silent", "r01", {})
        out = await stand.create(bios={})
        assert (out["status"], out["phase"]) == ("failed", "boot")
        assert f"interlock: {kind} cannot be read: " in out["reason"]
        assert untouched(stand)

    play(tmp_path, scenario, kind)


def test_a_machine_that_then_fails_otherwise_is_not_said_to_be_held(tmp_path):
    async def scenario(stand):
        stand.hall.set_fault("leak", "r01", {"state": "critical"})
        held = await stand.create()
        assert held["cooling"]["verdict"] == "held"
        out = await stand.update(held, identity={"board_serial": "of another machine", "chassis_serial": ""})
        assert (out["status"], out["phase"]) == ("failed", "contact")
        assert out["cooling"] == {}

    play(tmp_path, scenario)


def test_an_override_goes_on_and_is_recorded(tmp_path):
    async def scenario(stand):
        stand.hall.set_fault("leak", "r01", {"state": "critical"})
        reason = "detector wet since the flush, seen dry by hand"
        out = await stand.create(interlock={**stand.inputs["interlock"], "override": reason})
        assert out["status"] == "ready"
        said = "leak detector cdu1:tray is critical: wet"
        assert out["cooling"] == {"unit": "cdu1", "verdict": "overridden", "sensors": said, "override": reason}
        assert [line for line in stand.log.warnings if reason in line and said in line]

    play(tmp_path, scenario)


def test_a_machine_that_is_on_is_left_on(tmp_path):
    async def scenario(stand):
        out = await stand.create()
        before = stand.resets()
        stand.hall.set_fault("leak", "r01", {"state": "critical"})
        assert (await stand.read(out)).outputs["powerState"] == "On"
        # What would switch it off and on again is held before it is switched off.
        held = await stand.update(out, image="2" * 64)
        assert (held["status"], held["phase"]) == ("failed", "boot")
        assert stand.resets() == before
        assert stand.machine.power_state() == "On"

    play(tmp_path, scenario, bios={})


def test_power_alone_is_held_too(tmp_path):
    async def scenario(stand):
        out = await stand.create()
        await stand.machine.power_off(hard=True)
        found = (await stand.read(out)).outputs
        stand.hall.set_fault("leak", "r01:manifold", {"state": "critical"})
        held = await stand.update(found)
        assert (held["status"], held["phase"]) == ("failed", "power")
        assert "leak detector cdu1:manifold is critical: wet" in held["reason"]
        assert stand.machine.power_state() == "Off"

    play(tmp_path, scenario, bios={})


def test_a_leak_between_off_and_on_leaves_the_machine_off(tmp_path):
    async def scenario(stand):
        out = await stand.create()
        cut = stand.machine.power_off

        async def and_then_it_leaks(*, hard):
            await cut(hard=hard)
            stand.hall.set_fault("leak", "r01", {"state": "critical"})

        stand.machine.power_off = and_then_it_leaks
        held = await stand.update(out, image="2" * 64)
        stand.machine.power_off = cut
        assert "wet; not switched on" in held["reason"]
        assert stand.machine.power_state() == "Off"
        assert stand.host.deploys == 1

    play(tmp_path, scenario, bios={})


def test_machines_that_start_at_once_share_a_look_that_began_after_they_asked(tmp_path, monkeypatch):
    from supernode.clients import cdu
    from supernode.provider.interlock import Interlock, Units

    looks, read = [], cdu.read

    async def counted(*arguments):
        looks.append(1)
        return await read(*arguments)

    monkeypatch.setattr(cdu, "read", counted)

    async def scenario(stand):
        wanted, units = Interlock.of(stand.inputs["interlock"]), Units()
        await units.look(wanted, stand.folder, 5)
        looks.clear()
        said = await asyncio.gather(*(units.look(wanted, stand.folder, 5) for _ in range(18)))
        assert set(said) == {()}
        assert 1 <= len(looks) <= 2

    play(tmp_path, scenario)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"kind": "nonesuch"}, "interlock.kind"),
        ({"password": "in-the-open"}, "interlock.password"),
        ({"override": " "}, "interlock.override"),
        ({"maxAgeS": 0}, "interlock.maxAgeS"),
        ({"minFlow": None}, "interlock.minFlow"),
    ],
)
def test_wrong_inputs_are_told_without_their_secret(tmp_path, change, place):
    async def scenario(stand):
        inputs = {**stand.inputs, "interlock": {**stand.inputs["interlock"], **change}}
        found = check.machine(check.with_defaults(inputs, schema.MACHINE_DEFAULTS))
        assert [path for path, _ in found] == [place]
        assert "in-the-open" not in str(found)

    play(tmp_path, scenario, runs=False)
