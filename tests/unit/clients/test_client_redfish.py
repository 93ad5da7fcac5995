"""The Redfish client against a controller that is busy, slow, forgetful or lying about its certificate."""

import asyncio
import contextlib
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from aiohttp import web
from loopback_tls import authority

from supernode.clients import redfish
from supernode.clients.exchange import Exchange, masked, summary
from supernode.clients.redfish import Patience
from supernode.clients.tries import Tries
from supernode.errors import CouldNotRun

PASSWORD = "s3cret-of-the-bmc"
SYSTEM = "/redfish/v1/Systems/1"
QUICK = Patience(answer_s=0.4, tries=4, first_s=0.02, longest_s=0.2)


@dataclass
class Controller:
    """Answers sessions as DSP0266 says; everything else is looked up in `script`, in order, the last one staying."""

    script: dict = field(default_factory=dict)
    asked: list = field(default_factory=list)
    sessions: set = field(default_factory=set)
    logins: int = 0
    address: str = ""

    async def handle(self, request):
        self.asked.append((request.method, request.path))
        if request.path == redfish.SESSIONS and request.method == "POST":
            self.logins += 1
            body = await request.json()
            if body != {"UserName": "admin", "Password": PASSWORD}:
                return web.json_response({"error": {"message": f"no such account, {body['Password']}"}}, status=401)
            self.sessions.add(token := f"token-{self.logins}")
            where = f"{redfish.SESSIONS}/{self.logins}"
            return web.json_response({}, status=201, headers={"X-Auth-Token": token, "Location": where})
        token = request.headers.get("X-Auth-Token")
        if request.method == "DELETE" and request.path.startswith(redfish.SESSIONS):
            self.sessions.discard(f"token-{request.path.rpartition('/')[2]}")
            return web.Response(status=204)
        if token not in self.sessions:
            return web.json_response({"error": {"message": "no session"}}, status=401)
        answers = self.script[request.method, request.path]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        return await answer(request) if callable(answer) else answer()


def reply(status=200, body=None, **headers):
    sent = {k.replace("_", "-"): v for k, v in headers.items()}

    async def answer(_request):
        return web.json_response({} if body is None else body, status=status, headers=sent)

    return answer


async def silence(_request):
    await asyncio.sleep(0.9)
    return web.Response(status=500)


@asynccontextmanager
async def running(folder, controller):
    runner = web.ServerRunner(web.Server(controller.handle))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=authority(folder)).start()
    controller.address = f"127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield controller
    finally:
        await runner.cleanup()


def against(tmp_path, script, work, *, password=PASSWORD, patience=QUICK):
    """Run `work(client)`; return its result, the controller and the client as they ended.

    `script` is a controller's, or a controller.
    """

    async def go():
        async with running(tmp_path, script if isinstance(script, Controller) else Controller(script)) as controller:
            ca = (tmp_path / "cert.pem").read_text()
            async with redfish.connect(controller.address, "admin", password, ca, patience) as client:
                result = await work(client)
            return result, controller, client

    return asyncio.run(go())


def test_one_session_serves_all_requests_and_is_deleted(tmp_path):
    async def work(client):
        return [await client.get(SYSTEM) for _ in range(5)]

    found, controller, _ = against(tmp_path, {("GET", SYSTEM): [reply(body={"Id": "1"})]}, work)
    assert found == [{"Id": "1"}] * 5
    assert controller.logins == 1
    assert controller.sessions == set()


def test_requests_at_once_log_in_once(tmp_path):
    async def work(client):
        await asyncio.gather(*(client.get(SYSTEM) for _ in range(8)))

    _, controller, _ = against(tmp_path, {("GET", SYSTEM): [reply()]}, work)
    assert controller.logins == 1


def test_a_busy_controller_is_asked_again(tmp_path):
    script = {("GET", SYSTEM): [reply(503, Retry_After="0"), reply(503), reply(body={"Id": "1"})]}
    found, _, client = against(tmp_path, script, lambda c: c.get(SYSTEM))
    assert found == {"Id": "1"}
    assert [e.status for e in client.exchanges if e.path == SYSTEM] == [503, 503, 200]


def test_one_that_stays_busy_is_an_error(tmp_path):
    with pytest.raises(redfish.RedfishError) as caught:
        against(tmp_path, {("GET", SYSTEM): [reply(503)]}, lambda c: c.get(SYSTEM))
    assert caught.value.status == 503


def test_a_silent_controller_is_unreachable(tmp_path):
    with pytest.raises(redfish.Unreachable, match="no answer in 4 tries"):
        against(tmp_path, {("GET", SYSTEM): [silence]}, lambda c: c.get(SYSTEM))


