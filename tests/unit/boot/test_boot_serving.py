"""The routes over real TLS with the site's own CA, on loopback."""

import asyncio
import dataclasses
import ipaddress
import os
import re
import shutil
import socket
import ssl
import stat
from pathlib import Path
from types import SimpleNamespace

import pytest
from aiohttp import ClientConnectorCertificateError, ClientSession, TCPConnector, web
from cryptography import x509

from supernode import spec
from supernode.boot import routes, server, sshkey, tls
from supernode.boot.enrolment import Enrolment
from supernode.boot.host import enrol
from supernode.errors import CouldNotRun
from supernode.workspace import EnvironmentFolder

DIGEST = "ab" * 32
DONE = {"phase": "firstboot", "state": "ok", "detail": "", "host_keys": ["ssh-ed25519 AAAA"], "image": DIGEST}


class Site:
    """What the routes ask of a site, from a folder of files."""

    def __init__(self, folder):
        self.folder = SimpleNamespace(name="lab")
        self.enrolment = Enrolment(folder / "state")
        self.files = folder
        self.error = None
        self.spent = False
        self.admitted = set()
        for name, data in (
            ("image.raw.zst", b"image"),
            ("gpu-001.iso", b"0123456789"),
            ("mirror/Packages", b"Package: x\n"),
        ):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(data)
        (folder / "secret").write_text("not for you")

    def design(self):
        return SimpleNamespace(digest="dd")

    def known(self):
        if self.error:
            raise self.error
        image = SimpleNamespace(digest=DIGEST, compressed=self.files / "image.raw.zst")
        return SimpleNamespace(image=image, mirror=self.files / "mirror")

    def iso(self, host, digest):
        return self.files / "gpu-001.iso" if self.offers(host, digest) and not self.spent else None

    def offers(self, host, digest):
        return (host, digest) == ("gpu-001", DIGEST)

    def admits(self, address):
        return address in self.admitted


@dataclasses.dataclass
class Served:
    base: str
    context: ssl.SSLContext
    site: Site


def folder_of(place):
    place.mkdir(exist_ok=True)
    return EnvironmentFolder("lab", place, place)


def served(tmp_path, check):
    """Run `check(session, served)` against the routes."""

    async def main():
        identity = tls.ensure(folder_of(tmp_path), "127.0.0.1")
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(identity.certificate, identity.key)
        site = Site(tmp_path)
        runner = web.AppRunner(routes.application(site, "code"), access_log_class=routes.AccessLog)
        await runner.setup()
        listening = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
        await listening.start()
        port = runner.addresses[0][1]
        trusted = ssl.create_default_context(cafile=str(identity.ca))
        try:
            async with ClientSession() as session:
                await check(session, Served(f"https://127.0.0.1:{port}", trusted, site))
        finally:
            await runner.cleanup()

    asyncio.run(main())


def test_what_is_served_and_what_is_not(tmp_path):
    async def check(session, at):
        async def get(path, **headers):
            async with session.get(f"{at.base}{path}", ssl=at.context, headers=headers) as answer:
                return answer.status, await answer.read()

        assert await get(f"/images/{DIGEST}.raw.zst") == (200, b"image")
        assert await get(f"/boot/gpu-001/{DIGEST}.iso") == (200, b"0123456789")
        assert await get(f"/boot/gpu-001/{DIGEST}.iso", Range="bytes=2-4") == (206, b"234")
        assert await get("/mirror/Packages") == (200, b"Package: x\n")
        assert await get("/mirror/./Packages") == (200, b"Package: x\n")
        missing = (
            f"/images/{'cd' * 32}.raw.zst", f"/boot/gpu-002/{DIGEST}.iso", f"/boot/gpu-001/{'cd' * 32}.iso",
            "/mirror/../secret", "/mirror/%2e%2e/secret", "/mirror/..%2fsecret", "/mirror/", "/secret",
            "/enrolled/gpu-001",
        )  # fmt: skip
        for path in missing:
            assert (await get(path))[0] == 404, path
        assert await get("/health") == (
            200,
            f'{{"environment": "lab", "design": "dd", "code": "code", "process": {os.getpid()}}}'.encode(),
        )

    served(tmp_path, check)


