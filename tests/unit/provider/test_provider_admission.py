"""First contact: the factory's password is replaced by one that was recorded before, wherever the run is cut."""

import asyncio
import json
import stat
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from rack import PASSWORD, QUICK, SLOT, dump, rack

from supernode.clients import accounts, redfish, secrets
from supernode.lab.bmc.hardware import Habits
from supernode.lab.bmc.messages import RedfishError
from supernode.plan import machine as plan
from supernode.provider.doors import Doors, Key
from supernode.provider.machine import MachineResource

OURS = f"secrets/bmc/{SLOT}"
FACTORY = Habits(password_change=True, lockout_after=3)


class KilledError(BaseException):
    """The process ended here."""


@asynccontextmanager
async def from_factory(folder, habits=FACTORY, **more):
    """A rack whose controller has the password on its label, in bmc-password, and wants another first."""
    async with rack(folder, habits) as stand:
        stand.inputs["bmc"] |= {
            "password": f"file:{OURS}",
            "factory": {"username": "admin", "password": "file:bmc-password"},
            **more,
        }
        yield stand


def play(tmp_path, scenario, *arguments, **more):
    async def go():
        async with from_factory(tmp_path, *arguments, **more) as stand:
            await scenario(stand)

    asyncio.run(go())


def ours(tmp_path):
    return (tmp_path / OURS).read_text().strip()


async def takes(stand, password, name="admin"):
    """Ask the controller itself, past its count of failures."""
    stand.bmc.access._failures.clear()
    try:
        await stand.bmc.access.check(name, password)
    except RedfishError:
        return False
    finally:
        stand.bmc.access._failures.clear()
    return True


def failures(stand):
    return sum(len(at) for at in stand.bmc.access._failures.values())


def another_process(stand):
    stand.resource = MachineResource(plan.decide, QUICK)


async def is_settled(stand, tmp_path):
    assert await takes(stand, ours(tmp_path))
    assert not await takes(stand, PASSWORD)
    assert stand.bmc.state.accounts[0].change_required is False
    assert len(ours(tmp_path)) == accounts.LENGTH
    assert stat.S_IMODE((tmp_path / OURS).stat().st_mode) == 0o600


def test_a_controller_from_the_factory_gets_a_password_of_its_own(tmp_path):
    async def scenario(stand):
        out = await stand.create()
        assert (out["status"], out["reason"]) == ("ready", "")
        assert failures(stand) == 0  # nothing was recorded: the factory's was the first that was tried
        assert stand.bmc.access.sessions() == []
        await is_settled(stand, tmp_path)
        told = dump(out) + "".join(stand.log.lines + stand.log.warnings)
        assert "factory password" in told
        for secret in (PASSWORD, ours(tmp_path)):
            assert secret not in told

    play(tmp_path, scenario)


def test_the_second_run_needs_ours_alone_and_changes_nothing(tmp_path):
    async def scenario(stand):
        out = await stand.create()
        recorded, account = ours(tmp_path), stand.bmc.state.accounts[0].password
        (tmp_path / "bmc-password").unlink()
        another_process(stand)
        assert (await stand.update(out, sshUser="root"))["status"] == "ready"
        assert (await stand.create(inService=True))["status"] == "ready"  # the state was lost
        assert ours(tmp_path) == recorded
        assert stand.bmc.state.accounts[0].password == account

    play(tmp_path, scenario)


def test_in_service_too(tmp_path):
    async def scenario(stand):
        out = await stand.create(inService=True)
        assert out["phase"] != "contact", out["reason"]
        await is_settled(stand, tmp_path)

    play(tmp_path, scenario)


CUTS = ["before it is recorded", "after it is recorded", "after it is sent", "when the answer is lost", "in the proof"]


def cut_at(monkeypatch, cut):
    """Kill the process at a point of the way, once."""
    store, patch, sign_in = secrets.store, redfish.Redfish.patch, redfish.Redfish.sign_in
    sent = []

    async def storing(*arguments):
        if cut == CUTS[0]:
            raise KilledError
        await store(*arguments)
        if cut == CUTS[1]:
            raise KilledError

    async def patching(self, path, body, **how):
        answer = await patch(self, path, body, **how)
        if "Password" in body:
            sent.append(body)
            if cut == CUTS[2]:
                raise KilledError
            if cut == CUTS[3]:
                raise redfish.Ambiguous(self.address, f"PATCH {path}: no answer")
        return answer

    async def signing_in(self):
        if cut == CUTS[4] and sent:
            raise KilledError
        await sign_in(self)

    monkeypatch.setattr(secrets, "store", storing)
    monkeypatch.setattr(redfish.Redfish, "patch", patching)
    monkeypatch.setattr(redfish.Redfish, "sign_in", signing_in)