def test_an_action_without_an_answer_is_not_repeated(tmp_path):
    reset = f"{SYSTEM}/Actions/ComputerSystem.Reset"

    async def work(client):
        with pytest.raises(redfish.Ambiguous):
            await client.post(reset, {"ResetType": "On"})

    _, controller, _ = against(tmp_path, {("POST", reset): [silence]}, work)
    assert controller.asked.count(("POST", reset)) == 1


def test_a_busy_answer_to_an_action_is_repeated(tmp_path):
    reset = f"{SYSTEM}/Actions/ComputerSystem.Reset"
    script = {("POST", reset): [reply(503), reply(204)]}
    answer, _, _ = against(tmp_path, script, lambda c: c.post(reset, {"ResetType": "On"}))
    assert answer.status == 204


def test_a_forgotten_session_is_made_anew(tmp_path):
    async def work(client):
        await client.get(SYSTEM)
        client._token = "spent"
        return await client.get(SYSTEM)

    found, controller, _ = against(tmp_path, {("GET", SYSTEM): [reply(body={"Id": "1"})]}, work)
    assert found == {"Id": "1"}
    assert controller.logins == 2


def test_a_refused_password_is_told_once_and_never_shown(tmp_path):
    async def work(client):
        with pytest.raises(redfish.RedfishError) as caught:
            await client.get(SYSTEM)
        return caught.value

    error, controller, client = against(tmp_path, {}, work, password="wrong-password")
    assert error.status == 401
    assert controller.logins == 1
    told = str(error) + "".join(e.line() for e in client.exchanges) + repr(client)
    assert "wrong-password" not in told


def test_exchanges_hold_no_secret(tmp_path):
    async def work(client):
        await client.patch(SYSTEM, {"Password": "new-one", "AssetTag": PASSWORD, "Name": "x"})
        return client._token

    token, _, client = against(tmp_path, {("PATCH", SYSTEM): [reply()]}, work)
    told = "\n".join(e.line() for e in client.exchanges)
    assert '"Name": "x"' in told
    for secret in (PASSWORD, "new-one", token):
        assert secret not in told


@pytest.mark.parametrize("refusal", [412, 428])
def test_a_refused_etag_is_fetched_anew(tmp_path, refusal):
    tags = []

    async def patched(request):
        tags.append(request.headers.get("If-Match"))
        return web.json_response({}, status=refusal if len(tags) == 1 else 200)

    script = {("GET", SYSTEM): [reply(ETag='W/"1"'), reply(ETag='"2"')], ("PATCH", SYSTEM): [patched]}

    async def work(client):
        await client.get(SYSTEM)
        await client.patch(SYSTEM, {"AssetTag": "x"})

    against(tmp_path, script, work)
    assert tags == ['W/"1"', '"2"']


def test_an_error_carries_what_the_controller_says(tmp_path):
    info = [{"MessageId": "Base.1.18.PropertyUnknown", "Message": "no such property"}]
    script = {("PATCH", SYSTEM): [reply(400, {"error": {"code": "x", "@Message.ExtendedInfo": info}})]}
    with pytest.raises(redfish.RedfishError, match="answers 400: no such property") as caught:
        against(tmp_path, script, lambda c: c.patch(SYSTEM, {"X": 1}))
    assert caught.value.message_ids == ("Base.1.18.PropertyUnknown",)


def test_members_follow_pages_and_references(tmp_path):
    logs, more = "/redfish/v1/Logs", "/redfish/v1/Logs?$skip=1"
    script = {
        ("GET", logs): [
            reply(body={"Members": [{"@odata.id": "/a"}], "Members@odata.nextLink": "/redfish/v1/Logs2"}),
        ],
        ("GET", "/redfish/v1/Logs2"): [reply(body={"Members": [{"@odata.id": "/b", "Id": "b"}]})],
        ("GET", "/a"): [reply(body={"Id": "a"})],
    }
    found, controller, _ = against(tmp_path, script, lambda c: c.members(logs))
    assert [m["Id"] for m in found] == ["a", "b"]
    assert ("GET", "/b") not in controller.asked
    assert more not in dict(controller.asked)


def test_waits_grow_and_keep_to_the_ceiling():
    patience = Patience(first_s=1, longest_s=10)
    waits = [patience.waits(n, None) for n in range(8)]
    assert waits[0] <= 1
    assert 7 <= max(waits) <= 10
    assert patience.waits(0, "3") == 3
    assert patience.waits(0, "3600") == 10


