"""A medium has a live token only when somebody is about to boot its machine."""

import asyncio
import ipaddress
from types import SimpleNamespace

import pytest
from aiohttp.test_utils import TestClient, TestServer

from supernode.boot import enrolment, routes, site
from supernode.boot.enrolment import Answer
from supernode.boot.media import SiteTrust
from supernode.workspace import EnvironmentFolder

HOST, DIGEST, OTHER = "gpu-001", "ab" * 32, "cd" * 32
DONE = {"phase": "firstboot", "state": "ok", "detail": "", "host_keys": ["ssh-ed25519 AAAA"], "image": "ab"}
NETWORKS = {"bmc": "198.18.2.0/23", "management": "198.18.0.0/23"}


class Site(site.Site):
    """A site whose documents make one medium of one host."""

    digest = DIGEST

    def known(self):
        networks = {name: SimpleNamespace(cidr=ipaddress.ip_network(cidr)) for name, cidr in NETWORKS.items()}
        environment = SimpleNamespace(pools=["gpu"], networks_of=lambda _pool: SimpleNamespace(**networks))
        return SimpleNamespace(base=None, design=SimpleNamespace(environment=environment))

    def medium(self, host):
        return SimpleNamespace(digest=self.digest, seed={}, arguments=None) if host == HOST else None

    def trust(self):
        return SiteTrust("", "")