def test_a_machine_whose_answer_was_lost_finds_its_report_and_nobody_elses(tmp_path, monkeypatch):
    host = tmp_path / "host"
    for name, text in {
        "ssh/ssh_host_ed25519_key.pub": "ssh-ed25519 AAAA root@x\n",
        "supernode/image": f"{DIGEST}\n",
    }.items():
        (host / "etc" / name).parent.mkdir(parents=True)
        (host / "etc" / name).write_text(text)
    monkeypatch.setattr(enrol, "ROOT", host)
    place = host / "etc/supernode"

    async def check(_session, at):
        token = at.site.enrolment.issue("gpu-001")
        (place / "report.json").write_text(f'{{"url": "{at.base}/report/gpu-001"}}')
        (place / "ca.pem").write_bytes((tls.ensure(folder_of(tmp_path), "127.0.0.1").ca).read_bytes())
        for _again in range(2):  # the second time the token is spent, as when the first answer was lost
            (place / "token").write_text(token)
            assert await asyncio.to_thread(enrol.main) == 0
            assert not (place / "token").exists()
        (place / "token").write_text(token)
        (host / "etc/ssh/ssh_host_ed25519_key.pub").write_text("ssh-ed25519 EVIL root@x\n")
        assert await asyncio.to_thread(enrol.main) == enrol.EXIT_REFUSED
        assert at.site.enrolment.read("gpu-001")["host_keys"] == ["ssh-ed25519 AAAA"]

    served(tmp_path, check)


def test_a_medium_whose_token_is_dead_is_gone(tmp_path, caplog):
    async def check(session, at):
        at.site.spent = True
        async with session.get(f"{at.base}/boot/gpu-001/{DIGEST}.iso", ssl=at.context) as answer:
            assert answer.status == 410

    with caplog.at_level("INFO"):
        served(tmp_path, check)
    assert DIGEST not in caplog.text
    assert DIGEST[:12] in caplog.text


def test_a_medium_says_what_it_is(tmp_path):
    """UEFI's HTTP boot mounts what it loads by this type."""

    async def check(session, at):
        async with session.get(f"{at.base}/boot/gpu-001/{DIGEST}.iso", ssl=at.context) as answer:
            assert answer.headers["Content-Type"] == "application/vnd.efi-iso"

    served(tmp_path, check)


def test_a_medium_is_not_for_everyone(tmp_path):
    async def check(session, at):
        async with ClientSession(connector=TCPConnector(local_addr=("127.0.0.2", 0))) as elsewhere:
            for admitted, status in ((set(), 403), ({"127.0.0.2"}, 200)):
                at.site.admitted = admitted
                async with elsewhere.get(f"{at.base}/boot/gpu-001/{DIGEST}.iso", ssl=at.context) as answer:
                    assert answer.status == status
            at.site.admitted = set()
            async with elsewhere.get(f"{at.base}/mirror/Packages", ssl=at.context) as answer:
                assert answer.status == 200

    served(tmp_path, check)


def test_no_mediums_address_is_in_the_log(tmp_path, caplog):
    async def check(session, at):
        for name in (f"boot/gpu-001/{DIGEST}.iso", f"boot/gpu-002/{DIGEST}.iso", f"images/{DIGEST}.raw.zst"):
            async with session.get(f"{at.base}/{name}", ssl=at.context) as answer:
                await answer.read()

    with caplog.at_level("INFO"):
        served(tmp_path, check)
    assert DIGEST not in caplog.text
    assert f"GET /boot/gpu-001/{DIGEST[:12]}.iso 200" in caplog.text


