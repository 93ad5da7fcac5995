"""By every way in, a confirmation that names more machines in service than one run may change is good for none."""

import asyncio
import json
from pathlib import Path

import pytest
from rack import OTHER_IMAGE, SLOT, URN, Log, rack

from supernode.provider import guard
from supernode.provider.resource import Scene
from supernode.provider.settings import Settings

LAB = Path(__file__).resolve().parents[3] / "tests" / "lab" / "slim" / "environment.yml"
SLOTS = [f"r01u{n:02d}" for n in range(1, 42, 5)]  # nine, SLOT not among them


def write(folder, serving, share="0.25", idle=("r02u40",)):
    (folder / "environment.yml").write_text(LAB.read_text().replace("change_at_once: 0.25", f"change_at_once: {share}"))
    rows = {slot: {"state": "in_service"} for slot in serving} | {slot: {"state": "drained"} for slot in idle}
    (folder / "machines.yml").write_text(json.dumps({"schema": 1, "slots": rows}))


def settings(*slots):
    return Settings.read({"reinstall": json.dumps(slots), "plan": "0123abcd", "until": "9999999999"})


def asked(folder, *slots):
    return asyncio.run(guard.confirmation(Scene(URN, folder, settings(*slots), Log()), slots[0]))


def test_as_many_as_the_share_allows_hold(tmp_path):
    write(tmp_path, SLOTS[:8])
    assert asked(tmp_path, *SLOTS[:2]) == (True, "")


def test_one_more_and_none_holds_and_both_numbers_are_said(tmp_path):
    write(tmp_path, SLOTS[:8])
    holds, why = asked(tmp_path, *SLOTS[:3])
    assert not holds
    assert "3 of 8 machines in service" in why
    assert "at most 2" in why


def test_the_share_is_read_when_it_is_asked_for(tmp_path):
    write(tmp_path, SLOTS[:8])
    assert not asked(tmp_path, *SLOTS[:3])[0]
    write(tmp_path, SLOTS[:8], share="0.375")
    assert asked(tmp_path, *SLOTS[:3])[0]


def test_one_alone_always_holds(tmp_path):
    write(tmp_path, SLOTS[:1])
    assert asked(tmp_path, SLOTS[0])[0]


def test_who_is_not_in_service_does_not_count(tmp_path):
    write(tmp_path, SLOTS[:4], idle=["r02u40", "r02u45"])
    assert asked(tmp_path, SLOTS[0], "r02u40", "r02u45")[0]
    assert not asked(tmp_path, SLOTS[0], "r02u40", "r02u99")[0]  # of whom nobody knows anything: in service


@pytest.mark.parametrize("document", ["environment.yml", "machines.yml"])
@pytest.mark.parametrize("text", [None, "slots: [", "pools: no"])
def test_what_cannot_be_read_permits_nothing(tmp_path, document, text):
    write(tmp_path, SLOTS[:8])
    if text is None:
        (tmp_path / document).unlink()
    else:
        (tmp_path / document).write_text(text)
    holds, why = asked(tmp_path, *SLOTS[:2])
    assert not holds
    assert why


def test_a_bare_up_leaves_all_of_them_as_they_are(tmp_path):
    async def scenario():
        async with rack(tmp_path) as stand:
            out = await stand.create()
            write(tmp_path, [SLOT, *SLOTS[:3]])
            stand.settings = settings(SLOT, SLOTS[0])
            kept = await stand.update(out, inService=True, image=OTHER_IMAGE)
            assert (kept["status"], kept["image"], stand.host.deploys) == ("ready", out["image"], 1)
            assert "2 of 4 machines in service" in kept["reason"]
            assert any("at most 1" in warning for warning in stand.log.warnings)
            stand.settings, stand.host.lies = settings(SLOT), OTHER_IMAGE
            assert (await stand.update(out, inService=True, image=OTHER_IMAGE))["installedImage"] == OTHER_IMAGE

    asyncio.run(scenario())