class Forgetful(Controller):
    """Makes a session for each login, says so only to those that are not `lost`, and lists them with their times."""

    def __init__(self, script, lost, made=("2026-11-30T12:00:00Z", "2026-11-30T12:00:01+00:00")):
        super().__init__(script)
        self.lost, self.made = lost, made

    async def handle(self, request):
        if request.method == "POST" and request.path == redfish.SESSIONS:
            answer = await super().handle(request)
            if self.logins in self.lost:
                await asyncio.sleep(0.9)
            return answer
        if request.method == "GET" and request.path.startswith(redfish.SESSIONS):
            assert request.headers["X-Auth-Token"] in self.sessions
            paths = [f"{redfish.SESSIONS}/{token.removeprefix('token-')}" for token in sorted(self.sessions)]
            if request.path == redfish.SESSIONS:
                return web.json_response({"Members": [{"@odata.id": path} for path in paths]})
            number = int(request.path.rpartition("/")[2])
            made = self.made[number - 1] if number > 0 else "2026-11-30T12:00:00Z"
            return web.json_response({"UserName": "admin" if number > 0 else "another", "CreatedTime": made})
        return await super().handle(request)


def test_a_login_whose_answer_is_lost_is_repeated_once_and_leaves_no_session(tmp_path):
    """Known bad: each repeat made a session, and a controller that allows eight was full for half an hour."""

    made = Forgetful({("GET", SYSTEM): [reply()]}, lost={1})
    made.sessions.add("token-0")  # another's, made at the same time

    async def work(client):
        await client.get(SYSTEM)
        return set(made.sessions)

    during, controller, _ = against(tmp_path, made, work)
    assert controller.logins == 2
    assert during == {"token-0", "token-2"}
    assert controller.sessions == {"token-0"}


def test_a_login_that_is_never_answered_is_asked_for_twice_and_no_more(tmp_path):
    async def work(client):
        with pytest.raises(redfish.Unreachable, match="two requests for a session"):
            await client.get(SYSTEM)

    _, controller, _ = against(tmp_path, Forgetful({}, lost={1, 2, 3, 4}), work)
    assert controller.logins == 2


@pytest.mark.parametrize("made", [("2026-11-30T11:00:00Z", "2026-11-30T12:00:01Z"), ("", "2026-11-30T12:00:01Z")])
def test_a_session_that_may_be_another_s_is_left(tmp_path, made):
    async def work(client):
        await client.get(SYSTEM)

    _, controller, _ = against(tmp_path, Forgetful({("GET", SYSTEM): [reply()]}, {1}, made), work)
    assert controller.sessions == {"token-1"}


def test_a_session_whose_token_is_refused_is_deleted_before_another_is_made(tmp_path):
    refusals = [401]

    async def refusing_once(_request):
        return web.json_response({}, status=refusals.pop() if refusals else 200)

    async def work(client):
        await client.get(SYSTEM)

    _, controller, _ = against(tmp_path, {("GET", SYSTEM): [refusing_once]}, work)
    assert controller.logins == 2
    deleted = controller.asked.index(("DELETE", f"{redfish.SESSIONS}/1"))
    assert deleted < [at for at, asked in enumerate(controller.asked) if asked == ("POST", redfish.SESSIONS)][1]


def test_requests_that_are_refused_at_once_log_in_once_more(tmp_path):
    made = Controller({("GET", SYSTEM): [reply()]})

    async def work(client):
        await client.get(SYSTEM)
        made.sessions.clear()
        await asyncio.gather(*(client.get(SYSTEM) for _ in range(4)))

    against(tmp_path, made, work)
    assert made.logins == 2


@pytest.mark.parametrize("named", ["@{}/redfish/v1/Chassis", ".example/redfish/v1/Chassis", ":8443/x", "relative", ""])
def test_what_a_controller_names_is_asked_of_that_controller_or_not_at_all(tmp_path, named):
    made = Controller()
    made.script = {("GET", SYSTEM): [lambda _: reply(body={"Members": [{"@odata.id": named.format(made.address)}]})(_)]}

    async def work(client):
        with pytest.raises(CouldNotRun, match="no path of its own: not sent"):
            await client.members(SYSTEM)

    against(tmp_path, made, work)
    assert {path for _, path in made.asked} == {redfish.SESSIONS, f"{redfish.SESSIONS}/1", SYSTEM}