def test_a_report_needs_the_token_and_is_kept_without_it(tmp_path):
    async def check(session, at):
        async def report(token, document):
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            url = f"{at.base}/report/gpu-001"
            async with session.post(url, json=document, headers=headers, ssl=at.context) as answer:
                return answer.status

        token = at.site.enrolment.issue("gpu-001")
        assert await report("", DONE) == 401
        assert await report("guess", DONE) == 401
        assert await report(token, {"phase": "firstboot"}) == 400
        assert await report(token, {**DONE, "detail": "x" * 100_000}) == 413
        assert await report(token, DONE) == 204
        assert await report(token, {**DONE, "host_keys": ["ssh-ed25519 EVIL"]}) == 401
        async with session.get(f"{at.base}/enrolled/gpu-001", ssl=at.context) as answer:
            text = await answer.text()
        assert "ssh-ed25519 AAAA" in text
        assert token not in text

    served(tmp_path, check)


def test_a_report_that_no_reader_bears_is_answered_by_its_token(tmp_path):
    """Known bad: deep nesting was a 500, before anyone asked for the token."""

    async def check(session, at):
        async def report(token, text):
            headers = {"Authorization": f"Bearer {token}"}
            async with session.post(f"{at.base}/report/gpu-001", data=text, headers=headers, ssl=at.context) as answer:
                return answer.status

        token = at.site.enrolment.issue("gpu-001")
        for text in ("[" * 60_000, "{", ""):
            assert await report("guess", text) == 401
            assert await report(token, text) == 400

    served(tmp_path, check)


def test_what_a_machine_reports_is_one_line_of_the_log_and_no_command(tmp_path, caplog):
    async def check(session, at):
        token = at.site.enrolment.issue("gpu-001")
        detail = "done\n2026-11-30 INFO gpu-002: forged\x1b]52;c;cm0gLXJm\x07\u2028next"
        headers = {"Authorization": f"Bearer {token}"}
        document = {**DONE, "detail": detail}
        async with session.post(f"{at.base}/report/gpu-001", json=document, headers=headers, ssl=at.context) as answer:
            assert answer.status == 204
        async with session.get(f"{at.base}/nothing%0Aforged", ssl=at.context) as answer:
            assert answer.status == 404

    with caplog.at_level("INFO"):
        served(tmp_path, check)
    lines = [record.getMessage() for record in caplog.records]
    assert any("forged" in line for line in lines)
    assert not [line for line in lines if {"\n", "\x1b", "\x07", "\u2028"} & set(line)]


def test_an_error_of_ours_is_said_to_who_asked(tmp_path):
    async def check(session, at):
        at.site.error = CouldNotRun("golden image", "is not built yet", "run `supernode image lab`")
        async with session.get(f"{at.base}/images/{DIGEST}.raw.zst", ssl=at.context) as answer:
            assert answer.status == 503
            assert (await answer.json())["hint"] == "run `supernode image lab`"

    served(tmp_path, check)


def test_another_ca_is_not_trusted(tmp_path):
    async def check(session, at):
        other = tls.ensure(folder_of(tmp_path / "other"), "127.0.0.1")
        context = ssl.create_default_context(cafile=str(other.ca))
        with pytest.raises(ClientConnectorCertificateError):
            await session.get(f"{at.base}/health", ssl=context)

    served(tmp_path, check)


def test_firmware_without_elliptic_curves_is_served(tmp_path):
    """OVMF of 2022 offers these suites of TLS 1.2, and none with ECDHE or ECDSA."""

    async def check(session, at):
        at.context.maximum_version = ssl.TLSVersion.TLSv1_2
        at.context.set_ciphers("AES256-GCM-SHA384:AES128-GCM-SHA256")
        async with session.get(f"{at.base}/boot/gpu-001/{DIGEST}.iso", ssl=at.context) as answer:
            assert answer.status == 200

    served(tmp_path, check)


def test_keys_are_private_and_the_identity_stays(tmp_path):
    first = tls.ensure(folder_of(tmp_path), "127.0.0.1")
    before = [path.read_bytes() for path in (first.ca, first.certificate, first.key)]
    again = tls.ensure(folder_of(tmp_path), "127.0.0.1")
    assert [path.read_bytes() for path in (again.ca, again.certificate, again.key)] == before
    for key in ("secrets/serve-ca.key", ".supernode/lab/serve/leaf.key"):
        assert stat.S_IMODE((tmp_path / key).stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "secrets").stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o755, 0o750, 0o701])
