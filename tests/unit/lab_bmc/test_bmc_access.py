"""Sessions, accounts, roles and passwords."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from bmc_bench import PASSWORD, SYSTEM, V1, Bench, Kind, bench, machine

from supernode.lab.bmc.hardware import Habits

SESSIONS = f"{V1}/SessionService/Sessions"
ACCOUNTS = f"{V1}/AccountService/Accounts"
ADMIN = {"UserName": "admin", "Password": PASSWORD}


def basic(name: str, password: str) -> str:
    return aiohttp.encode_basic_auth(name, password)


async def add_user(b: Bench, name: str, role: str) -> str:
    answer = await b.client.post(ACCOUNTS, {"UserName": name, "Password": "eight-or-more", "RoleId": role})
    assert answer.status == 201
    assert answer.body["Password"] is None
    return str(answer.headers["Location"])


def test_a_session_lasts_from_login_to_logout(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as b:
            b.client.auth = None
            login = await b.client.post(SESSIONS, ADMIN)
            assert login.status == 201
            token, place = login.headers["X-Auth-Token"], login.headers["Location"]
            assert token not in str(login.body)
            assert (await b.client.get(SYSTEM, X_Auth_Token=token)).status == 200
            assert (await b.client.get(SYSTEM, X_Auth_Token=token[:-1] + "x")).ids == ["NoValidSession"]
            assert (await b.client.ask("DELETE", place, X_Auth_Token=token)).status == 204
            assert (await b.client.get(SYSTEM, X_Auth_Token=token)).status == 401

    asyncio.run(scenario())


def test_wrong_credentials_open_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as b:
            b.client.auth = None
            assert (await b.client.post(SESSIONS, {**ADMIN, "Password": "wrong"})).ids == ["NoValidSession"]
            assert (await b.client.post(SESSIONS, {"UserName": "admin"})).ids == ["PropertyMissing"]
            for header in (basic("admin", "wrong"), basic("nobody", PASSWORD), "Basic !!!", "Bearer x"):
                assert (await b.client.get(SYSTEM, Authorization=header)).status == 401
            assert (await b.client.get(SYSTEM, Authorization=basic("admin", PASSWORD))).status == 200

    asyncio.run(scenario())


def test_sessions_are_few_and_a_full_table_frees_itself(tmp_path: Path) -> None:
    now = [0.0]

    async def scenario() -> None:
        async with bench(tmp_path) as b:
            b.bmc.access._clock = lambda: now[0]
            b.client.auth = None
            tokens = [(await b.client.post(SESSIONS, ADMIN)).headers["X-Auth-Token"] for _ in range(8)]
            full = await b.client.post(SESSIONS, ADMIN)
            assert (full.status, full.ids) == (503, ["SessionLimitExceeded"])
            now[0] = 1790.0
            assert (await b.client.get(SYSTEM, X_Auth_Token=tokens[0])).status == 200  # use keeps it
            now[0] = 1810.0
            assert (await b.client.get(SYSTEM, X_Auth_Token=tokens[1])).status == 401
            assert (await b.client.get(SYSTEM, X_Auth_Token=tokens[0])).status == 200
            assert (await b.client.post(SESSIONS, ADMIN)).status == 201

    asyncio.run(scenario())


def test_a_bmc_may_answer_400_when_full(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path, habits=Habits(sessions=1, session_limit_status=400)) as b:
            assert (await b.client.post(SESSIONS, ADMIN)).status == 201
            assert (await b.client.post(SESSIONS, ADMIN)).status == 400
            assert (await b.client.get(SYSTEM)).status == 200  # Basic needs no session

    asyncio.run(scenario())


def test_the_time_out_can_be_set_within_limits(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as b:
            service = f"{V1}/SessionService"
            assert (await b.client.patch(service, {"SessionTimeout": 60})).body["SessionTimeout"] == 60
            assert (await b.client.patch(service, {"SessionTimeout": 5})).ids == ["PropertyValueOutOfRange"]
            assert (await b.client.patch(service, {"SessionTimeout": True})).ids == ["PropertyValueTypeError"]
            assert (await b.client.read(service))["SessionTimeout"] == 60

    asyncio.run(scenario())


def test_roles_limit_what_an_account_does(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as b:
            for role, boots, manages in (("ReadOnly", 403, 403), ("Operator", 200, 403)):
                own = await add_user(b, role.lower(), role)
                auth = basic(role.lower(), "eight-or-more")
                assert (await b.client.get(SYSTEM, Authorization=auth)).status == 200
                assert (await b.client.patch(SYSTEM, {"AssetTag": "x"}, Authorization=auth)).status == boots
                answer = await b.client.patch(
                    f"{V1}/Managers/1", {"DateTime": "2026-01-01T00:00:00Z"}, Authorization=auth
                )
                assert (answer.status, answer.ids) == (manages, ["InsufficientPrivilege"])
                assert (await b.client.get(f"{ACCOUNTS}/1", Authorization=auth)).status == 403
                assert (await b.client.patch(own, {"RoleId": "Administrator"}, Authorization=auth)).status == 403
                assert (await b.client.patch(own, {"Password": "another-good-one"}, Authorization=auth)).status == 200
                assert (await b.client.get(SYSTEM, Authorization=auth)).status == 401

    asyncio.run(scenario())


def test_a_password_is_changed_with_an_etag_and_ends_the_sessions(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as b:
            path, change = f"{ACCOUNTS}/1", {"Password": "a-new-password"}
            token = (await b.client.post(SESSIONS, ADMIN)).headers["X-Auth-Token"]
            assert (await b.client.ask("PATCH", path, change)).ids == ["PreconditionRequired"]
            assert (await b.client.ask("PATCH", path, change, If_Match='"stale"')).ids == ["PreconditionFailed"]
            tag = (await b.client.get(path)).headers["ETag"]
            assert (await b.client.ask("PATCH", path, change, If_Match=tag)).status == 200
            assert (await b.client.get(SYSTEM)).status == 401
            assert (await b.client.get(SYSTEM, X_Auth_Token=token)).status == 401
            assert (await b.client.get(SYSTEM, Authorization=basic("admin", "a-new-password"))).status == 200

    asyncio.run(scenario())


def test_a_bad_password_is_refused_without_being_repeated(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as b:
            for password in ("short", "long" * 20):
                answer = await b.client.patch(f"{ACCOUNTS}/1", {"Password": password})
                assert answer.ids == ["PropertyValueFormatError"]
                assert password not in str(answer.body)
            assert "7" not in str((await b.client.patch(f"{ACCOUNTS}/1", {"Password": 7777})).body["error"]["message"])
            assert (await b.client.get(SYSTEM)).status == 200

    asyncio.run(scenario())


def test_a_factory_password_must_be_changed_first(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as b:
            b.bmc.state.accounts[0].change_required = True
            assert (await b.client.get(SYSTEM)).ids == ["PasswordChangeRequired"]
            assert (await b.client.patch(f"{ACCOUNTS}/1", {"Password": "a-new-password"})).status == 200
            assert (await b.client.get(SYSTEM, Authorization=basic("admin", "a-new-password"))).status == 200

    asyncio.run(scenario())


def test_too_many_failures_lock_an_account_for_a_while(tmp_path: Path) -> None:
    now = [100.0]

    async def scenario() -> None:
        async with bench(tmp_path, habits=Habits(lockout_after=3, lockout_s=30)) as b:
            b.bmc.access._clock = lambda: now[0]
            for _ in range(3):
                assert (await b.client.get(SYSTEM, Authorization=basic("admin", "wrong"))).status == 401
            assert (await b.client.get(SYSTEM)).status == 401  # the right one, too
            now[0] += 31
            assert (await b.client.get(SYSTEM)).status == 200

    asyncio.run(scenario())


def test_accounts_come_and_go(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as b:
            place = await add_user(b, "second", "Operator")
            again: dict[str, Any] = {"UserName": "second", "Password": "eight-or-more", "RoleId": "Operator"}
            assert (await b.client.post(ACCOUNTS, again)).ids == ["ResourceAlreadyExists"]
            assert (await b.client.post(ACCOUNTS, {**again, "UserName": "x", "RoleId": "God"})).ids == [
                "PropertyValueNotInList"
            ]
            assert (await b.client.patch(place, {"Enabled": False})).body["Enabled"] is False
            assert (await b.client.get(SYSTEM, Authorization=basic("second", "eight-or-more"))).status == 401
            assert (await b.client.ask("DELETE", f"{ACCOUNTS}/1")).status == 409  # not oneself
            assert (await b.client.ask("DELETE", place)).status == 204
            assert (await b.client.get(place)).status == 404

    asyncio.run(scenario())


def test_no_password_and_no_token_reaches_the_disk(tmp_path: Path) -> None:
    async def scenario() -> str:
        async with bench(tmp_path) as b:
            token = (await b.client.post(SESSIONS, ADMIN)).headers["X-Auth-Token"]
            await b.client.patch(SYSTEM, {"AssetTag": "x"})
            return str(token)

    token = asyncio.run(scenario())
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.name == "bmc.json" for path in files)
    for path in files:
        text = path.read_text(errors="replace")
        assert PASSWORD not in text
        assert token not in text
        if path.suffix in (".json", ".key"):
            assert path.stat().st_mode & 0o777 == 0o600, path


def test_an_account_from_the_factory_may_change_its_password_leave_and_nothing_else(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path, habits=Habits(password_change=True)) as b:
            b.client.auth = None
            login = await b.client.post(SESSIONS, ADMIN)
            (told,) = login.body["@Message.ExtendedInfo"]
            own = told["MessageArgs"][0]
            assert (login.status, told["MessageId"].rpartition(".")[2]) == (201, "PasswordChangeRequired")
            token, place = login.headers["X-Auth-Token"], login.headers["Location"]
            other = await b.client.post(SESSIONS, ADMIN)
            for path in (SYSTEM, ACCOUNTS, f"{V1}/AccountService", SESSIONS):
                refused = await b.client.get(path, X_Auth_Token=token)
                assert (refused.status, refused.ids) == (403, ["PasswordChangeRequired"])
            assert (await b.client.get(own, X_Auth_Token=token)).body["PasswordChangeRequired"] is True
            another = other.headers["Location"]
            assert (await b.client.ask("DELETE", another, X_Auth_Token=token)).status == 403
            assert (await b.client.ask("DELETE", place, X_Auth_Token=token)).status == 204
            token = other.headers["X-Auth-Token"]
            changed = await b.client.ask("PATCH", own, {"Password": "another-one-1"}, X_Auth_Token=token, If_Match="*")
            assert changed.status == 200
            assert (await b.client.post(SESSIONS, ADMIN)).status == 401
            fresh = await b.client.post(SESSIONS, {**ADMIN, "Password": "another-one-1"})
            assert "@Message.ExtendedInfo" not in fresh.body
            assert (await b.client.get(SYSTEM, X_Auth_Token=fresh.headers["X-Auth-Token"])).status == 200

    asyncio.run(scenario())


@pytest.mark.parametrize("erase", [True, False])
def test_the_controller_of_an_exchanged_machine_is_as_the_factory_made_it_or_restored(
    tmp_path: Path, erase: bool
) -> None:
    async def scenario() -> None:
        async with bench(tmp_path) as b:
            await add_user(b, "carol", "Operator")
            certificate = (tmp_path / "bmc/r01u01/bmc.pem").read_bytes()
            await b.fleet.remove("r01u01", erase=erase)
            bmc = await b.fleet.add(machine("r01u01", b.work), Kind(), "127.0.0.1", 0)
            known = {account.name for account in bmc.state.accounts}
            assert known == ({"admin"} if erase else {"admin", "carol"})
            assert ((tmp_path / "bmc/r01u01/bmc.pem").read_bytes() == certificate) is not erase

    asyncio.run(scenario())