def test_a_session_at_no_path_of_the_controller_is_not_deleted_there(tmp_path):
    class Elsewhere(Controller):
        async def handle(self, request):
            answer = await super().handle(request)
            if "Location" in answer.headers:
                answer.headers["Location"] = "@203.0.113.1/redfish"
            return answer

    found, _, _ = against(tmp_path, Elsewhere({("GET", SYSTEM): [reply(body={"Id": "1"})]}), lambda c: c.get(SYSTEM))
    assert found == {"Id": "1"}


def test_an_answer_that_is_too_long_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(redfish, "ANSWER_LIMIT", 1 << 20)

    async def long(request):
        answer = web.StreamResponse()
        await answer.prepare(request)
        with contextlib.suppress(ConnectionError):
            for _ in range(64):
                await answer.write(b" " * 65536)
                await asyncio.sleep(0)
        return answer

    async def work(client):
        with pytest.raises(CouldNotRun, match="longer than 1 MiB"):
            await client.get(SYSTEM)

    against(tmp_path, {("GET", SYSTEM): [long]}, work, patience=Patience(answer_s=20.0, tries=1))


def test_an_answer_nested_too_deep_is_none(tmp_path):
    async def deep(_request):
        return web.Response(text="[" * 200_000)

    found, _, _ = against(tmp_path, {("GET", SYSTEM): [deep]}, lambda client: client.get(SYSTEM))
    assert found == {}


@pytest.mark.parametrize("text", ["²", "soon", "-1", ""])
def test_a_wait_that_is_no_number_is_our_own(text):
    assert Patience(first_s=1.0).waits(0, text) <= 1.0


@pytest.mark.parametrize("secret", ['with"quote-1', "back\\slash-1", "pässword-1"])
def test_a_secret_that_json_spells_otherwise_is_blanked(secret):
    told = summary(None, {"error": {"message": f"no such password: {secret}"}}, "", [secret])
    assert "***" in told
    assert "1" not in told


def test_a_secret_is_blanked_before_the_text_is_cut():
    told = summary(None, {}, "x" * 75 + "SECRET-of-the-bmc", ["SECRET-of-the-bmc"])
    assert "***" in told
    assert "SECR" not in told


def test_what_a_controller_says_reaches_no_terminal_as_a_command(tmp_path):
    """OSC 52 would put text of its choice into the operator's clipboard."""
    refusal = {"error": {"message": "no \x1b]52;c;cm0gLXJm\x07 such"}}

    async def work(client):
        with pytest.raises(redfish.RedfishError) as caught:
            await client.get(SYSTEM)
        return str(caught.value)

    told, _, client = against(tmp_path, {("GET", SYSTEM): [reply(404, refusal)]}, work)
    for text in (told, *(e.line() for e in client.exchanges), Exchange("GET", "/\x1b[2J\n", 200, 0.0, "").line()):
        assert not {"\x1b", "\x07", "\n"} & set(text)
    assert "52;c;cm0gLXJm" in told


class Swallowing(Controller):
    """Counts what carries a password, refuses it in silence, and answers nothing of that."""

    carried: int = 0

    async def handle(self, request):
        bears = (request.method, request.path) == ("POST", redfish.SESSIONS) or "Authorization" in request.headers
        if not bears and request.path.startswith(redfish.ROOT.rstrip("/")) and "Systems" not in request.path:
            return web.json_response({"Id": "root"})
        self.carried += bears
        return await silence(request)


@pytest.mark.parametrize("look", [False, True])
def test_logins_that_are_swallowed_count_for_all_clients_of_a_controller(tmp_path, look):
    """Known bad: an answer that was lost did not count, and three clients sent a wrong password six times."""

    async def go():
        tries = Tries()
        async with running(tmp_path, Swallowing()) as made:
            ca = (tmp_path / "cert.pem").read_text()
            for number in range(4):
                how = {"look": look, "tries": tries}
                async with redfish.connect(made.address, "admin", f"wrong-{number}", ca, QUICK, **how) as client:
                    with pytest.raises(CouldNotRun):
                        await client.sign_in()
            return made.carried

    assert asyncio.run(go()) == 2


@pytest.mark.parametrize("open_to_all", [redfish.ROOT, redfish.ROOT.rstrip("/"), f"{redfish.ROOT}odata"])
def test_a_look_sends_a_password_that_was_never_taken_once(tmp_path, open_to_all):
    """Known bad: each GET carried it, and a GET without an answer was sent again."""

    async def go():
        async with running(tmp_path, Swallowing()) as made:
            ca = (tmp_path / "cert.pem").read_text()
            async with redfish.connect(made.address, "admin", "wrong", ca, QUICK, look=True) as client:
                assert await client.get(open_to_all) == {"Id": "root"}
                before = made.carried
                with pytest.raises(redfish.Ambiguous):
                    await client.get(SYSTEM)
            return before, made.carried

    assert asyncio.run(go()) == (0, 1)