def test_a_folder_of_secrets_that_is_open_is_closed(tmp_path, mode):
    """Known bad: only one that was made here was private."""
    place = folder_of(tmp_path)
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets").chmod(mode)
    assert stat.S_IMODE(place.secrets.stat().st_mode) == 0o700


def test_a_folder_of_secrets_that_cannot_be_closed_is_refused(tmp_path, monkeypatch):
    def refuse(_path, _mode):
        raise PermissionError(1, "Operation not permitted")

    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets").chmod(0o755)
    monkeypatch.setattr(Path, "chmod", refuse)
    with pytest.raises(CouldNotRun, match="mode 0755") as caught:
        _ = folder_of(tmp_path).secrets
    assert "chmod 0700" in caught.value.hint


def test_a_new_address_gets_a_new_certificate_of_the_same_ca(tmp_path):
    first = tls.ensure(folder_of(tmp_path), "127.0.0.1")
    ca, leaf = first.ca.read_bytes(), first.certificate.read_bytes()
    second = tls.ensure(folder_of(tmp_path), "198.18.31.253")
    assert second.ca.read_bytes() == ca
    assert second.certificate.read_bytes() != leaf
    names = x509.load_pem_x509_certificate(second.certificate.read_bytes()).extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    assert names.value.get_values_for_type(x509.IPAddress) == [ipaddress.ip_address("198.18.31.253")]


def test_the_operators_key_is_made_once(tmp_path):
    folder = folder_of(tmp_path)
    public = sshkey.ensure(folder)
    assert public.startswith("ssh-ed25519 AAAA")
    assert sshkey.ensure(folder) == public
    assert stat.S_IMODE(folder.ssh_key_file.stat().st_mode) == 0o600
    assert (tmp_path / folder.ssh_key.removeprefix("file:")) == folder.ssh_key_file


def test_keys_of_former_times_are_brought_over_once_and_never_replaced(tmp_path):
    folder = folder_of(tmp_path)
    public, ca = sshkey.ensure(folder), tls.ensure(folder, "127.0.0.1").ca.read_bytes()
    for new, old in (("ssh_id_ed25519", "ssh/id_ed25519"), ("serve-ca.key", "serve/ca.key")):
        (folder.state / old).parent.mkdir(exist_ok=True)
        (folder.secrets / new).rename(folder.state / old)
    (folder.secrets / "ssh_id_ed25519.pub").unlink()
    (folder.secrets / "serve-ca.pem").rename(folder.state / "serve/ca.pem")
    assert sshkey.ensure(folder) == public
    assert tls.ensure(folder, "127.0.0.1").ca.read_bytes() == ca
    assert stat.S_IMODE(folder.ssh_key_file.stat().st_mode) == 0o600
    assert not (folder.state / "ssh/id_ed25519").exists()
    (folder.state / "ssh/id_ed25519").write_text("older still")
    assert sshkey.ensure(folder) == public


@pytest.mark.parametrize("state", ["in_service", "new"])
def test_a_key_that_machines_in_service_know_is_not_made_anew_in_silence(tmp_path, state):
    folder = folder_of(tmp_path)
    folder.write("machines", f"schema: 1\nslots:\n  r01u01: {{state: {state}}}\n")
    for make in (lambda: sshkey.ensure(folder), lambda: tls.ensure(folder, "127.0.0.1")):
        if state == "new":
            make()
            continue
        with pytest.raises(CouldNotRun, match="is gone, and 1 machine in service") as refused:
            make()
        assert "from a copy" in refused.value.hint
    assert len(list(folder.secrets.iterdir())) == (4 if state == "new" else 0)
    made = tls.ensure(folder, "127.0.0.1", anew=True).ca.read_bytes()
    assert tls.ensure(folder, "127.0.0.1", anew=True).ca.read_bytes() == made  # what is there is never replaced


