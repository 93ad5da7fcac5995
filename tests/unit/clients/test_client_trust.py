"""Whom the Redfish client trusts, what it sends before it does, and what a client that only looks may send."""

import asyncio
import hashlib
import ssl

import pytest
from aiohttp import web
from loopback_tls import authority
from test_client_redfish import PASSWORD, QUICK, SYSTEM, Controller, reply, running

from supernode.clients import redfish, tries
from supernode.errors import CouldNotRun

WRITES = ("patch", "post", "delete")


def certificate(folder):
    return (folder / "cert.pem").read_text()


def pin_of(folder):
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate(folder))).hexdigest()


def talk(folder, controller, work, *, ca=False, pin=None, **how):
    """Run `work(client)` against a controller whose certificate is in `folder`; return its result and the client."""

    async def go():
        async with running(folder, controller):
            shown = pin_of(folder) if pin is None else pin
            trusted = certificate(folder) if ca is True else ca or None
            async with redfish.connect(
                controller.address, "admin", PASSWORD, trusted, QUICK, pin=shown, **how
            ) as client:
                return await work(client), client

    return asyncio.run(go())


def get(client):
    return client.get(SYSTEM)


def another_ca(folder):
    (folder / "another").mkdir()
    authority(folder / "another")
    return certificate(folder / "another")


def test_the_pinned_certificate_needs_no_authority(tmp_path):
    found, _ = talk(tmp_path, Controller({("GET", SYSTEM): [reply(body={"Id": "1"})]}), get)
    assert found == {"Id": "1"}


def test_a_changed_certificate_is_refused_with_both_fingerprints_and_nothing_is_sent(tmp_path):
    controller = Controller({("GET", SYSTEM): [reply()]})
    with pytest.raises(redfish.Untrusted) as caught:
        talk(tmp_path, controller, get, pin="ab" * 32)
    assert "ab" * 32 in str(caught.value)
    assert pin_of(tmp_path) in str(caught.value)
    assert "--bmc-fingerprint" in caught.value.hint
    assert controller.asked == []


def test_with_both_both_must_hold(tmp_path):
    controller = Controller({("GET", SYSTEM): [reply(body={"Id": "1"})]})
    found, _ = talk(tmp_path, controller, get, ca=True)
    assert found == {"Id": "1"}
    controller.asked.clear()
    with pytest.raises(redfish.Untrusted, match="does not verify"):
        talk(tmp_path, controller, get, ca=another_ca(tmp_path))
    with pytest.raises(redfish.Untrusted, match="not the pinned one"):
        talk(tmp_path, controller, get, ca=True, pin="ab" * 32)
    assert controller.asked == []


def test_with_neither_nothing_is_sent_and_the_way_out_is_named(tmp_path):
    controller = Controller({("GET", SYSTEM): [reply()]})
    with pytest.raises(redfish.Untrusted) as caught:
        talk(tmp_path, controller, get, pin="")
    assert "supernode survey 127.0.0.1" in caught.value.hint
    assert "--bmc-fingerprint" in caught.value.hint
    assert controller.asked == []


def test_a_pin_that_is_none_is_no_pin(tmp_path):
    with pytest.raises(CouldNotRun, match="no fingerprint"):
        talk(tmp_path, Controller({}), get, pin="AB:CD")


def test_a_fingerprint_is_had_without_asking_anything(tmp_path):
    controller = Controller({})

    async def go():
        async with running(tmp_path, controller):
            return await redfish.fingerprint(controller.address)

    assert asyncio.run(go()) == pin_of(tmp_path)
    assert controller.asked == []
    with pytest.raises(CouldNotRun, match="shows no certificate"):
        asyncio.run(redfish.fingerprint(controller.address))


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("10.0.0.1", ("10.0.0.1", 443)),
        ("10.0.0.1:8443", ("10.0.0.1", 8443)),
        ("fd00::1", ("fd00::1", 443)),
        ("[fd00::1]:8443", ("fd00::1", 8443)),
        ("[fd00::1]", ("fd00::1", 443)),
    ],
)
def test_addresses(address, place):
    from supernode.clients import trust

    assert trust._split(address) == place


class Open(Controller):
    """Takes Basic authentication; keeps what credentials each request came with."""

    def __init__(self, script, full=None, status=503):
        super().__init__(script)
        self.full, self.status, self.credentials = full, status, []

    async def handle(self, request):
        self.credentials.append((request.method, request.headers.get("Authorization", "")))
        basic = request.headers.get("Authorization") == f"Basic {LOGIN}"
        if self.full and request.method == "POST" and request.path == redfish.SESSIONS:
            self.asked.append((request.method, request.path))
            entry = {"MessageId": self.full, "Message": f"all taken, {PASSWORD}"}
            return web.json_response({"error": {"@Message.ExtendedInfo": [entry]}}, status=self.status)
        if not basic:
            return await super().handle(request)
        self.asked.append((request.method, request.path))
        return await self.script[request.method, request.path][0](request)


LOGIN = "YWRtaW46czNjcmV0LW9mLXRoZS1ibWM="  # admin, a colon and PASSWORD