def test_requests_of_a_look_at_once_try_a_password_twice_at_most(tmp_path):
    async def go():
        async with running(tmp_path, Swallowing()) as made:
            ca = (tmp_path / "cert.pem").read_text()
            async with redfish.connect(made.address, "admin", "wrong", ca, QUICK, look=True) as client:
                await asyncio.gather(*(client.get(SYSTEM) for _ in range(8)), return_exceptions=True)
            return made.carried

    assert asyncio.run(go()) == 2


def test_a_password_that_was_taken_is_sent_again_when_an_answer_is_lost(tmp_path):
    asked = []

    async def handle(request):
        asked.append(request.headers.get("Authorization"))
        return await silence(request) if len(asked) == 2 else web.json_response({"Id": "1"})

    async def go():
        made = Controller()
        made.handle = handle
        async with running(tmp_path, made):
            ca = (tmp_path / "cert.pem").read_text()
            async with redfish.connect(made.address, "admin", PASSWORD, ca, QUICK, look=True) as client:
                return [await client.get(SYSTEM) for _ in range(2)]

    assert asyncio.run(go()) == [{"Id": "1"}] * 2
    assert len(asked) == 3


def test_where_nobody_listens_nothing_counts(tmp_path):
    async def go():
        async with running(tmp_path, Controller()) as made:
            pass
        tries = Tries()
        ca = (tmp_path / "cert.pem").read_text()
        async with redfish.connect(made.address, "admin", PASSWORD, ca, QUICK, tries=tries) as client:
            with pytest.raises(redfish.Unreachable):
                await client.sign_in()
        return tries.count

    assert asyncio.run(go()) == 0


@pytest.mark.parametrize("nexts", [lambda n: n + 1, lambda n: 1 - n])
def test_a_collection_without_end_is_an_error_and_no_list(tmp_path, nexts):
    """Known bad: after 64 pages what there was passed for the whole."""

    class Endless(Controller):
        async def handle(self, request):
            if not request.path.startswith(SYSTEM):
                return await super().handle(request)
            number = int(request.path.removeprefix(SYSTEM) or 0)
            return web.json_response({"Members": [{"Id": "x"}], "Members@odata.nextLink": f"{SYSTEM}{nexts(number)}"})

    with pytest.raises(CouldNotRun, match="has no end"):
        against(tmp_path, Endless(), lambda c: c.members(f"{SYSTEM}0"))


@pytest.mark.parametrize(("bound", "most"), [("MOST_MEMBERS", 3), ("MEMBERS_LIMIT", 10)])
def test_a_collection_is_bounded(tmp_path, monkeypatch, bound, most):
    monkeypatch.setattr(redfish, bound, most)
    script = {("GET", SYSTEM): [reply(body={"Members": [{"Id": str(n)} for n in range(8)]})]}
    with pytest.raises(CouldNotRun, match="too many members"):
        against(tmp_path, script, lambda c: c.members(SYSTEM))


def test_all_answers_together_are_bounded_where_that_is_asked(tmp_path):
    async def work(client):
        client.most = 1 << 20
        for _ in range(4):
            await client.get(SYSTEM)

    with pytest.raises(CouldNotRun, match="more than 1 MiB in all"):
        against(tmp_path, {("GET", SYSTEM): [reply(body={"x": "y" * 400_000})]}, work)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.parametrize("method", ["GET", "PATCH"])
def test_a_redirect_is_no_success(tmp_path, status, method):
    """Known bad: it passed for an answer with nothing in it."""
    script = {(method, SYSTEM): [reply(status, Location="https://203.0.113.1/")]}
    with pytest.raises(redfish.RedfishError, match="redirects are not followed") as caught:
        against(tmp_path, script, lambda c: c.get(SYSTEM) if method == "GET" else c.patch(SYSTEM, {"x": 1}))
    assert caught.value.status == status


def test_lists_under_a_telling_key_are_blanked():
    """Known bad: only a text was."""
    given = {"Passwords": ["a-1", ["b-1"], {"Password": "c-1", "Slot": "r01"}], "Tokens": [], "Names": ["x"]}
    assert masked(given) == {
        "Passwords": ["***", ["***"], {"Password": "***", "Slot": "r01"}],
        "Tokens": [],
        "Names": ["x"],
    }