@pytest.fixture
def here(tmp_path, monkeypatch):
    def build(base, seed, ca, token, arguments, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(token)

    monkeypatch.setattr(site.iso, "build", build)
    return Site(EnvironmentFolder("lab", tmp_path, tmp_path), tmp_path)


def boot(here):
    """Arm and read, as a controller does; return the token on the medium."""
    enrolment.arm(here.folder.state, HOST)
    return here.iso(HOST, DIGEST).read_text()


def test_nobody_gets_a_medium_that_nobody_is_about_to_boot(here):
    assert here.iso(HOST, DIGEST) is None
    assert not here.enrolment.alive(HOST)


def test_a_medium_is_read_again_as_long_as_its_token_lives(here):
    token = boot(here)
    assert here.iso(HOST, DIGEST).read_text() == token
    assert here.enrolment.report(HOST, token, {**DONE, "phase": "deploy"}) is Answer.ACCEPTED
    assert here.iso(HOST, DIGEST).read_text() == token


def test_a_machine_in_service_is_not_reinstalled_by_whoever_reads_its_medium(here):
    token = boot(here)
    here.enrolment.report(HOST, token, DONE)
    for _ in range(2):  # a controller that mounts its drive again; a leaked address
        assert here.iso(HOST, DIGEST) is None
    assert here.offers(HOST, DIGEST)
    assert not here.enrolment.alive(HOST)
    assert here.enrolment.report(HOST, token, {**DONE, "host_keys": ["ssh-ed25519 EVIL"]}) is Answer.REFUSED
    assert here.enrolment.read(HOST)["host_keys"] == ["ssh-ed25519 AAAA"]


def test_one_boot_one_token(here):
    first = boot(here)
    second = boot(here)
    assert first != second
    assert here.enrolment.report(HOST, first, DONE) is Answer.REFUSED
    assert not enrolment.armed(here.folder.state, HOST)


def test_another_medium_takes_no_mark_away(here):
    enrolment.arm(here.folder.state, HOST)
    assert here.iso(HOST, OTHER) is None
    assert here.iso("gpu-002", DIGEST) is None
    assert not here.offers(HOST, OTHER)
    assert not here.offers("gpu-002", DIGEST)
    assert enrolment.armed(here.folder.state, HOST)


def test_other_documents_make_another_medium_only_when_armed(here):
    boot(here)
    here.digest = OTHER
    assert here.iso(HOST, OTHER) is None
    enrolment.arm(here.folder.state, HOST)
    assert here.iso(HOST, OTHER) is not None


def test_a_medium_that_could_not_be_made_is_made_at_the_next_read(here, monkeypatch):
    enrolment.arm(here.folder.state, HOST)
    with monkeypatch.context() as full:
        full.setattr(site.iso, "build", lambda *_: (_ for _ in ()).throw(OSError("no space")))
        with pytest.raises(OSError, match="no space"):
            here.iso(HOST, DIGEST)
    assert here.iso(HOST, DIGEST) is not None


@pytest.mark.parametrize(
    ("address", "admitted"),
    [("198.18.2.1", True), ("198.18.3.17", True), ("198.18.0.11", True), ("198.18.8.2", False), ("10.0.0.1", False),
     ("::1", False)],
)  # fmt: skip
def test_media_are_for_controllers_and_machines(here, address, admitted):
    assert here.admits(address) is admitted


def test_what_was_revoked_is_gone_and_its_token_is_refused(here):
    token = boot(here)
    enrolment.revoke(here.folder.state, HOST)
    assert here.enrolment.report(HOST, token, DONE) is Answer.REFUSED
    assert here.iso(HOST, DIGEST) is None
    assert here.offers(HOST, DIGEST)  # which is what the server answers 410 for
    assert list(here.folder.state.rglob("*.iso")) == []
    new = boot(here)  # armed again: a token of its own
    assert here.enrolment.report(HOST, token, DONE) is Answer.REFUSED
    assert here.enrolment.report(HOST, new, DONE) is Answer.ACCEPTED


def test_a_host_that_was_armed_and_is_revoked_gets_no_medium(here):
    enrolment.arm(here.folder.state, HOST)
    enrolment.revoke(here.folder.state, HOST)
    assert here.iso(HOST, DIGEST) is None


def test_revoking_keeps_what_was_reported_and_leaves_others_alone(here):
    here.enrolment.report(HOST, boot(here), DONE)
    other = here.enrolment.issue("gpu-002")
    for _ in range(2):
        enrolment.revoke(here.folder.state, HOST)
    enrolment.revoke(here.folder.state, "gpu-003")
    assert here.enrolment.read(HOST)["host_keys"] == ["ssh-ed25519 AAAA"]
    assert here.enrolment.report("gpu-002", other, DONE) is Answer.ACCEPTED


def test_a_site_that_never_served_has_nothing_to_revoke(tmp_path):
    enrolment.revoke(tmp_path, HOST)
    assert list(tmp_path.iterdir()) == []


def test_over_the_wire_a_used_seed_is_gone_and_its_token_opens_nothing(here):
    """The medium, a report, the medium again, the report again with another key, and all of it after a revocation."""
    here.admits = lambda address: True
    path, enrolled = f"/boot/{HOST}/{DIGEST}.iso", f"/report/{HOST}"

    async def go():
        async with TestClient(TestServer(routes.application(here))) as client:

            async def report(token, **changes):
                bearer = {"Authorization": f"Bearer {token}"}
                return (await client.post(enrolled, json={**DONE, **changes}, headers=bearer)).status

            async def medium():
                answer = await client.get(path)
                return answer.status, await answer.text()

            assert (await medium())[0] == 410
            assert (await client.get(path.replace("ab", "ac"))).status == 404
            enrolment.arm(here.folder.state, HOST)
            status, token = await medium()
            assert status == 200
            assert len(token) * 6 >= 128
            assert await report("guess") == 401
            assert await report(token) == 204
            assert (await medium())[0] == 410
            assert await report(token, host_keys=["ssh-ed25519 BBBB"]) == 401
            assert await report(token, phase="deploy") == 401
            enrolment.arm(here.folder.state, HOST)
            status, second = await medium()
            assert status == 200
            enrolment.revoke(here.folder.state, HOST)
            assert await report(second) == 401
            assert (await medium())[0] == 410
            assert await report(token) == 401

    asyncio.run(go())
    assert here.enrolment.read(HOST)["host_keys"] == ["ssh-ed25519 AAAA"]