def test_who_only_looks_makes_no_session(tmp_path):
    controller = Open({("GET", SYSTEM): [reply(body={"Id": "1"})]})
    found, client = talk(tmp_path, controller, get, look=True)
    assert found == {"Id": "1"}
    assert controller.asked == [("GET", SYSTEM)]
    told = "\n".join(e.line() for e in client.exchanges)
    assert PASSWORD not in told
    assert LOGIN not in told


@pytest.mark.parametrize("write", WRITES)
def test_who_only_looks_cannot_write(tmp_path, write):
    controller = Open({})

    async def work(client):
        await getattr(client, write)(SYSTEM, *([] if write == "delete" else [{"AssetTag": "x"}]))

    with pytest.raises(redfish.LookOnly, match=f"{write.upper()} {SYSTEM}"):
        talk(tmp_path, controller, work, look=True)
    assert controller.credentials == []


def test_who_only_looks_tries_a_refused_password_once(tmp_path):
    controller = Open({("GET", SYSTEM): [reply(401)]})
    with pytest.raises(redfish.RedfishError, match="401"):
        talk(tmp_path, controller, get, look=True)
    assert controller.asked == [("GET", SYSTEM)]


def test_no_password_that_was_ever_used_is_told(tmp_path):
    """A controller that repeats, in one answer, what it was sent before and what it is sent now."""

    async def repeat(_request):
        text = f"{PASSWORD} and factory-made-1 and never-sent-2 are wrong"
        return web.json_response({"error": {"message": text, "@Message.ExtendedInfo": [{"Message": text}]}}, status=400)

    async def work(client):
        await client.become("admin", "factory-made-1")
        with pytest.raises(redfish.RedfishError):
            await client.sign_in()
        await client.become("admin", PASSWORD)
        client.conceal("never-sent-2")
        with pytest.raises(redfish.RedfishError) as caught:
            await client.get(SYSTEM)
        return [str(caught.value), *caught.value.messages]

    found, client = talk(tmp_path, Controller({("GET", SYSTEM): [repeat]}), work)
    told = "\n".join([*found, *(e.line() for e in client.exchanges)])
    assert "*** and *** and *** are wrong" in told
    assert not [secret for secret in (PASSWORD, "factory-made-1", "never-sent-2", LOGIN) if secret in told]


@pytest.mark.parametrize("look", [True, False])
def test_a_password_that_is_refused_is_sent_twice_and_no_more(tmp_path, look):
    """Known bad: each request logged in anew, and what is gathered as evidence locked the account."""
    controller = Open({("GET", SYSTEM): [reply(401)]})

    async def work(client):
        await client.become("admin", "another")
        for _ in range(5):
            with pytest.raises(redfish.RedfishError) as caught:
                await client.get(SYSTEM)
            assert caught.value.status == 401
        await client.become("admin", PASSWORD)  # the count is the controller's: its account may lock at the third
        with pytest.raises(redfish.RedfishError, match="not sent again"):
            await client.get(SYSTEM)
        return len(controller.asked)

    assert talk(tmp_path, controller, work, look=look)[0] == tries.MOST


@pytest.mark.parametrize(
    ("message", "status"),
    [("Base.1.18.SessionLimitExceeded", 503), ("Base.1.8.SessionLimitExceeded", 400), ("IDRAC.2.4.RAC0218", 503)],
)
def test_where_every_session_is_taken_the_password_goes_with_each_request(tmp_path, message, status):
    controller = Open({("GET", SYSTEM): [reply(body={"Id": "1"})]}, message, status)

    async def work(client):
        return [await client.get(SYSTEM) for _ in range(2)]

    found, client = talk(tmp_path, controller, work)
    assert found == [{"Id": "1"}] * 2
    assert controller.asked == [("POST", redfish.SESSIONS), ("GET", SYSTEM), ("GET", SYSTEM)]  # nobody's was deleted
    told = "\n".join(e.line() for e in client.exchanges)
    assert "every session is taken: Basic authentication from here on" in told
    assert PASSWORD not in told


def test_a_controller_that_is_only_busy_still_gets_its_session(tmp_path):
    """Known good beside the one above: 503 without that message is waited out."""
    controller = Controller({("GET", SYSTEM): [reply()]})
    busy = [1]

    async def first_busy(request):
        return web.Response(status=503) if busy and busy.pop() else await Controller.handle(controller, request)

    controller.handle = first_busy
    _, client = talk(tmp_path, controller, get)
    assert controller.logins == 1
    assert "Basic" not in "\n".join(e.line() for e in client.exchanges)


def test_a_password_is_proved_without_a_session_too(tmp_path):
    good = Open({("GET", redfish.SESSIONS): [reply()]}, "Base.1.18.SessionLimitExceeded")
    talk(tmp_path, good, lambda client: client.sign_in())
    bad = Open({("GET", redfish.SESSIONS): [reply(401)]}, "Base.1.18.SessionLimitExceeded")
    with pytest.raises(redfish.RedfishError) as caught:
        talk(tmp_path, bad, lambda client: client.sign_in())
    assert caught.value.status == 401