@pytest.mark.parametrize("cut", CUTS)
def test_wherever_it_is_cut_the_next_run_is_let_in(tmp_path, monkeypatch, cut):
    async def scenario(stand):
        with monkeypatch.context() as patched:
            cut_at(patched, cut)
            try:
                out = await stand.create()
                assert (cut, out["status"]) == (CUTS[3], "ready")  # a lost answer is proved at once
            except KilledError:
                assert cut != CUTS[3]
        recorded = ours(tmp_path) if (tmp_path / OURS).exists() else None
        assert (recorded is None) == (cut == CUTS[0])
        another_process(stand)
        out = await stand.create()
        assert (out["status"], out["reason"]) == ("ready", "")
        assert recorded in (None, ours(tmp_path))  # what was recorded is what was sent
        await is_settled(stand, tmp_path)

    play(tmp_path, scenario)


def test_a_change_whose_answer_is_lost_is_not_sent_again(tmp_path):
    """Known bad: sent again with the old password, it is refused, and so is the login that this leads to."""

    async def scenario(stand):
        set_password, check, tried = stand.bmc.access.set_password, stand.bmc.access.check, []

        async def set_and_hang_up(account, password):
            await set_password(account, password)
            tried.clear()
            for connection in stand.fleet._seat(SLOT).server.connections:
                connection.transport.abort()

        stand.bmc.access.set_password = set_and_hang_up
        stand.bmc.access.check = lambda name, password: (tried.append(password), check(name, password))[1]
        out = await stand.create()
        assert (out["status"], out["reason"]) == ("ready", "")
        assert set(tried) == {ours(tmp_path)}

    play(tmp_path, scenario)


def test_recorded_and_not_sent_costs_one_refusal(tmp_path, monkeypatch):
    async def scenario(stand):
        with monkeypatch.context() as patched:
            cut_at(patched, CUTS[1])
            with pytest.raises(KilledError):
                await stand.create()
        tried = []
        check = stand.bmc.access.check
        stand.bmc.access.check = lambda name, password: (tried.append(password), check(name, password))[1]
        another_process(stand)
        assert (await stand.create())["status"] == "ready"
        assert list(dict.fromkeys(tried)) == [ours(tmp_path), PASSWORD]
        assert tried.count(PASSWORD) == 1

    play(tmp_path, scenario)


def test_two_passwords_are_tried_and_no_more_however_often_it_is_asked(tmp_path):
    """Known bad: each look tried both again, and the third locked the account for everyone."""

    async def scenario(stand):
        (tmp_path / "secrets/bmc").mkdir(parents=True)
        for path in (OURS, "bmc-password"):
            (tmp_path / path).write_text(f"wrong-{path}")
            (tmp_path / path).chmod(0o600)
        out = await stand.create()
        assert (out["status"], out["phase"]) == ("failed", "contact")
        assert "refuses our password and refuses the factory's (file:bmc-password)" in out["reason"]
        await stand.update(out)
        await stand.read(out)
        assert failures(stand) == 2
        assert "wrong-" not in dump(out) + "".join(stand.log.lines + stand.log.warnings)

    play(tmp_path, scenario)


def test_a_look_neither_tries_the_factory_s_nor_records_anything(tmp_path):
    async def scenario(stand):
        inputs = {**stand.wanted(), "status": "ready"}
        assert (await stand.read(inputs)).outputs == inputs
        await stand.resource.delete(stand.scene, inputs)
        assert any("cannot be read" in line for line in stand.log.warnings)
        assert any("let go without its controller" in line for line in stand.log.warnings)
        assert not (tmp_path / OURS).exists()
        assert await takes(stand, PASSWORD)
        assert failures(stand) == 0

    play(tmp_path, scenario)


def test_one_job_at_a_time_is_at_work_on_a_controller(tmp_path):
    async def scenario(stand):
        first, second = await asyncio.gather(stand.create(), stand.create())
        assert (first["status"], second["status"]) == ("ready", "ready")
        assert stand.host.deploys == 1  # the second waited, and found the image
        await is_settled(stand, tmp_path)

    play(tmp_path, scenario)


def test_the_lengths_that_the_controller_names_are_kept(tmp_path, monkeypatch):
    """Readable only where no change is demanded; else 20, which nearly all take."""
    monkeypatch.setattr("supernode.lab.bmc.resources.accounts.PASSWORD_LENGTH", (8, 16))

    async def scenario(stand):
        await stand.create()
        assert len(ours(tmp_path)) == 16

    play(tmp_path, scenario, Habits())