def test_a_pid_that_is_another_process_by_now_is_not_the_server(tmp_path):
    folder = EnvironmentFolder("lab", tmp_path, tmp_path)
    pid_file = folder.state / "serve" / "serve.pid"
    pid_file.parent.mkdir(parents=True)
    pid_file.write_text(f"{os.getpid()} 1\n")
    assert server.stop(folder) is False
    pid_file.write_text("nonsense")
    assert server.stop(folder) is False


@pytest.fixture
def here(tmp_path):
    """The lab's environment, served on a free port of loopback."""
    text = (Path(__file__).resolve().parents[3] / "tests/lab/slim/environment.yml").read_text(encoding="utf-8")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    place = tmp_path / "inventories" / "lab"
    place.mkdir(parents=True)
    (place / "environment.yml").write_text(
        re.sub(r"serve: \{.*\}", f"serve: {{address: 127.0.0.1, port: {port}}}", text), encoding="utf-8"
    )
    folder = EnvironmentFolder("lab", place, tmp_path)
    yield folder
    server.stop(folder)


def test_a_server_is_found_and_stopped_when_the_state_that_named_it_is_gone(here):
    server.ensure_running(here)
    pid = (here.state / "serve/serve.pid").read_text()
    shutil.rmtree(here.state)
    server.ensure_running(here)
    assert (here.state / "serve/serve.pid").read_text() == pid
    shutil.rmtree(here.state)
    server.ensure_running(here, replace=True)  # its log went too: a new one writes where it can be read
    assert (here.state / "serve/serve.pid").read_text() != pid
    assert (here.state / "serve/serve.log").exists()
    shutil.rmtree(here.state)
    assert server.stop(here) is True
    assert server.health(here, spec.read(here.texts()).environment) is None


def test_a_server_is_started_once_found_again_and_stopped(here):
    url = server.ensure_running(here)
    assert url.startswith("https://127.0.0.1:")
    pid = (here.state / "serve/serve.pid").read_text()
    assert server.ensure_running(here) == url
    assert (here.state / "serve/serve.pid").read_text() == pid
    assert os.getsid(int(pid.split()[0])) == int(pid.split()[0])
    assert server.stop(here) is True
    assert not (here.state / "serve/serve.pid").exists()
    assert server.stop(here) is False


def test_a_server_of_older_code_is_replaced_by_who_boots_machines_and_not_by_who_looks(here, monkeypatch):
    server.ensure_running(here)
    old = (here.state / "serve/serve.pid").read_text()
    monkeypatch.setattr(server, "fingerprint", lambda: "newer")
    server.ensure_running(here)
    assert (here.state / "serve/serve.pid").read_text() == old
    server.ensure_running(here, replace=True)
    assert (here.state / "serve/serve.pid").read_text() != old


def test_code_is_told_by_what_it_holds(tmp_path, monkeypatch):
    for part in ("boot", "design", "spec", "catalog"):
        (tmp_path / part).mkdir()
    file = tmp_path / "boot/a.py"
    file.write_text("one")
    monkeypatch.setattr(server.supernode, "__file__", str(tmp_path / "__init__.py"))
    first = server.fingerprint()
    os.utime(file, (1, 1))
    assert server.fingerprint() == first
    file.write_text("two")
    os.utime(file, (1, 1))
    assert server.fingerprint() != first


@pytest.mark.parametrize("error", [ProcessLookupError, PermissionError])
def test_a_server_that_is_gone_or_anothers(tmp_path, monkeypatch, error):
    folder = EnvironmentFolder("lab", tmp_path, tmp_path)

    def kill(pid, number):
        raise error

    monkeypatch.setattr(server.os, "kill", kill)
    monkeypatch.setattr(server, "_recorded", lambda _: 4321)
    if error is ProcessLookupError:
        assert server.stop(folder) is True
    else:
        with pytest.raises(CouldNotRun, match=r"4321.*another user"):
            server.stop(folder)


def test_an_address_that_is_not_here_is_named_with_a_way_out(here):
    document = here.document("environment")
    document.write_text(document.read_text().replace("address: 127.0.0.1", "address: 192.0.2.77"))
    with pytest.raises(CouldNotRun, match="no address of this machine"):
        server.run(here)