def test_a_password_that_the_controller_will_not_have_is_said_with_the_way_out(tmp_path, monkeypatch):
    monkeypatch.setattr("supernode.lab.bmc.access.PASSWORD_LENGTH", (30, 64))

    async def scenario(stand):
        out = await stand.create()
        assert (out["status"], out["phase"]) == ("failed", "contact")
        assert "did not keep its new password" in out["reason"]
        assert "answers 400" in out["reason"]
        assert f"write one that keeps them to file:{OURS}" in out["reason"]
        told = dump(out) + "".join(stand.log.lines + stand.log.warnings)
        assert "exchange: POST" in told
        assert not [secret for secret in (ours(tmp_path), PASSWORD) if secret in told]
        assert failures(stand) == 1
        (tmp_path / OURS).write_text("a-longer-one-that-a-person-made-up-1")
        another_process(stand)
        assert (await stand.create())["status"] == "ready"
        assert await takes(stand, "a-longer-one-that-a-person-made-up-1")

    play(tmp_path, scenario)


def test_the_factory_s_account_may_have_another_name(tmp_path):
    async def scenario(stand):
        out = await stand.create()
        assert (out["status"], out["reason"]) == ("ready", "")
        assert await takes(stand, ours(tmp_path), "operator")
        assert not await takes(stand, PASSWORD)

    play(tmp_path, scenario, username="operator")


def test_where_every_session_is_taken_the_password_is_replaced_all_the_same(tmp_path):
    async def scenario(stand):
        out = await stand.create()
        assert (out["status"], out["reason"]) == ("ready", "")
        await is_settled(stand, tmp_path)

    play(tmp_path, scenario, Habits(password_change=True, sessions=0, session_limit_status=400))


def test_a_place_that_cannot_take_the_password_leaves_the_controller_as_it_is(tmp_path):
    async def scenario(stand):
        (tmp_path / "secrets").write_text("in the way")
        out = await stand.create()
        assert (out["status"], out["phase"]) == ("failed", "contact")
        assert f"file:{OURS}" in out["reason"]
        assert await takes(stand, PASSWORD)

    play(tmp_path, scenario)


def test_a_certificate_that_changed_gets_no_password(tmp_path):
    async def scenario(stand):
        tried = []
        stand.bmc.access.check = lambda name, password: tried.append(password)
        out = await stand.create()
        assert (out["status"], out["phase"]) == ("failed", "contact")
        assert "ab" * 32 in out["reason"]
        assert "--bmc-fingerprint" in out["reason"]
        assert tried == []
        assert not (tmp_path / OURS).exists()

    play(tmp_path, scenario, pin="ab" * 32)


def test_a_pinned_certificate_lets_the_machine_be_made_without_a_ca(tmp_path):
    async def scenario(stand):
        stand.inputs["bmc"]["pin"] = await redfish.fingerprint(stand.inputs["bmc"]["address"])
        del stand.inputs["bmc"]["ca"]
        assert (await stand.create())["status"] == "ready"

    play(tmp_path, scenario)


def test_with_neither_pin_nor_ca_the_machine_fails_with_a_way_out(tmp_path):
    async def scenario(stand):
        del stand.inputs["bmc"]["ca"]
        out = await stand.create()
        assert (out["status"], out["phase"]) == ("failed", "contact")
        assert "supernode survey 127.0.0.1" in out["reason"]

    play(tmp_path, scenario)


@pytest.mark.parametrize("length", [8, 12, 20, 64])
def test_passwords_keep_the_usual_rules(length):
    made = {accounts.make_password(length) for _ in range(200)}
    assert len(made) == 200
    for each in made:
        assert len(each) == length
        assert all(any(kind(c) for c in each) for kind in (str.isupper, str.islower, str.isdigit))
        assert not any(a == b == c for a, b, c in zip(each, each[1:], each[2:], strict=False))


def test_doors_forget_what_was_refused_once_one_opens():
    doors, a, b, c = Doors(), Key("admin", "a"), Key("admin", "b"), Key("admin", "c")
    here, there = doors.tries("here"), doors.tries("there")
    here.sent(a.digest)
    here.refused(a.digest)
    assert a.digest in doors.tries("here").refusals
    assert here.may(b.digest)
    assert there.may(a.digest)
    here.sent(b.digest)  # and no answer came
    assert not here.may(c.digest)
    here.taken(c.digest)
    assert here.may(a.digest)
    assert here.refusals == set()
    assert "admin" in repr(a)
    assert "'a'" not in repr(a)


def hear_and_say_nothing(stand):
    """Let every login hang; return the passwords that came."""
    tried = []

    async def check(_name, password):
        tried.append(password)
        await asyncio.sleep(1.0)
        raise ConnectionError

    stand.bmc.access.check = check
    return tried


HASTY = redfish.Patience(answer_s=0.3, tries=3, first_s=0.02, longest_s=0.05)


@pytest.mark.parametrize("run", ["20261130-1", ""])
def test_two_logins_that_nobody_answers_are_all_that_a_run_sends(tmp_path, monkeypatch, run):
    """Known bad: three jobs sent six, for only refusals counted, and another engine counted anew."""
    monkeypatch.setenv("SUPERNODE_RUN", run)

    async def scenario(stand):
        stand.resource = MachineResource(plan.decide, HASTY)
        tried = hear_and_say_nothing(stand)
        inputs = {**stand.wanted(), "status": "ready"}
        for _ in range(3):
            await stand.read(inputs)
        assert len(tried) == 2
        another_process(stand)
        await stand.read(inputs)
        assert len(tried) == (2 if run else 3)
        kept = list(stand.scene.state.glob("logins/*"))
        assert len(kept) == bool(run)
        assert all(PASSWORD not in path.read_text() for path in kept)

    async def go():
        async with rack(tmp_path) as stand:
            await scenario(stand)

    asyncio.run(go())


def test_what_a_run_counted_ends_with_a_login_that_is_taken_with_the_run_and_with_time(tmp_path, monkeypatch):
    monkeypatch.setenv("SUPERNODE_RUN", "one")
    Doors().tries("[fe80::1]:443", lambda: tmp_path).sent("a")
    assert Doors().tries("[fe80::1]:443", lambda: tmp_path).count == 1
    assert Doors().tries("10.0.0.1", lambda: tmp_path).count == 0
    monkeypatch.setenv("SUPERNODE_RUN", "two")
    assert Doors().tries("[fe80::1]:443", lambda: tmp_path).count == 0
    monkeypatch.setenv("SUPERNODE_RUN", "one")
    (path,) = tmp_path.glob("logins/*.json")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text(json.dumps({**json.loads(path.read_text()), "at": 0}))
    assert Doors().tries("[fe80::1]:443", lambda: tmp_path).count == 0
    path.write_text("{")
    again = Doors().tries("[fe80::1]:443", lambda: tmp_path)
    again.sent("a")
    again.taken("a")
    assert not path.exists()


def test_what_cannot_be_counted_is_not_sent(tmp_path, monkeypatch):
    monkeypatch.setenv("SUPERNODE_RUN", "one")

    async def scenario(stand):
        stand.scene.state.joinpath("logins").write_text("in the way")
        tried = hear_and_say_nothing(stand)
        inputs = {**stand.wanted(), "status": "ready"}
        assert (await stand.read(inputs)).outputs == inputs
        assert "logins" in stand.log.warnings[-1]
        assert tried == []

    async def go():
        async with rack(tmp_path) as stand:
            await scenario(stand)

    asyncio.run(go())


def test_a_password_that_is_refused_in_the_middle_of_a_job_is_not_sent_by_the_next(tmp_path):
    """Known bad: each job sent it once more, for only the first contact was told."""

    async def scenario(stand):
        out = await stand.create()
        assert out["status"] == "ready"
        key = Key("admin", PASSWORD)
        tries = stand.resource._doors.tries(stand.inputs["bmc"]["address"])
        assert tries.known(key.digest)
        bmc = stand.inputs["bmc"]
        ca = await asyncio.to_thread(Path(bmc["ca"]).read_text)
        async with redfish.connect(bmc["address"], "admin", PASSWORD, ca, QUICK, tries=tries) as client:
            await client.sign_in()
            await stand.bmc.access.set_password(stand.bmc.state.accounts[0], "another-1-that-fits")
            client._token = "spent"
            with pytest.raises(redfish.RedfishError):
                await client.get("/redfish/v1/Systems")
        before = failures(stand)
        assert before == 1
        assert (await stand.update(out, sshUser="root"))["phase"] == "contact"
        assert failures(stand) == before

    async def go():
        async with rack(tmp_path) as stand:
            await scenario(stand)

    asyncio.run(go())


@pytest.mark.parametrize(("asked", "given"), [({"MinPasswordLength": 10**9}, 128), ({"MaxPasswordLength": 16}, 16)])
def test_a_controller_cannot_ask_for_a_password_without_end(asked, given):
    class Client:
        async def get(self, _path):
            return asked

    assert asyncio.run(accounts.length(Client())) == given
